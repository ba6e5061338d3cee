"""Calls that are refused, each in the one sentence of refusals.txt, and values of papers and of
calculations by hand, to the digits of worked.txt.
"""

import ast
import gzip
import json
import os
import re
import shlex
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from written_calls import called

import pufferflow as pf
from pufferflow import dp, hmm
from pufferflow.accounting import account
from pufferflow.audit import CountQuery
from pufferflow.errors import PufferflowError
from pufferflow.mechanisms import MECHANISMS
from pufferflow.records import read as reader
from pufferflow.records import units
from pufferflow.records.schema import Schema, parse_schema
from pufferflow.records.states import StateSpace

SENTENCES = Path(__file__).with_name("refusals.txt")
ENTRY = re.compile(r"(^\S.*\n(?:^\S.*\n)*)((?:^ .*\n)+)", re.M)
ENTRIES = [(asked.rstrip(), said) for asked, said in ENTRY.findall(SENTENCES.read_text("utf-8"))]

# -- what the calls name ---------------------------------------------------------------------------

THETA, HALF, TIED = [[0.9, 0.1], [0.4, 0.6]], [[0.5, 0.5]] * 2, np.eye(3)[[1, 2, 0]]
HUGE, NOTHING, ALL = [[1e308, 1e308], [0.5, 0.5]], np.zeros((2, 2)), np.ones((2, 2))
LOW, HIGH, ONE = [[0.2, 0.1], [0.1, 0.3]], [[0.9, 0.5], [0.6, 0.6]], {"low": [[1]], "high": [[1]]}
NAMED = pd.DataFrame(THETA, index=[*"ab"], columns=[*"ab"])
CHAIN, ANY = pf.MarkovChain(THETA, [1, 0]), pf.MarkovChain(HALF, "any")
SLIGHTLY = pf.MarkovChain([[0.5, 0.5], [0.5 + 1e-7, 0.5 - 1e-7]], "any")
STICKY, BLOCKS = pf.MarkovChain([[0.9, 0.1], [0.1, 0.9]]), pf.MarkovChain(np.eye(2), "any")
THREE = pf.MarkovChain([[0.5, 0.3, 0.2], [0.2, 0.6, 0.2], [0.3, 0.3, 0.4]])
MANY = pf.MarkovChain(np.full((200, 200), 1 / 200), "any")
BINARY, DAY = pf.BinaryInterval(0.3, 0.7), pf.PeriodicChain([HALF, THETA])
BOX = pf.IntervalFamily(np.full((3, 3), 0.3), np.full((3, 3), 0.4))
PAIR = pf.IntervalFamily([[0.2, 0.1], [0.1, 0.2]], [[0.9, 0.8], [0.8, 0.9]])
ORDER_2 = np.array([[[0.9, 0.1], [0.5, 0.5]], [[0.3, 0.7], [0.2, 0.8]]])
COUNT = CountQuery({1})

Framework, HEAD = pf.PufferfishFramework, "secret,value,probability\n"
WELL = {0: "0.2", 1: "0.225", 2: "0.5", 3: "0.075"}
FLU = {"well": WELL, "ill": {4 - n: p for n, p in WELL.items()}}
PEOPLE = Framework.from_databases({"a": dict.fromkeys(product((0, 1), repeat=2), "1/4")}, sum)

QUILTS = pf.certify(CHAIN, 100, 1.0)
GOOD = [(1, 7, None, 5), (8, 8, 7, 5), (9, 9, 5, 5), (10, 95, 5, 5), (96, 100, 5, None)]
OF_COUNT = pf.certify(THREE, 12, 2.0, mechanism="wasserstein", states=[0, 2])
DECIMALS, GONE = [["0.9", "0.1"], ["0.4", "0.6"]], object()

INSERTING, ETA, COIN = dp.AlphaBeta(0.5, 0.1), dp.Eta(1, 1), dp.FiniteMechanism({0: ["1/2", "1/2"]})
WIDE = dp.FiniteMechanism({0: ["1/2000"] * 2000})
DATA, SMALL = pd.DataFrame({"a": [1, 2], "b": ["x", "x"]}), dp.Domain({"a": [1, 2], "b": [*"xy"]})
RESPONSE, BASE2 = dp.RandomisedResponse([*"ab"], 0.7), dp.Base2Exponential(ETA, 0, 5, 20)

