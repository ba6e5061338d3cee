"""Results of mechanisms, their noise and its exact loss, certificates; scales: see worked.txt."""

import copy
import io
import json
from fractions import Fraction
from itertools import combinations_with_replacement
from types import SimpleNamespace

import numpy as np
import plain_influence
import pytest
from shipped_counts import electricity_transitions

import pufferflow as pf
from pufferflow.audit import CountQuery, HistogramQuery, chain_sensitivity, privacy_losses
from pufferflow.errors import CertificateError
from pufferflow.mechanisms import MECHANISMS, compute_scale, find_mechanism
from pufferflow.models.files import write_model

WEAK = pf.MarkovChain([[0.6, 0.4], [0.4, 0.6]])
FIELDS = [
    *("mechanism", "epsilon", "length", "scale", "status", "reason", "node", "quilt", "influence"),
    *("chain", "count", "window", "side_information"),
]


@pytest.mark.parametrize("name", MECHANISMS)
def test_results_name_their_setting_and_are_plain_json(name):
    assert MECHANISMS[name] is find_mechanism(name)
    result = MECHANISMS[name](WEAK, [5, 50], 1)
    assert (result.mechanism, result.status, result.reason) == (name, "ok", "")
    assert result.length == (5 if name == "wasserstein" else 50)
    fields = json.loads(json.dumps(result.to_dict()))
    assert list(fields) == FIELDS
    assert fields["scale"] == result.scale
    assert type(result.scale) is float


@pytest.mark.parametrize("several", [[1.0], (0.5, 2.0), np.array([0.5, 2.0])])
@pytest.mark.parametrize(
    "function", [*MECHANISMS.values(), pf.certify, pf.event_epsilon, pf.lower_bound]
)
def test_several_epsilons_have_a_list_of_results(function, several):
    alone = [function(WEAK, [5, 50], float(epsilon)) for epsilon in several]
    assert function(WEAK, [5, 50], epsilon=several) == alone


@pytest.mark.parametrize("rare", [1 / 8, 1 / 64])
def test_the_printed_eigengap_would_be_too_large(rare):
    """Of a chain whose PP* is reducible, {0, 2} and {1} apart: half of what is needed and less."""
    chain = pf.MarkovChain([[rare, 1 - rare, 0], [0, 0, 1], [rare, 1 - rare, 0]])
    product = np.linalg.eigvals(chain.transition_matrix @ chain.time_reversal).real
    printed_gap = min(1 - abs(value) for value in product if value < 1 - 1e-9)
    assert (printed_gap, chain.eigengap("general")) == (pytest.approx(1), 0)
    smallest = float(chain.stationary_distribution.min())
    printed = plain_influence.approximate_noise_scale(150, 1.0, smallest, printed_gap)
    exact = pf.mqm_exact(chain, 150, 1.0).scale
    assert printed < exact / 1.9
    assert pf.mqm_approx(chain, 150, 1.0).scale >= exact


@pytest.mark.parametrize("alpha", [0.2, 0.3])
def test_the_corner_of_the_synthetic_class_has_the_largest_w(alpha):
    """On grids; of the whole class that is not proved."""
    stays = np.linspace(alpha, 1 - alpha, 5)
    pairs = combinations_with_replacement(stays, 2)  # exchanging the states changes nothing
    chains = (pf.MarkovChain([[p, 1 - p], [1 - q, q]], "any") for p, q in pairs)
    found = [chain_sensitivity(chain, 30, [0, 1]).W for chain in chains]
    assert max(found) == found[-1]


def test_the_command_counts_the_states_that_are_named(tmp_path, run):
    chain = pf.MarkovChain([[0.5, 0.3, 0.2], [0.2, 0.6, 0.2], [0.3, 0.3, 0.4]])
    model, proof = write_model(tmp_path / "model.json", chain), tmp_path / "proof.json"
    asked = ("scale", model, "--length", 30, "--epsilon", 1, "--mechanism", "wasserstein", "--json")
    assert json.loads(run(*asked)[1])[0]["status"] == "not applicable"
    counted = (*asked, "--count", 0, "--count", 2)
    expected = pf.wasserstein(chain, 30, 1.0, states=[0, 2]).to_dict() | {"private": True}
    assert json.loads(run(*counted)[1]) == [expected]
    assert run(*counted, "--length", 7, "--certificate", proof)[0] == 0
    assert json.loads(proof.read_text())["proofs"][0]["count"]["lengths"] == [7, 30]
    assert "the count with weights 1, 0, 1 alone" in run("verify", proof)[1]


