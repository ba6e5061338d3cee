"""What is asked is computed, charged and certified: windows of records, side information."""

import json
import math
from itertools import pairwise, product

import numpy as np
import pytest
from cases import examples
from hypothesis import given
from hypothesis import strategies as st
from random_chains import chains

import pufferflow as pf
from pufferflow.audit import CountQuery, HistogramQuery
from pufferflow.errors import ParameterError
from pufferflow.mechanisms import MECHANISMS, compute_scale

BINARY = pf.MarkovChain([[0.7, 0.3], [0.4, 0.6]])
UNFIT = {
    "window": {"gk16", "wasserstein"},
    "side_information": {"gk16", "wasserstein", "mqm-exact", "mqm-approx"},
}


@pytest.mark.parametrize("asked", [{"window": 3}, {"side_information": "any"}])
@pytest.mark.parametrize("name", MECHANISMS)
def test_what_a_mechanism_has_no_bound_for_is_not_applicable(name, asked):
    result = compute_scale(name, BINARY, 50, 5.0, **asked)
    assert (result.scale is None) == (name in UNFIT[next(iter(asked))])
    assert result.to_dict() | asked == result.to_dict()
    if result.scale is None:
        assert len(result.reason) > 20
        with pytest.raises(ParameterError, match=f"no certificate for '?{name}"):
            pf.certify(BINARY, 50, 5.0, mechanism=name, **asked)


def test_the_noise_of_a_group_and_of_entries():
    assert pf.group_dp(BINARY, 50, 5.0, window=9, side_information="any").scale == 10
    assert pf.mechanisms.entry_dp(BINARY, 50, 5.0, window=10).scale == 2


@pytest.mark.parametrize("side_information", ["none", "any"])
def test_guarantee_and_accountant_state_what_is_asked(side_information):
    asked = {"window": 4, "side_information": side_information}
    scale = pf.leakage(BINARY, 9, 1.0, **asked).scale
    guarantee = pf.Accountant.guarantee
    assert guarantee(BINARY, 9, scale, "leakage", **asked) == pytest.approx(1.0, rel=1e-6)
    assert math.isinf(guarantee(BINARY, 9, scale, "gk16", **asked))
    account, narrow = pf.Accountant(BINARY, 9, **asked), pf.Accountant(BINARY, 9)
    for one in (account, narrow):
        one.add(scale)
        one.add(scale)
    assert account.cost().leakage == pytest.approx(
        pf.leakage_loss(BINARY, 9, scale / 2, **asked), rel=1e-9
    )
    assert account.cost().epsilon > narrow.cost().epsilon


@pytest.mark.parametrize("side_information", ["none", "any"])
@pytest.mark.parametrize("window", [1, 3, 60])
def test_certificates_hold_for_what_they_name(window, side_information):
    result = pf.leakage(BINARY, 50, 1.0, window=window, side_information=side_information)
    proved = result.certified(BINARY)
    assert (proved.window, proved.side_information) == (window, side_information)
    assert result.scale * (1 - 1e-6) <= proved.scale <= 1.3 * result.scale
    said = pf.verify_certificate(json.loads(json.dumps(proved.certificate))).subject
    assert ("single records" if window == 1 else f"any {window} records in a row") in said
    assert said.endswith(f"side information {side_information}")


def plain_exact_loss(matrix, starts, length, scale, counted, window):
    """Largest log ratio of the densities of a noisy count given two windows, over all sequences and
    whole outputs.
    """
    k, worst = len(matrix), 0.0
    for start, i in product(starts, range(length - min(window, length) + 1)):
        densities = {}
        for s in product(range(k), repeat=length):
            p = start[s[0]] * math.prod(matrix[x][y] for x, y in pairwise(s))
            if p:
                noisy = np.exp(
                    -np.abs(np.arange(length + 1) - sum(x in counted for x in s)) / scale
                )
                total, density = densities.get(s[i : i + window], (0.0, 0.0))
                densities[s[i : i + window]] = total + p, density + p * noisy
        for (p, one), (q, other) in product(densities.values(), repeat=2):
            worst = max(worst, float(np.log((one / p) / (other / q)).max()))
    return worst


@given(
    chains(3, st.sampled_from([0.0, 0.05, 0.3, 1.0])),
    st.integers(1, 5),
    st.integers(1, 4),
    st.sampled_from([0.3, 1.0, 4.0]),
)
@examples(10, 170)
def test_exact_losses_of_windows_equal_their_enumeration(chain, length, window, scale):
    found = pf.privacy_loss(chain, length, scale, CountQuery({0}), window=window)
    k, starts = chain.states, [chain.initial_distribution]
    if chain.start == "any":  # attained at mixtures of two starts
        starts = [
            a * np.eye(k)[x] + (1 - a) * np.eye(k)[y]
            for x, y in product(range(k), repeat=2)
            for a in (1e-9, 0.5)
        ]
    plain = plain_exact_loss(chain.transition_matrix, starts, length, scale, {0}, window)
    assert (
        plain - 1e-9
        <= found.loss
        <= pf.leakage_loss(chain, length, scale, window=window) * (1 + 1e-9) + 1e-12
    )
    if chain.start != "any":
        assert found.loss == pytest.approx(plain, rel=1e-9, abs=1e-11)
        assert found.lower <= found.loss
    if found.pair is not None and window > 1 and length > 1:
        assert all(len(states) == min(window, length) for states in found.pair)
        assert json.loads(json.dumps(found.to_dict()))["window"] == window


def test_exact_losses_of_windows_are_of_counts():
    least = pf.audit.smallest_scale(BINARY, 8, 1.0, CountQuery({1}), window=2)
    assert pf.audit.smallest_scale(BINARY, 8, 1.0, CountQuery({1})).scale < least.scale
    assert least.scale <= pf.leakage(BINARY, 8, 1.0, window=2).scale * 1.001
    with pytest.raises(ParameterError, match="window is 2"):
        pf.privacy_loss(BINARY, 5, 1.0, HistogramQuery(), window=2)
