"""Certificates of known scales, what makes the verifier refuse, and the commands."""

import ast
import copy
import io
import json
import subprocess
import sys
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from shipped_counts import electricity_transitions

import pufferflow as pf
from pufferflow import verify
from pufferflow.errors import CertificateError, ParameterError
from pufferflow.mechanisms import compute_scale
from pufferflow.verify import read_certificate

P1, P2 = [[0.9, 0.1], [0.4, 0.6]], [[0.8, 0.2], [0.3, 0.7]]
THETA_1, THETA_2 = pf.MarkovChain(P1, [1, 0]), pf.MarkovChain(P2, [0.9, 0.1])
INTERVALS = pf.IntervalFamily(
    [[0.5, 0.1, 0.1], [0.2, 0.4, 0.1], [0.1, 0.2, 0.5]],
    [[0.7, 0.3, 0.25], [0.4, 0.6, 0.2], [0.3, 0.35, 0.6]],
)


def symmetric(stay, start):
    return pf.MarkovChain([[stay, 1 - stay], [1 - stay, stay]], start)


WORKED = [
    (THETA_1, "exact", 12.934051),
    (THETA_1, "published", 13.02192350),
    (THETA_2, "exact", 10.64019298),
    (pf.ChainFamily([THETA_2, THETA_1]), "published", 13.02192350),
    (pf.MarkovChain(P1, "any"), "exact", 13.02192),
    (symmetric(0.9, "stationary"), "exact", 31.7378),
    (symmetric(0.9, "any"), "exact", 33.6293),
    (symmetric(0.5, "stationary"), "exact", 1.0),
    (pf.BinaryInterval(0.3, 0.7), "exact", 7.22),
    (pf.BinaryInterval(0.1, 0.6), "exact", 33.63),
]


@pytest.fixture(scope="module")
def document():
    return pf.certify(THETA_1, 100, 1.0)


@pytest.fixture(scope="module")
def electricity():
    chain, _ = pf.fit_chain(electricity_transitions())
    return chain


def rejected(document, reason):
    with pytest.raises(CertificateError, match=reason):
        pf.verify_certificate(document)


def test_the_verifier_shares_no_code_with_what_it_checks():
    folder = Path(verify.__file__).parent
    imported = set()
    for path in folder.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                imported |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                imported.add(node.module)
    ours = {name for name in imported if name.split(".")[0] == "pufferflow"}
    assert ours - {f"pufferflow.verify.{path.stem}" for path in folder.glob("*.py")} == {
        "pufferflow.errors"
    }
    assert {name.split(".")[0] for name in imported - ours} <= {*sys.stdlib_module_names, "flint"}
    # nor does anything that it imports load the numerical code
    script = "import sys, pufferflow.verify; print(*sys.modules)"
    command = [sys.executable, "-c", script]
    loaded = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    unused = {"pufferflow.influence", "pufferflow.mechanisms", "pufferflow.markov"}
    assert not ({"numpy", "numba"} | unused) & set(loaded)


# -- what is proved --------------------------------------------------------------------------------


@pytest.mark.parametrize(("family", "convention", "scale"), WORKED)
def test_worked_examples(family, convention, scale):
    result = compute_scale("mqm-exact", family, 100, 1.0, convention=convention, certified=True)
    assert result.scale == pytest.approx(scale, rel=1e-3 if scale in (7.22, 33.63) else 1e-5)
    assert result.scale == pytest.approx(
        pf.mqm_exact(family, 100, 1.0, convention=convention).scale, rel=1e-12
    )
    found = pf.verify_certificate(json.loads(json.dumps(result.certificate)))
    assert found.loss <= 1
    if convention == "exact":
        assert found.loss > 1 - Fraction(1, 10**12)
        lowered = result.certificate | {"scale": repr(result.scale * (1 - 1e-9))}
        rejected(lowered, r"a loss of 1.00000 is not excluded, epsilon is 1")