@pytest.mark.parametrize("side_information", ["none", "any"])
def test_windows_and_side_information_are_computed_and_certified(side_information):
    chain = pf.MarkovChain([[0.7, 0.3], [0.4, 0.6]])
    for window, said in ((1, "single records"), (3, "any 3 records in a row"), (60, "any 60")):
        asked = {"window": window, "side_information": side_information}
        result = pf.leakage(chain, 50, 1.0, **asked)
        assert result.to_dict() | asked == result.to_dict()
        proved = result.certified(chain)
        assert (proved.window, proved.side_information) == (window, side_information)
        assert result.scale * (1 - 1e-6) <= proved.scale <= 1.3 * result.scale
        found = pf.verify_certificate(json.loads(json.dumps(proved.certificate))).subject
        assert said in found
        assert found.endswith(f"side information {side_information}")


# -- the exact loss --------------------------------------------------------------------------------

THETA_1 = pf.MarkovChain([[0.9, 0.1], [0.4, 0.6]], [1, 0])


@pytest.mark.parametrize("query", [CountQuery({1}), HistogramQuery()])
@pytest.mark.parametrize("start", ["stationary", "any"])
def test_losses_at_several_scales_are_those_of_the_worst_chain_at_each(query, start):
    matrices = [[0.8, 0.2], [0.3, 0.7]], [[0.6, 0.4], [0.1, 0.9]]
    chains = [pf.MarkovChain(matrix, start) for matrix in matrices]
    scales = [5.0, 0.7, 40.0]
    found = privacy_losses(pf.ChainFamily(chains), 9, scales, query)
    for scale, one in zip(scales, found, strict=True):
        alone = [pf.privacy_loss(chain, 9, scale, query).loss for chain in chains]
        assert one == pf.privacy_loss(pf.ChainFamily(chains), 9, scale, query)
        assert (one.loss, one.chain) == (max(alone), int(np.argmax(alone)))


@pytest.fixture
def audit(tmp_path, run):
    def audit_(*arguments, chain=THETA_1, epsilon=("--epsilon", 1)):
        return run("audit", write_model(tmp_path / "model.json", chain), *epsilon, *arguments)

    return audit_


def rows_of(result):
    code, out, err = result
    assert (code, err) == (0, "")
    return {row["mechanism"]: row for row in json.loads(out)}


def test_audit_of_all_mechanisms_states_which_do_not_apply(audit):
    asked = ("--length", 30, "--count", 1)
    rows, printed = rows_of(audit(*asked, "--json")), audit(*asked)[1]
    assert set(rows) == set(MECHANISMS)
    assert rows["gk16"]["loss"] is None
    assert rows["gk16"]["reason"] in printed
    assert rows["entry-dp"]["ratio"] > 1 > rows["mqm-exact"]["ratio"]
    assert printed.splitlines()[1].split()[:2] == ["mechanism", "scale"]
    for name, row in rows.items():
        if row["loss"] is not None:
            assert row["scale"] == MECHANISMS[name](THETA_1, 30, 1.0).scale
            exact = pf.privacy_loss(THETA_1, 30, row["scale"], CountQuery({1}))
            assert (row["loss"], row["lower"]) == (exact.loss, exact.lower)
            assert (row["guarantee"], row["ratio"]) == (1.0, exact.loss)


def test_audit_of_windows(audit):
    rows = rows_of(audit("--length", 40, "--count", 1, "--protect", 5, "--json"))
    scale = pf.leakage(THETA_1, 40, 1.0, window=5).scale
    assert (rows["leakage"]["scale"], rows["leakage"]["window"]) == (scale, 5)
    exact = pf.privacy_loss(THETA_1, 40, scale, CountQuery([1]), window=5)
    assert rows["leakage"]["loss"] == exact.loss <= 1
    assert rows["wasserstein"]["scale"] is None
    assert "windows of 5" in audit("--length", 40, "--count", 1, "--scale", 30, "--protect", 5)[1]


def test_audit_of_wasserstein_is_of_the_states_counted(audit):
    three = pf.MarkovChain([[0.8, 0.1, 0.1], [0.3, 0.6, 0.1], [0.2, 0.2, 0.6]])
    asked = ("--length", 20, "--mechanism", "wasserstein", "--json")
    (row,) = rows_of(audit("--count", 2, *asked, chain=three)).values()
    assert row["scale"] == pf.wasserstein(three, 20, 1.0, states=[2]).scale
    assert row["loss"] <= 1
    (row,) = rows_of(audit("--histogram", *asked, chain=three)).values()
    assert row["scale"] is None
    assert "the query is missing" in row["reason"]