ANN, COPY = pf.networks.Variable("Ann", [0.9, 0.1]), [[1, 0], [0, 1]]
BOB = pf.networks.Variable("Bob", [[0.95, 0.05], [0.4, 0.6]], ["Ann"])
FRIENDS = pf.networks.BayesianNetwork([BOB, ANN])

COINS, SECRETS = [["3/4", "1/4"], [0.25, 0.75]], {"yes": [1, 0], "no": [0, 1]}
HIDDEN = {"transition_matrix": COPY, "observation_matrix": COINS, "initial_distributions": SECRETS}
FREE = hmm.PriorFamily(COPY, COPY, {"a": ["p", "1-p"], "b": [0, 1]}, {"p": [0, "1/2"]}, length=1)
MODEL = hmm.HiddenMarkovModel([["2/3", "1/3"], ["1/4", "3/4"]], COINS, SECRETS)


def lazy(states):
    return pf.MarkovChain(0.9 * np.eye(states) + 0.1 / states)


HEADER, NUMERIC = b"time,who,value\n", Schema(states=StateSpace.numeric([1, 2.5])).to_dict()
READINGS = "".join(f"2021-03-01T00:{i:02}Z,{'ab'[i % 2]},{i}.25\n" for i in range(40)).encode()
END, ROWS = b"2021-03-01T02:00Z,a", HEADER + READINGS
CUT_SHORT = gzip.compress(HEADER + READINGS * 99)[:-9]
HOURS = pd.date_range("2024-01-01", periods=168, freq="h", tz="UTC")
METERS = pd.DataFrame({"time": np.tile(HOURS, 20), "meter": np.repeat([*range(20)], 168)})
METERS["kwh"] = np.random.default_rng(1).uniform(0, 3, len(METERS))
ON_STATES = {"statistics": ["histogram"], "bounds": None, "edges": [1]}
Charge, Promise, READING = account.Charge, account.Promise, account.Level(1)
level_of, seconds_of, steps_of = account.level_of, units.seconds_of, units.steps_of


def rows(content, **schema):
    """Read a table of which the file is given."""
    if isinstance(content, pa.Table):
        pq.write_table(content, "FILE")
    else:
        Path("FILE").write_bytes(content)
    return reader.read("FILE", Schema(**{"participant": "who"} | schema))


def records(**changes):
    return parse_schema(NUMERIC | changes)


def release(theta, frame=METERS, epsilon=1, **options):
    given = {"statistics": ["mean"], "bounds": (0, 3), "participant": "meter"} | options
    return pf.release(frame, theta, epsilon, ledger="new", output="out", **given)


def counted(length=9, theta=None, **options):
    timed = {"value": "door", "step": "1min", "first": "2024-01-01", "timezone": "UTC"}
    theta = pf.mixing("1h", 0.4) if theta is None else theta
    return pf.RunningCount.in_ledger("new", length, theta, **timed | options)


def network(*variables):
    return pf.networks.BayesianNetwork([pf.networks.Variable(*of) for of in variables])


def seen(*rows):
    """A hidden Markov model with these rows of observations."""
    return HIDDEN | {"observation_matrix": [*rows, [0, 1]][:2]}


def free(*entries, p=(0, 1)):
    """A hidden Markov model of which a prior has these entries, with a parameter p."""
    initial = {"a": [*entries, "1"][:2], "b": [0, 1]}
    return HIDDEN | {"initial_distributions": initial, "parameters": {"p": p}, "length": 1}


def of_chain(matrix, start, **more):
    return {"chains": [{"transition_matrices": [matrix], "initial_distribution": start} | more]}


def verify(**fields):
    changed = {key: value for key, value in (QUILTS | fields).items() if value is not GONE}
    return pf.verify_certificate(changed)


def quilts(*ranges):
    return verify(proofs=[{"quilts": [list(each) for each in ranges]}])