@pytest.mark.parametrize("epsilon", [0.2, 1.0, 5.0])
@pytest.mark.parametrize(
    "family", [THETA_1, symmetric(0.9, "any"), pf.ChainFamily([THETA_1, THETA_2])]
)
def test_the_larger_scale_of_mqm_approx_is_proved_by_quilts(family, epsilon):
    scale = pf.mqm_approx(family, 100, epsilon).scale
    document = pf.certify(family, 100, epsilon, mechanism="mqm-approx")
    assert float(document["scale"]) == scale
    pf.verify_certificate(document)
    least = pf.mqm_exact(family, 100, epsilon).scale
    rejected(document | {"scale": repr(least * (1 - 1e-9))}, "is not excluded")


# the third state never occurs
THREE = pf.MarkovChain([[0.25, 0.75, 0], [0.25, 0.75, 0], [0, 0.5, 0.5]])


@pytest.mark.parametrize("length", [1, 3, 10**9])
@pytest.mark.parametrize(
    "chain", [pf.MarkovChain([[0.3, 0.7]] * 2, [0.9, 0.1]), pf.BinaryInterval(0.5, 0.5), THREE]
)
def test_entry_dp_of_independent_records(chain, length):
    for epsilon in (0.1, 0.3, 1.0):
        document = pf.certify(chain, length, epsilon, mechanism="entry-dp")
        assert float(document["scale"]) == pytest.approx(1 / epsilon, rel=1e-15)
        assert Fraction(document["scale"]) >= 1 / Fraction(str(epsilon))
        pf.verify_certificate(document)


def test_entry_dp_of_correlated_records():
    slightly = pf.MarkovChain([[0.5, 0.5], [0.5 + 1e-7, 0.5 - 1e-7]], "any")
    for family in (THETA_1, slightly, pf.ChainFamily([symmetric(0.5, "any"), slightly])):
        with pytest.raises(
            ParameterError,
            match=r"records are correlated, and of correlated ones .* use mqm-exact$",
        ):
            pf.certify(family, 100, 1.0, mechanism="entry-dp")
    pf.verify_certificate(pf.certify(THETA_1, 1, 1.0, mechanism="entry-dp"))


@pytest.mark.parametrize(
    ("epsilon", "length"), [(0.2, 20), (5.0, 20), pytest.param(1.0, 100, marks=pytest.mark.long)]
)
def test_wasserstein(epsilon, length):
    for family in (THETA_1, THETA_2, pf.ChainFamily([THETA_1, THETA_2]), pf.MarkovChain(P1, "any")):
        result = pf.wasserstein(family, length, epsilon).certified(family)
        assert Fraction(result.scale) >= 4 / Fraction(repr(epsilon))
        assert result.scale == pytest.approx(4 / epsilon, rel=1e-15)
        assert pf.verify_certificate(
            json.loads(json.dumps(result.certificate))
        ).loss == 4 / Fraction(repr(result.scale))
        smaller = copy.deepcopy(result.certificate) | {"scale": repr(3 / epsilon)}
        for proof in smaller["proofs"]:
            proof["count"]["W"] = 3
        rejected(
            smaller,
            r"\d+ records, node \d+: given states 1 and 2 the distributions .* not within W = 3$",
        )


def test_wasserstein_of_independent_records():
    """W = 1, but the distribution functions are equal there up to rounding: plans have slack."""
    for chain in (
        symmetric(0.5, "any"),
        pf.MarkovChain([[0.3, 0.7], [0.3, 0.7]]),
        pf.BinaryInterval(0.5, 0.5),
    ):
        document = pf.certify(chain, 30, 1.0, mechanism="wasserstein")
        proof = document["proofs"][0]["count"]
        assert (proof["W"], proof["slack"]) == (1, "1e-9")
        assert 1 < float(document["scale"]) < 1 + 2e-9
        pf.verify_certificate(document)