def test_audit_of_a_scale_and_of_one_mechanism_with_an_option(audit):
    asked = ("--length", 20, "--histogram", "--scale", 3)
    (row,) = rows_of(audit(*asked, "--json", epsilon=())).values()
    assert (row["guarantee"], row["ratio"], row["query"]) == (None, None, "histogram")
    assert row["loss"] == pf.privacy_loss(THETA_1, 20, 3.0, HistogramQuery()).loss
    assert "-" in audit(*asked, epsilon=())[1]
    asked = ("--length", 100, "--count", 1, "--mechanism", "mqm-exact", "--convention", "published")
    assert "0.23746252" in audit(*asked)[1]
    asked = ("--histogram", "--mechanism", "group-dp", "--length", 20)
    assert audit(*asked)[0] == audit(*asked, "--most-work", 1e9)[0] == 0


def test_a_scale_of_zero_is_a_fact_and_the_other_rows_go_on(audit):
    """A count of all states is the same for every secret."""
    asked = ("--length", 20, "--count", 0, "--count", 1)
    rows = rows_of(audit(*asked, "--json"))
    nothing = rows.pop("wasserstein")
    assert nothing["scale"] == nothing["loss"] == nothing["ratio"] == 0
    assert nothing["status"] == "ok"
    assert "reveals nothing" in nothing["reason"]
    assert "reveals nothing" in audit(*asked)[1]
    assert all(row["loss"] < 1e-9 for row in rows.values() if row["scale"] is not None)


def test_a_scale_too_small_to_audit_costs_its_row_only(audit):
    """Asked for by name, it is an error: see refusals.txt."""
    rows = rows_of(audit("--length", 5, "--count", 1, "--json", epsilon=("--epsilon", 200)))
    assert (rows["entry-dp"]["loss"], rows["entry-dp"]["status"]) == (None, "not audited")
    assert "at least 0.00667" in rows["entry-dp"]["reason"]
    assert rows["group-dp"]["loss"] > 0


# -- certificates of known scales ------------------------------------------------------------------

THETA_2 = pf.MarkovChain([[0.8, 0.2], [0.3, 0.7]], [0.9, 0.1])
BOTH = pf.ChainFamily([THETA_2, THETA_1])
ANY = pf.MarkovChain([[0.9, 0.1], [0.1, 0.9]], "any")
HALF = pf.BinaryInterval(0.5, 0.5)
TRANSIENT = pf.MarkovChain([[0.5, 0.25, 0.25], [0, 0.6, 0.4], [0, 0.4, 0.6]])
NEVER = pf.MarkovChain([[0.25, 0.75, 0], [0.25, 0.75, 0], [0, 0.5, 0.5]])


@pytest.fixture(scope="module")
def electricity():
    return pf.fit_chain(electricity_transitions())[0]


def rejected(document, reason):
    with pytest.raises(CertificateError, match=reason):
        pf.verify_certificate(document)


def verified(document):
    return pf.verify_certificate(json.loads(json.dumps(document)))


BINARY = [pf.BinaryInterval(*ends) for ends in ((0.5, 0.5), (0.3, 0.7), (0.1, 0.6))]
CASES = [(family, "exact") for family in (THETA_1, THETA_2, BOTH, ANY, TRANSIENT, *BINARY)]
CASES += [(THETA_1, "published"), (BOTH, "published")]


@pytest.mark.parametrize(("family", "convention"), CASES)
def test_scales_of_quilts_are_proved_and_hardly_smaller_ones_are_not(family, convention):
    asked = (family, 100, 1.0)
    plain = compute_scale("mqm-exact", *asked, convention=convention)
    result = plain.certified(family)
    assert plain.certificate is None
    assert result.scale == pytest.approx(plain.scale, rel=1e-12)
    assert result.to_dict() | {"scale": plain.scale} == plain.to_dict()
    found = verified(result.certificate)
    assert found.loss <= 1
    if convention == "exact":
        assert result.certificate == pf.certify(family, 100, 1.0)
        assert found.loss > 1 - Fraction(1, 10**12)
        lowered = result.certificate | {"scale": repr(result.scale * (1 - 1e-9))}
        rejected(lowered, r"a loss of 1.00001 is not excluded, epsilon is 1")


