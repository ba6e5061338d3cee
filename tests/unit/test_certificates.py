"""Certificates of known scales, and the commands; refusals.txt has what the verifier refuses."""

import copy
import io
import json
from fractions import Fraction
from types import SimpleNamespace

import pytest
from shipped_counts import electricity_transitions

import pufferflow as pf
from pufferflow.errors import CertificateError
from pufferflow.mechanisms import compute_scale
from pufferflow.models.files import write_model
from pufferflow.verify import read_certificate

P1, P2 = [[0.9, 0.1], [0.4, 0.6]], [[0.8, 0.2], [0.3, 0.7]]
THETA_1, THETA_2 = pf.MarkovChain(P1, [1, 0]), pf.MarkovChain(P2, [0.9, 0.1])
BOTH = pf.ChainFamily([THETA_2, THETA_1])
ANY = pf.MarkovChain([[0.9, 0.1], [0.1, 0.9]], "any")
HALF = pf.BinaryInterval(0.5, 0.5)
TRANSIENT = pf.MarkovChain([[0.5, 0.25, 0.25], [0, 0.6, 0.4], [0, 0.4, 0.6]])
NEVER = pf.MarkovChain([[0.25, 0.75, 0], [0.25, 0.75, 0], [0, 0.5, 0.5]])
INTERVALS = pf.IntervalFamily([[0.5, 0.2], [0.3, 0.4]], [[0.8, 0.5], [0.6, 0.7]])


@pytest.fixture(scope="module")
def electricity():
    return pf.fit_chain(electricity_transitions())[0]


def rejected(document, reason):
    with pytest.raises(CertificateError, match=reason):
        pf.verify_certificate(document)


def verified(document):
    return pf.verify_certificate(read_certificate(json.dumps(document)))


# -- what is proved --------------------------------------------------------------------------------


BINARY = [pf.BinaryInterval(*ends) for ends in ((0.5, 0.5), (0.3, 0.7), (0.1, 0.6))]
CASES = [(family, "exact") for family in (THETA_1, THETA_2, BOTH, ANY, TRANSIENT, *BINARY)]
CASES += [(THETA_1, "published"), (BOTH, "published")]


@pytest.mark.parametrize(("family", "convention"), CASES)
def test_scales_of_quilts_are_proved_and_hardly_smaller_ones_are_not(family, convention):
    asked = (family, 100, 1.0)
    plain = compute_scale("mqm-exact", *asked, convention=convention)
    result = compute_scale("mqm-exact", *asked, convention=convention, certified=True)
    assert plain.certificate is None
    assert result.scale == pytest.approx(plain.scale, rel=1e-12)
    assert result.to_dict() | {"scale": plain.scale} == plain.to_dict()
    found = verified(result.certificate)
    assert found.loss <= 1
    if convention == "exact":
        assert result.certificate == pf.certify(family, 100, 1.0)
        assert found.loss > 1 - Fraction(1, 10**12)
        lowered = result.certificate | {"scale": repr(result.scale * (1 - 1e-9))}
        rejected(lowered, r"a loss of 1.00000 is not excluded, epsilon is 1")


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
    result = compute_scale("mqm-exact", electricity, 1_051_200, 1.0, certified=True)
    assert result.scale == pytest.approx(595.126, abs=6e-4)
    assert len(result.certificate["proofs"][0]["quilts"]) == 3
    verified(result.certificate)
    entry = copy.deepcopy(result.certificate)
    row = entry["family"]["chains"][0]["transition_matrices"][0][17]
    row[17] = str(Fraction(row[17]) - Fraction(1, 10**12))
    rejected(entry, "does not sum to 1 exactly but to 1 - 1E-12")
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


# -- the commands ----------------------------------------------------------------------------------


def test_scale_and_verify(tmp_path, run, monkeypatch):
    model, out = write_model(tmp_path / "model.json", THETA_1), tmp_path / "out.json"
    asked = ("scale", model, "--length", 100, "--epsilon", 1)
    approx = (*asked, "--mechanism", "mqm-approx", "--eigengap", "general", "--json")
    code, certified, _ = run(*approx, "--certificate", out)
    assert (code, certified) == (0, run(*approx)[1])  # that scale, not the least
    assert json.loads(out.read_text())["scale"] == repr(json.loads(certified)[0]["scale"])
    assert run("verify", out)[0] == 0
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
    sentence = "certificate rejected: a loss of 1.00000 is not excluded, epsilon is 1\n"
    assert run("verify", out) == (2, "", f"pufferflow: error: {sentence}")