def test_wasserstein_of_any_count():
    chain = pf.MarkovChain([[0.5, 0.3, 0.2], [0.2, 0.6, 0.2], [0.3, 0.3, 0.4]], "any")
    document = pf.certify(chain, 12, 2.0, mechanism="wasserstein", states=[0, 2])
    proof = document["proofs"][0]["count"]
    assert proof["weights"] == [1, 0, 1]

    def changed(**fields):
        return document | {"proofs": [{"count": proof | fields}]}

    found = pf.verify_certificate(document)
    assert "segments of 12 records, the count with weights 1, 0, 1 alone" in found.subject
    rejected(changed(weights=[1, 0]), "one weight a state")
    rejected(changed(lengths=[11]), "12 for the longest of its lengths")
    rejected(
        document | {"mechanism": "leakage"},
        "a count alone proves the scale of wasserstein, and no other one",
    )
    rejected(document | {"proofs": [{}]}, "a count alone proves the scale of wasserstein")
    rejected(document | {"window": 2}, "a count has a proof for listed chains, single records")
    rejected(changed(weights=[1, 0, 10**9]), "takes over .* operations")
    with pytest.raises(
        ParameterError, match=r"^no certificate for wasserstein: the query is missing"
    ):
        pf.certify(chain, 12, 2.0, mechanism="wasserstein")


FAMILIES = [
    THETA_1,
    pf.ChainFamily([THETA_1, THETA_2]),
    pf.BinaryInterval(0.4, 0.6),
    pf.MarkovChain([[0.5, 0.5], [0.5, 0.5]], [1, 0]),
    pf.MarkovChain([[0, 1], [1, 0]], [0.5, 0.5]),
    pf.MarkovChain([[1.0]]),
    INTERVALS,
    pf.PeriodicChain([P1, P2]),
    pf.MixingFamily(3, 0.5),
]


@pytest.mark.parametrize("name", [*verify.MECHANISMS, "gk16"])
def test_every_mechanism_has_a_certificate_or_a_reason(name):
    reasons = set()
    for family in FAMILIES:
        for length in (1, 20):
            try:
                document = pf.certify(family, length, 0.5, mechanism=name)
            except ParameterError as error:
                reasons.add(str(error))
                continue
            assert document["mechanism"] == name
            assert pf.verify_certificate(json.loads(json.dumps(document))).loss <= 0.5
    assert all(reason.startswith("no certificate for ") and len(reason) > 50 for reason in reasons)
    if name in ("group-dp", "leakage"):
        assert not reasons


def test_electricity(electricity):
    result = compute_scale("mqm-exact", electricity, 1_051_200, 1.0, certified=True)
    assert result.scale == pytest.approx(595.126, abs=6e-4)
    assert len(result.certificate["proofs"][0]["quilts"]) == 3
    pf.verify_certificate(read_certificate(json.dumps(result.certificate)))
    entry = copy.deepcopy(result.certificate)
    row = entry["family"]["chains"][0]["transition_matrices"][0][17]
    row[17] = str(Fraction(row[17]) - Fraction(1, 10**12))
    rejected(entry, "does not sum to 1 exactly but to 1 - 1E-12")


def test_electricity_by_couplings(electricity):
    document = pf.certify(electricity, 10**7, 1.0, mechanism="leakage", scale=157.4648)
    assert float(document["scale"]) < 157.47
    assert len(json.dumps(document)) < 1_500_000
    assert pf.verify_certificate(document).precision == 128


@pytest.mark.parametrize("start", ["any", "stationary", [1, 0, 0]])
def test_the_number_of_ranges_does_not_grow_with_the_length(start):
    chain = pf.MarkovChain([[0.9, 0.1, 0], [0.2, 0.7, 0.1], [0.3, 0, 0.7]], start)
    short, long = (pf.certify(chain, length, 0.5) for length in (1000, 10**9))
    assert short["scale"] == long["scale"]
    assert len(short["proofs"][0]["quilts"]) == len(long["proofs"][0]["quilts"]) <= 20
    pf.verify_certificate(long)