def count(**fields):
    proof = OF_COUNT["proofs"][0]["count"]
    top = {key: fields.pop(key) for key in [*fields] if key in OF_COUNT}
    return pf.verify_certificate(OF_COUNT | {"proofs": [{"count": proof | fields}]} | top)


# -- files that the commands name ------------------------------------------------------------------


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A table, an alias of each kind, models, networks, tables of frameworks, a certificate."""
    folder = tmp_path_factory.mktemp("refused")
    states, hundreds = [*"01"] * 25, range(500)
    model = pf.ChainFamily([CHAIN]).document() | {"records": {"states": {"names": ["0", "1"]}}}
    rows = [f"{who},2024-01-01T0{i}:00Z,77123.{i}" for who in "ab" for i in range(9)]
    coins = [{"name": f"v{i}", "table": [0.5, 0.5]} for i in range(30)]
    texts = {
        "d.csv": "\n".join(["value", *states]),
        "t.csv": "\n".join(["who,time,value", *rows]),
        "word.csv": "\n".join(["who,time,value", *rows, "a,2024-01-01T09:00Z,x77123"]),
        "flu.csv": HEAD + "\n".join(f"{s},{n},{p}" for s in FLU for n, p in FLU[s].items()),
        "laws.csv": HEAD + "\n".join(f"{s},{v},1/500" for s in "ab" for v in hundreds),
        "m.json": json.dumps(model),
        "64.json": json.dumps(pf.ChainFamily([lazy(64)]).document()),
        "200.json": json.dumps(pf.ChainFamily([MANY]).document()),
        "network.json": json.dumps({"variables": coins}),
        "certificate.json": json.dumps(QUILTS),
    }
    for name, text in texts.items():
        (folder / name).write_text(text)
    (folder / "soft.csv").symlink_to("d.csv")
    os.link(folder / "d.csv", folder / "hard.csv")
    (folder / "sub").mkdir()
    os.mkfifo(folder / "pipe")
    return folder


@pytest.fixture
def refused(folder, run, monkeypatch):
    """The sentence of a command, which shows nothing else."""
    monkeypatch.chdir(folder)

    def started(*words, **options):
        raise AssertionError("it was started")

    def refused_(*words):
        if {"64.json", "200.json"} & set(words):  # what takes minutes never starts
            for name in MECHANISMS:
                monkeypatch.setitem(MECHANISMS, name, started)
        code, out, err = run(*words)
        assert (code, out, err.count("\n")) == (2, "", 1)
        return err.removeprefix("pufferflow: error: ").rstrip()

    return refused_


READERS = {
    "model": ("scale", "FILE", "--length", 5, "--epsilon", 1),
    "table": ("related", "general", "FILE", "--epsilon", 1),
    "network": ("related", "network", "FILE", "--epsilon", 1),
    "noisymax": ("related", "noisymax", "FILE"),
    "hidden": ("related", "check", "FILE", "--factor", 2),
}


def content_of(folder):
    """All files but the one that an entry brings."""
    paths = {path for path in folder.rglob("*") if path.is_file()} - {folder / "FILE"}
    return {path: path.read_bytes() for path in paths}


def answer(asked, folder, refused):
    kind, _, rest = asked.partition(" ")
    if kind == "$":
        return refused(*shlex.split(rest))
    if kind in READERS:
        content = called(rest, globals())
        text = content if isinstance(content, str | bytes) else json.dumps(content)
        (folder / "FILE").write_bytes(text if isinstance(text, bytes) else text.encode())
        return refused(*READERS[kind])
    try:
        found = called(asked, globals())
        return f"{found.status}: {found.reason}"
    except PufferflowError as error:
        return f"{type(error).__name__}: {error}"


@pytest.mark.parametrize(("asked", "said"), ENTRIES, ids=[asked for asked, _ in ENTRIES])
def test_refused_in_this_sentence(asked, said, folder, refused):
    pattern = re.escape(" ".join(said.split())).replace("…", ".*")
    before = content_of(folder)
    found = answer(asked, folder, refused)
    assert content_of(folder) == before
    assert re.fullmatch(pattern, found, re.S), found


# -- values of papers and of calculations by hand --------------------------------------------------

TEXT = Path(__file__).with_name("worked.txt").read_text("utf-8").replace("\n    ", " ")
THETA_1, THETA_2 = CHAIN, pf.MarkovChain([[0.8, 0.2], [0.3, 0.7]], [0.9, 0.1])
ANY_1, STATIONARY_1 = pf.MarkovChain(THETA, "any"), pf.MarkovChain(THETA)
THETAS = pf.ChainFamily([THETA_1, THETA_2])
EARLY = pf.MarkovChain([[0.75, 0.25], [1 - 0.003322259136212625, 0.003322259136212625]], [0, 1])
FLIPPING, SLOW = (pf.MarkovChain(m) for m in ([[0.2, 0.8], [0.9, 0.1]], [[0.99, 0.01], [0.3, 0.7]]))
UNLIKELY = pf.MarkovChain([[0, 1e-300, 1], [1, 0, 0], [1, 0, 0]], [1, 0, 0])
EVEN, SWAP = pf.BinaryInterval(0.5, 0.5), pf.MarkovChain([[0, 1], [1, 0]], "any")
SELDOM = pf.MarkovChain([[1, 0, 0], [0, 1, 0], [5e-324, 0.25, 0.75]], "any")
TURNED = [[0.9, 0.1, 0], [0.2, 0.7, 0.1], [0.3, 0, 0.7]]
PAIRS, ROUND = pf.HiddenChain.of_order(ORDER_2), pf.MarkovChain(TIED)
TOSSES, CERTAIN = (pf.dp.FiniteMechanism({"yes": p, "no": p[::-1]}) for p in (COINS[0], [1, 0]))
STEPS = pf.dp.FiniteMechanism({i: [f"{9 - i}/9", f"{i}/9"] for i in range(3)}, [(0, 1), (1, 2)])
ZEROS, EPSILONS, ALPHAS = CountQuery({0}), (0.2, 1.0, 5.0), (0.1, 0.2, 0.3, 0.36, 0.4)


def symmetric(stay, start="stationary"):
    return pf.MarkovChain([[stay, 1 - stay], [1 - stay, stay]], start)


def synthetic(alpha):
    return pf.BinaryInterval(alpha, 1 - alpha)


def hidden(transitions, observations, yes=(1, 0), no=(0, 1)):
    return pf.hmm.HiddenMarkovModel(transitions, observations, {"yes": yes, "no": no})


def fits(length, alpha):
    return pf.gk16(synthetic(alpha), length, 1.0).scale is not None


def of_counts(*rows):
    """The family of these counts, and of a state that was never left."""
    return pf.models.confidence_family([*rows, [0] * len(rows[0])])


def longer(mechanism, matrix, start, **options):
    """Scales of a billion records and of more, over that of a million."""
    chain = pf.MarkovChain(matrix, start)
    long, *more = (mechanism(chain, n, 0.5, **options).scale for n in (10**6, 10**9, 10**18))
    return [scale / long for scale in more]


def least(chain, length, epsilon):
    """Number of records whose noise is a lower bound."""
    return pf.lower_bound(chain, length, epsilon).scale * epsilon


def informed(family, length, window=1):
    return pf.leakage(family, length, 1.0, window=window, side_information="any").scale


def share_of_lower_bounds(chain, epsilon, **options):
    lower = pf.lower_bound(chain, 100, epsilon, **options).scale
    return lower / pf.leakage(chain, 100, epsilon).scale


def agrees(found, text):
    """Equal, or for numbers with a point within half a unit of the last digit."""
    if "." not in text:
        return found == ast.literal_eval(text)
    return abs(found - float(text)) <= 0.5001 * 10.0 ** -len(text.partition(".")[2])


@pytest.mark.parametrize("line", [line for line in TEXT.splitlines() if line and line[0] != "#"])
def test_known_value(line):
    call, _, text = line.rpartition(" = ")
    found = called(call, globals())
    wanted = text.strip("[]").split(", ") if isinstance(found, list) else [text]
    several = found if isinstance(found, list) else [found]
    assert all(agrees(*pair) for pair in zip(several, wanted, strict=True)), found
