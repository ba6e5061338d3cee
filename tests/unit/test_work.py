"""What a command takes is estimated before it starts, and refused above one bound: see
refusals.txt, and test_invalid_proofs for the verifier.
"""

import json
import re
import time
from argparse import Namespace

import numpy as np
import pytest

import pufferflow as pf
from pufferflow._util.work import A_SECOND, MAX_WORK, afford, allowing, is_allowed, spend
from pufferflow.cli.options import theta_of
from pufferflow.errors import ParameterError
from pufferflow.mechanisms import MECHANISMS, compute_scale
from pufferflow.mechanisms.registry import scale_work


def chain(states, start="stationary", seed=0):
    rows = np.random.default_rng(seed).dirichlet(np.ones(states), states) + 1e-4
    return pf.MarkovChain(rows / rows.sum(axis=1, keepdims=True), start)


def clock(states, repeat):
    matrices = [chain(states, seed=seed).transition_matrix for seed in range(24)]
    return pf.PeriodicChain(matrices, repeat=repeat)


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for k in (2, 64, 150):
        (tmp_path / f"{k}.json").write_text(json.dumps(pf.ChainFamily([chain(k)]).document()))
    return tmp_path


ASKED = ("scale", "64.json", "--length", 10, "--epsilon", 1)


def test_more_is_allowed_by_name(files, run, monkeypatch):
    def compute(*words, **options):
        raise AssertionError("it was started")

    for name in MECHANISMS:
        monkeypatch.setitem(MECHANISMS, name, compute)
    words = (*ASKED, "--mechanism", "leakage", "--most-work", 1e12)
    assert "AssertionError (compute, " in run(*words)[2]


def test_scales_that_take_too_long_are_left_out_where_none_is_named(files, run):
    code, out, _ = run(*ASKED, "--json", "--most-work", 1e9)
    rows = {row["mechanism"]: row for row in json.loads(out)}
    assert code == 0
    assert rows["leakage"]["status"] == "not applicable"
    assert re.search("it would take about .*--most-work", rows["leakage"]["reason"])
    assert rows["mqm-exact"]["status"] == "ok"


def test_a_release_says_that_its_noise_takes_long(files, capsys):
    asked = Namespace(mixing=None, chain="150.json")
    assert theta_of(asked).family.states == 150
    warning = r"warning: to find and prove the noise would take about \d+ \w+"
    assert re.search(warning, capsys.readouterr().err)
    asked.protect = "participant"
    theta_of(asked)
    asked.chain = "2.json"
    theta_of(asked)
    assert capsys.readouterr().err == ""


def test_in_python_nothing_is_bounded():
    afford(1e300, "it", "do less")
    assert is_allowed(1e300)
    with allowing(10):
        assert not is_allowed(11)
        spend(6, "a search", "give less")
        reason = r"^a search takes more than the 10 operations .*; give less, or"
        with pytest.raises(ParameterError, match=reason):
            spend(6, "a search", "give less")
        with allowing(100):
            spend(60, "a search", "give less")
    spend(1e300, "a search", "give less")


HALF = [["1/2", "1/2"], ["1/3", "2/3"]]
HIDDEN = {
    "transition_matrix": HALF,
    "observation_matrix": [["1/5", "4/5"], ["2/3", "1/3"]],
    "initial_distributions": {"yes": [1, 0], "no": [0, 1]},
    "length": 50,
}
LINE = [{"name": "v0", "table": [0.5, 0.5]}]
LINE += [
    {"name": f"v{i}", "parents": [f"v{i - 1}"], "table": [[0.5, 0.5], [0.25, 0.75]]}
    for i in range(1, 9)
]


@pytest.mark.parametrize(
    ("command", "document", "option"),
    [("check", HIDDEN, "--factor=3"), ("network", {"variables": LINE}, "--epsilon=1")],
)
def test_a_search_ends_at_the_bound(command, document, option, tmp_path, run, monkeypatch):
    # estimated before, and refused then
    monkeypatch.setattr("pufferflow.networks.mechanism.OPERATIONS_PER_SUM", 0.0)
    (tmp_path / "file").write_text(json.dumps(document))
    words = ("related", command, tmp_path / "file", option)
    assert run(*words)[0] == 0
    code, out, err = run(*words, "--most-work", 1000)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "takes more than the 1e+03 operations that are taken on; " in err


def test_every_mechanism_of_a_household_is_taken_on():
    """That of 51 states, with its certificate, by kinds and numbers alone."""
    for name in MECHANISMS:
        plain, proved = (scale_work(name, chain(51), 100, certified=c) for c in (False, True))
        assert 0 < plain <= proved
        assert plain + proved < MAX_WORK
        assert scale_work(name, chain(51, seed=2), 100) == plain


@pytest.mark.long
@pytest.mark.parametrize(
    ("family", "small"),
    [
        *((lambda: chain(40, seed=5), chain(3)), (lambda: chain(30, "any", 5), chain(3, "any"))),
        *((lambda: clock(20, 1), clock(3, 1)), (lambda: clock(13, 60), clock(3, 60))),
    ],
)
def test_estimates_are_near_what_was_measured(family, small):
    """On a busy or fast machine: a factor of ten says that the formula is of this world."""
    compute_scale("leakage", small, 100, 1.0)
    theta, begin = family(), time.process_time()
    compute_scale("leakage", theta, 10**5, 1.0)
    taken = time.process_time() - begin
    assert taken / 10 < scale_work("leakage", theta, 10**5) / A_SECOND < taken * 10