def test_periodic_and_reducible_chains():
    cycle = [[0, 1, 0], [0, 0, 1], [1, 0, 0]]
    first = pf.MarkovChain(cycle, [1, 0, 0])
    assert compute_scale("mqm-exact", first, 10**9, 2.0, certified=True).scale == pytest.approx(0.5)
    assert (
        compute_scale("mqm-exact", pf.MarkovChain(cycle), 10**6, 2.0, certified=True).scale == 5e5
    )
    split = pf.MarkovChain(np.eye(2), [0.5, 0.5])
    assert compute_scale("mqm-exact", split, 10**9, 1.0, certified=True).scale == 1e9
    transient = pf.MarkovChain([[0.5, 0.25, 0.25], [0, 0.6, 0.4], [0, 0.4, 0.6]])
    pair = pf.MarkovChain([[0.6, 0.4], [0.4, 0.6]])
    scales = [float(pf.certify(chain, 100, 1.0)["scale"]) for chain in (transient, pair)]
    assert scales[0] == pytest.approx(scales[1], rel=1e-12)


def test_tiny_probabilities_need_more_bits():
    chain = pf.MarkovChain([[1 - 1e-5, 1e-5], [0.5, 0.5]])
    for epsilon in (0.01, 30.0):
        pf.verify_certificate(pf.certify(chain, 1000, epsilon))
    pf.verify_certificate(
        pf.certify(pf.MarkovChain([[0.5, 0.5, 0], [0, 1, 1e-300], [1, 0, 0]]), 50, 1000.0)
    )


def test_fields_of_the_noise_scale():
    plain, certified = (
        compute_scale("mqm-exact", THETA_1, 100, 1.0, certified=c) for c in (False, True)
    )
    assert plain.certificate is None
    assert certified.certificate == pf.certify(THETA_1, 100, 1.0)
    assert "certificate" not in certified.to_dict()
    assert "certificate" not in repr(certified)
    assert (certified.node, certified.quilt, certified.chain) == (
        plain.node,
        plain.quilt,
        plain.chain,
    )


# -- what is rejected ------------------------------------------------------------------------------


def test_ranges(document):
    def quilts(*ranges):
        return document | {"proofs": [{"quilts": [list(r) for r in ranges]}]}

    good = [(1, 7, None, 5), (8, 8, 7, 5), (9, 9, 5, 5), (10, 95, 5, 5), (96, 100, 5, None)]
    assert quilts(*good) == document
    overlapping, empty = [(1, 8, None, 5), *good[1:]], [*good[:3], (10, 9, 5, 5)]
    for wrong in (good[1:], good[:2] + good[3:], good[::-1], overlapping, empty):
        rejected(quilts(*wrong), "do not follow node|have no quilt")
    rejected(quilts(*good[:-1]), "nodes 96 to 100 have no quilt")
    rejected(quilts(*good[:-1], (96, 101, 5, None)), "do not follow node 95 of 100")
    for a, b in ((10, 5), (5, 6), (0, 5), (-1, 5)):
        rejected(quilts(*good[:3], (10, 95, a, b), good[4]), "does not fit")
    others = {(8, 8, 6, 5): 1, (8, 8, 7, 4): 1, (10, 95, 1, 1): 3, (1, 7, None, None): 0}
    for one, place in others.items():
        rejected(quilts(*good[:place], one, *good[place + 1 :]), "is not excluded")
    rejected(document | {"proofs": []}, "there are 0 proofs for 1 members")
    rejected(document | {"proofs": document["proofs"] * 2}, "there are 2 proofs for 1 members")
    for odd in ([1, 100], [1, 100, None, "1"], [1, None, 1, 1], {}):
        rejected(
            document | {"proofs": [{"quilts": [odd]}]},
            "an entry has 2 parts, not 4|not an integer|not a list",
        )
    rejected(document | {"proofs": [{}], "scale": "99.9"}, "is not excluded")
    rejected(
        document | {"side_information": "any"}, "quilts prove scales .* for no side information"
    )


