"""Certificates of interval families against chains drawn from them."""

from fractions import Fraction

import numpy as np
import pytest
from cases import examples
from hypothesis import given
from hypothesis import strategies as st
from interval_families import draw, family, log_ratios

import pufferflow as pf
from pufferflow import verify
from pufferflow.verify import intervals
from pufferflow.verify.intervals import IntervalScores

SEEDS = st.integers(0, 2**32 - 1)
STATES = st.integers(1, 4)
WIDTHS = st.sampled_from([0.0, 1e-9, 0.001, 0.01, 0.03, 0.1, 0.3, 1.0])
STICKY = st.sampled_from([0.0, 0.5, 0.9])
EPSILONS = st.sampled_from([0.1, 0.5, 1.0, 3.0, 10.0])
ZEROS = st.sampled_from([0.0, 0.2])


@st.composite
def listings(draw_from):
    """Distances with any steps that may lead to them."""
    pairs = [(draw_from(st.integers(1, 4)), 0)]
    for _ in range(draw_from(st.integers(0, 8))):
        n = pairs[-1][0] + draw_from(st.integers(0, 4))
        steps = [m for m in (1, 2, 3, 4, 7) if m < n and n - m >= pairs[0][0]]
        pairs.append((n, draw_from(st.sampled_from([0, *steps]))))
    return pairs


@given(SEEDS, STATES, WIDTHS, STICKY, ZEROS, listings(), st.sampled_from([10, 1]))
@examples(8, 340)
def test_the_bounds_hold_for_chains_of_the_family(seed, k, width, sticky, zeros, pairs, most_sets):
    """Whatever is listed: the verifier alone decides, with sets and without, step by step and in halves."""
    rng = np.random.default_rng(seed)
    box = family(rng, k, width, sticky, zeros)
    document = pf.certify(box, 100, 1.0) | {"bounds": [list(pair) for pair in pairs]}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(intervals, "MOST_SETS", most_sets)
        patch.setattr(intervals, "STEPWISE", 2)
        [scores] = verify.parse(document).scores()
    assert isinstance(scores, IntervalScores)
    for trial in range(6):
        P = draw(box, rng, corner=trial % 2)
        for n, ratios in zip(scores.distances, scores.ratios, strict=True):
            power = np.linalg.matrix_power(P, n)
            forward, backward = log_ratios(power)
            slack = 1e-12 / power[power > 0].min()
            assert ratios.forward is None or forward <= float(ratios.forward.log()) + slack
            assert ratios.backward is None or backward <= float(ratios.backward.log()) + slack


@given(SEEDS, STATES, WIDTHS, STICKY, EPSILONS, st.sampled_from([1, 2, 7, 40, 10**5, 10**9]))
@examples(8, 270)
def test_certified_scales(seed, k, width, sticky, epsilon, length):
    rng = np.random.default_rng(seed)
    box = family(rng, k, width, sticky)
    plain, certified = (pf.mqm_exact(box, length, epsilon, certified=c) for c in (False, True))
    # the search rounds up at every step
    assert plain.scale * (1 - 1e-7) <= certified.scale <= plain.scale * (1 + 1e-12)
    found = pf.verify_certificate(certified.certificate)
    assert found.upper <= Fraction(certified.scale) <= found.upper * (1 + Fraction(1, 10**15))
    for trial in range(4):
        chain = pf.MarkovChain(draw(box, rng, corner=trial % 2), "any")
        for convention in ("exact", "published"):
            # an error in an influence acts as one of ε
            exact = pf.mqm_exact(chain, length, epsilon + 1e-10, convention=convention)
            assert exact.scale <= certified.scale * (1 + 1e-12)


@given(SEEDS, st.integers(2, 4), STICKY, EPSILONS, st.data())
@examples(8, 110)
def test_changed_bounds_are_rejected_or_serve_as_well(seed, k, sticky, epsilon, data):
    rng = np.random.default_rng(seed)
    box = family(rng, k, 0.03, sticky)
    document = pf.certify(box, 200, epsilon)
    bounds = document["family"]["interval"]
    i, j = (data.draw(st.integers(0, k - 1)) for _ in range(2))
    side = data.draw(st.sampled_from(["low", "high"]))
    factor = Fraction(data.draw(st.sampled_from(["0.5", "0.99", "1.01", "1.5"])))
    bounds[side][i][j] = str(Fraction(bounds[side][i][j]) * factor)
    try:
        pf.verify_certificate(document)
    except pf.CertificateError:
        return
    low, high = ([[float(Fraction(p)) for p in row] for row in bounds[side]] for side in ("low", "high"))
    changed = pf.IntervalFamily(low, np.minimum(high, 1))
    for trial in range(4):
        chain = pf.MarkovChain(draw(changed, rng, corner=trial % 2), "any")
        exact = pf.mqm_exact(chain, 200, epsilon + 1e-10)
        assert exact.scale <= float(document["scale"]) * (1 + 1e-12)


@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_steps_that_no_chain_takes(epsilon):
    """From either end the other one is two steps away: one step there has probability 0 between the bounds, too."""
    low = [[0.5, 0.2, 0], [0.2, 0.4, 0.2], [0, 0.2, 0.5]]
    box = pf.IntervalFamily(low, [[0.8, 0.5, 0], [0.4, 0.6, 0.4], [0, 0.5, 0.8]])
    plain, certified = (pf.mqm_exact(box, 1000, epsilon, certified=c) for c in (False, True))
    assert certified.scale == pytest.approx(plain.scale, rel=1e-7)
    assert (
        pf.verify_certificate(certified.certificate).upper <= Fraction(certified.scale) < 1000 / Fraction(epsilon) / 2
    )
    document = pf.certify(box, 1000, epsilon) | {"bounds": [[1, 0], [2, 0], [3, 0]]}
    [scores] = verify.parse(document).scores()
    for n in (1, 2, 3):
        power = np.linalg.matrix_power([[0.8, 0.2, 0], [0.2, 0.4, 0.4], [0, 0.5, 0.5]], n)
        found = scores.at(n)
        assert (found.forward is None) == (n == 1)
        assert n == 1 or log_ratios(power)[0] <= float(found.forward.log())