@pytest.mark.parametrize("length", [1, 3, 10**9])
@pytest.mark.parametrize("chain", [pf.MarkovChain([[0.3, 0.7]] * 2, [0.9, 0.1]), HALF, NEVER])
def test_entry_dp_of_independent_records(chain, length):
    for epsilon in (0.1, 0.3, 1.0):
        document = pf.certify(chain, length, epsilon, mechanism="entry-dp")
        assert float(document["scale"]) == pytest.approx(1 / epsilon, rel=2e-13)  # balls around 1
        assert Fraction(document["scale"]) >= 1 / Fraction(str(epsilon))
        verified(document)
    verified(pf.certify(THETA_1, 1, 1.0, mechanism="entry-dp"))


@pytest.mark.parametrize("chain", [HALF, pf.MarkovChain([[0.3, 0.7], [0.3, 0.7]])])
def test_wasserstein_of_independent_records(chain):
    """W = 1, but the distribution functions are equal there up to rounding: plans have slack."""
    document = pf.certify(chain, 30, 1.0, mechanism="wasserstein")
    proof = document["proofs"][0]["count"]
    assert (proof["W"], proof["slack"]) == (1, "1e-9")
    assert 1 < float(document["scale"]) < 1 + 2e-9
    verified(document)


def test_electricity(electricity):
    result = pf.mqm_exact(electricity, 1_051_200, 1.0).certified(electricity)
    assert result.scale == pytest.approx(595.126, abs=6e-4)
    assert len(result.certificate["proofs"][0]["quilts"]) == 3
    verified(result.certificate)
    entry = copy.deepcopy(result.certificate)
    row = entry["family"]["chains"][0]["transition_matrices"][0][17]
    row[17] = str(Fraction(row[17]) - Fraction(1, 10**12))
    rejected(entry, "does not sum to 1 exactly .off by -1E-12.")
    known = pf.NoiseScale("leakage", 1.0, 10**7, 157.4648)
    document = known.certified(electricity).certificate
    assert float(document["scale"]) < 157.47
    assert len(json.dumps(document)) < 1_500_000
    assert pf.verify_certificate(document).precision == 128


@pytest.mark.parametrize("start", ["any", "stationary", [1, 0, 0]])
def test_the_number_of_ranges_does_not_grow_with_the_length(start):
    chain = pf.MarkovChain([[0.9, 0.1, 0], [0.2, 0.7, 0.1], [0.3, 0, 0.7]], start)
    short, long = (pf.certify(chain, length, 0.5) for length in (1000, 10**9))
    assert short["scale"] == long["scale"]
    assert len(short["proofs"][0]["quilts"]) == len(long["proofs"][0]["quilts"]) <= 20
    verified(long)


def test_the_interval_decides_about_its_chain():
    document = pf.certify(pf.BinaryInterval(0.2, 0.7), 100, 1.0)
    verified(document)
    for ends in (["0.19", "0.7"], ["0.2", "0.81"]):
        rejected(document | {"family": {"binary_interval": ends}}, "is not excluded")


def test_scale_and_verify(tmp_path, run, monkeypatch):
    model, out = write_model(tmp_path / "model.json", THETA_1), tmp_path / "out.json"
    asked = ("scale", model, "--length", 100, "--epsilon", 1)
    approx = (*asked, "--mechanism", "mqm-approx", "--eigengap", "general", "--json")
    code, certified, _ = run(*approx, "--certificate", out)
    assert (code, certified) == (0, run(*approx)[1])  # that scale, not the least
    assert json.loads(out.read_text())["scale"] == repr(json.loads(certified)[0]["scale"])
    assert run("verify", out)[0] == 0
    code, _, refused = run(*asked, "--certificate", out)
    assert (code, "exists" in refused) == (2, True)
    out.unlink()
    assert "12.934051086186921" in run(*asked, "--certificate", out)[1]
    said = "mqm-exact at epsilon 1 for 1 chain of 2 states, segments of up to 100 records: protects"
    said += (
        " single records, side information none: at scale 12.934051086186921 the loss is at most"
    )
    assert run("verify", out) == (0, f"verified: {said} 0.99999999999997190\n", "")
    code, printed, _ = run("verify", out, "--json")
    fields = json.loads(printed)
    assert (code, fields["verified"], fields["scale"]) == (0, True, "12.934051086186921")
    assert Fraction(fields["loss"]) <= 1
    text = out.read_bytes()
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(text)))
    assert run("verify", "-")[0] == 0
    out.write_bytes(text.replace(b"12.934051086186921", b"12.934051085186921", 1))
    sentence = "certificate rejected: a loss of 1.00001 is not excluded, epsilon is 1\n"
    assert run("verify", out) == (2, "", f"pufferflow: error: {sentence}")