@pytest.mark.parametrize(
    ("key", "value", "reason"),
    [
        *(
            ("scale", odd, "scale is")
            for odd in (12.93, "nan", "-1", "1e999999999", "9" * 5000, "1/0", "1_0")
        ),
        ("scale", "0", "without noise a loss is not bounded"),
        ("epsilon", "0.9", "a loss of 1.00000 is not excluded, epsilon is 0.9"),
        ("epsilon", "0", "epsilon is 0"),
        ("epsilon", None, "epsilon is None, not a string"),
        ("length", 101, "nodes 101 to 101 have no quilt"),
        ("length", 99, "do not follow node 95 of 99|does not fit"),
        ("length", 100.0, "length is 100.0, not an integer"),
        ("length", True, "length is True, not an integer"),
        ("length", 10**400, "length is 1000"),
        ("window", 0, "window is 0"),
        ("side_information", "all", "side_information is 'all', not none or any"),
        ("version", 1, "version is 1; it was made before 1.0; make it anew"),
        ("version", 3, "version is 3; this program reads 2"),
        ("version", "2", "version is '2'"),
        ("version", 2.0, "version is 2.0"),
        ("certificate", "other", "no certificate of pufferflow"),
        ("mechanism", "laplace", "mechanism is 'laplace', not mqm-exact or"),
        ("family", {}, "family has one key of"),
        ("family", [], "family is a list"),
        ("family", {"chains": []}, "chains at least one chain"),
        ("family", {"chains": [3]}, "chains is 3, not an object"),
        ("family", {"chains": [], "binary_interval": ["0.3", "0.7"]}, "family has one key of"),
        ("family", {"binary_interval": ["0.3"]}, "has 1 parts, not 2"),
        ("family", {"binary_interval": ["0.7", "0.3"]}, "two numbers"),
        (
            "family",
            {"mixing": {"steps": 3, "overlap": "1.1"}},
            "overlap must be above 0 and at most 1",
        ),
        ("proofs", {}, "proofs is a dict"),
        ("extra", 1, "unknown key 'extra'"),
    ],
)
def test_fields(document, key, value, reason):
    rejected(document | {key: value}, reason)


@pytest.mark.parametrize(
    "key", ["mechanism", "family", "epsilon", "length", "scale", "window", "proofs"]
)
def test_missing_keys(document, key):
    rejected(
        {k: v for k, v in document.items() if k != key}, f"the certificate lacks the key {key}"
    )


@pytest.mark.parametrize(
    ("matrix", "start", "reason"),
    [
        ([], "any", "has no rows"),
        ([["1"], ["1"]], "any", "no square matrix"),
        (
            [["0.9", "0.2"], ["0.4", "0.6"]],
            ["1", "0"],
            r"does not sum to 1 exactly but to 1 \+ 0.1",
        ),
        (
            [["0.9", "0.1"], ["0.4", "0.6"]],
            ["1", "0", "0"],
            "initial distribution has not one entry a state",
        ),
        ([["0.9", "0.1"], ["0.4", "0.6"]], "anything", "initial_distribution is 'anything'"),
        ([["1", "0"], ["0", "1"]], "stationary", "not unique"),
        ([["0.91", "0.09"], ["0.4", "0.6"]], ["1", "0"], "is not excluded"),
        ("1", "any", "transition_matrices is '1'"),
    ],
)
def test_chains(document, matrix, start, reason):
    chain = {"transition_matrices": [matrix], "initial_distribution": start}
    rejected(document | {"family": {"chains": [chain]}}, reason)


def test_the_interval_decides_about_its_chain():
    document = pf.certify(pf.BinaryInterval(0.2, 0.7), 100, 1.0)
    pf.verify_certificate(document)
    rejected(document | {"family": {"binary_interval": ["0.19", "0.7"]}}, "is not excluded")
    rejected(document | {"family": {"binary_interval": ["0.2", "0.81"]}}, "is not excluded")


@pytest.mark.parametrize(
    ("low", "high", "reason"),
    [
        (["0.3", "0.8"], ["0.5", "0.9"], "no distribution lies between its bounds"),
        (["0.3", "0.7"], ["0.2", "0.7"], "a lower bound above the upper one"),
    ],
)
def test_bounds(low, high, reason):
    family = {"interval": {"low": [low] * 2, "high": [high] * 2}}
    claim = pf.certify(INTERVALS, 9, 1.0, mechanism="group-dp")
    rejected(claim | {"family": family}, reason)


@pytest.mark.parametrize(
    "text",
    [b"", b"{", b"\xff", b"[" * 100_000, b'{"a": 1, "a": 2}', b'{"length": ' + b"9" * 5000 + b"}"],
)
def test_texts_that_are_no_json(text):
    with pytest.raises(CertificateError):
        read_certificate(text)
    for other in ("null", "3", "[]", "NaN", '"x"', "{}"):
        rejected(read_certificate(other), "no certificate of pufferflow")


# -- the commands ----------------------------------------------------------------------------------


@pytest.fixture
def files(tmp_path):
    model = tmp_path / "model.json"
    model.write_text(
        json.dumps({"chains": [{"transition_matrix": P1, "initial_distribution": [1, 0]}]})
    )
    return model, tmp_path / "out.json"


def test_scale_and_verify(files, run, monkeypatch):
    model, out = files
    code, printed, _ = run("scale", model, "--length", 100, "--epsilon", 1, "--certificate", out)
    assert code == 0
    assert "12.934051086186921" in printed
    assert run("verify", out) == (
        0,
        "verified: mqm-exact at epsilon 1 for 1 chain of 2 states, segments of up to 100 records: "
        "protects single records, side information none: at scale 12.934051086186921 the loss is "
        "at most 0.99999999999997190\n",
        "",
    )
    code, printed, _ = run("verify", out, "--json")
    fields = json.loads(printed)
    assert (code, fields["verified"], fields["scale"]) == (0, True, "12.934051086186921")
    assert Fraction(fields["loss"]) <= 1
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(out.read_bytes())))
    assert run("verify", "-")[0] == 0


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        (
            "12.934051086186921",
            "12.934051085186921",
            "a loss of 1.00000 is not excluded, epsilon is 1",
        ),
        ("{", "", "the file is not JSON"),
    ],
)
def test_verify_rejects(files, run, old, new, reason):
    model, out = files
    run("scale", model, "--length", 100, "--epsilon", 1, "--certificate", out)
    text = out.read_text()
    assert old in text
    out.write_text(text.replace(old, new, 1))
    code, printed, message = run("verify", out)
    assert (code, printed, message.count("\n")) == (2, "", 1)
    assert message.startswith("pufferflow: error: certificate rejected: ")
    assert reason in message


def test_the_scale_that_was_asked_for_is_the_one_certified(files, run):
    model, out = files
    arguments = ("scale", model, "--length", 100, "--epsilon", 1)
    arguments += ("--mechanism", "mqm-approx", "--eigengap", "general")
    _, plain, _ = run(*arguments, "--json")
    code, certified, _ = run(*arguments, "--json", "--certificate", out)
    assert code == 0
    assert json.loads(certified) == json.loads(plain)
    assert json.loads(out.read_text())["scale"] == repr(json.loads(plain)[0]["scale"])
    assert run("verify", out)[0] == 0


def test_commands_that_cannot_be_obeyed(files, run):
    model, out = files
    arguments = ("scale", model, "--length", 10, "--epsilon", 1, "--certificate", out)
    for more in (("--epsilon", 2), ("--mechanism", "gk16", "--mechanism", "mqm-exact")):
        code, _, message = run(*arguments, *more)
        assert code == 2
        assert "--certificate needs a single --epsilon" in message
    code, _, message = run("verify", out)
    assert code == 2
    assert "cannot read" in message
    assert not out.exists()
