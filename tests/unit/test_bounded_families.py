"""Families known by bounds of their rows, both ways: what they are, how they are written, what they cost."""

import json

import numpy as np
import pandas as pd
import pytest
from cases import counts

import pufferflow as pf
from pufferflow.coupling.interval_leakage import MOST_RATIO_STATES, MOST_ROBUST_STATES
from pufferflow.models import model_document, parse_model

MATRIX = np.array([[0.8, 0.15, 0.05], [0.1, 0.7, 0.2], [0.05, 0.25, 0.7]])
BOX = pf.IntervalFamily(MATRIX - 0.03, MATRIX + 0.03)
BALL = pf.TotalVariationFamily(MATRIX, [0.02, 0.0, 0.05])
COUNTS = np.array([[900, 60, 3], [50, 700, 90], [8, 80, 800]])


@pytest.mark.parametrize("theta", [BOX, BALL], ids=["intervals", "balls"])
def test_model_files_keep_both_readings(theta):
    make = {
        "IntervalFamily": lambda: pf.IntervalFamily(BOX.low, BOX.high, backward=BOX),
        "TotalVariationFamily": lambda: pf.TotalVariationFamily(MATRIX, BALL.radius, backward=BALL),
    }
    for family in (theta, make[type(theta).__name__]()):
        document = json.loads(json.dumps(model_document(family)))
        found = parse_model(document)
        assert model_document(found) == document
        assert (found.backward is None) == (family.backward is None)
        assert pf.leakage(found, 100, 1.0).scale == pytest.approx(pf.leakage(family, 100, 1.0).scale, rel=1e-12)
        assert "both ways" in repr(family) or family.backward is None
        assert ("forwards and backwards" in family.text(public=True)) == (family.backward is not None)


@pytest.mark.parametrize(
    ("document", "message"),
    [
        (
            {"interval": {"low": [[0.5]], "high": [[1]], "backward": []}},
            "interval, backward must be an object with low",
        ),
        ({"interval": {"low": [[1]], "high": [[1]], "backward": {"low": [[1]]}}}, "interval, backward has no high"),
        ({"interval": {"low": [[1]], "high": [[1]], "past": 3}}, "past"),
        ({"total_variation": 3}, "total_variation must be an object with transition_matrix and radius"),
        ({"total_variation": {"transition_matrix": [[1]]}}, "total_variation has no radius"),
        ({"total_variation": {"transition_matrix": 1, "radius": 0}}, "must be a list of rows"),
        ({"total_variation": {"transition_matrix": [[1]], "radius": "0"}}, "radius must be a number"),
        ({"total_variation": {"transition_matrix": [[1]], "radius": 2}}, "not between 0 and 1"),
        (
            {"total_variation": {"transition_matrix": [[1]], "radius": [0, 0]}},
            "give one number, or one for each of the 1",
        ),
        ({"total_variation": {"transition_matrix": [[0.5]], "radius": 0}}, "total_variation: "),
    ],
)
def test_malformed_models(document, message):
    with pytest.raises((pf.ModelError, pf.ChainError), match=message):
        parse_model(document)


def test_what_may_be_the_reversed_chain():
    with pytest.raises(pf.ParameterError, match="backward is a TotalVariationFamily; give a IntervalFamily"):
        pf.IntervalFamily(BOX.low, BOX.high, backward=BALL)
    with pytest.raises(pf.ChainError, match="backward has 3 states, the family 1"):
        pf.IntervalFamily([[1]], [[1]], backward=BOX)
    both = pf.IntervalFamily(BOX.low, BOX.high, backward=BOX)
    with pytest.raises(pf.ChainError, match="backward has backward bounds itself"):
        pf.IntervalFamily(BOX.low, BOX.high, backward=both)


def test_balls_hold_what_is_near():
    matrix = 0.1 + 0.6 * np.eye(4)
    ball = pf.TotalVariationFamily(matrix, 0.02)
    box = pf.IntervalFamily(ball.low, ball.high)
    for row, inside in (([0.02, -0.01, -0.01, 0], True), ([0.02, 0.02, -0.02, -0.02], False)):
        chain = pf.MarkovChain(matrix + np.outer([1, 0, 0, 0], row), "any")
        assert ball.contains(chain) == inside
        assert box.contains(chain)
    assert pf.leakage(ball, 500, 1.0).scale < pf.leakage(box, 500, 1.0).scale
    with pytest.raises(pf.ParameterError, match="give a MarkovChain"):
        ball.contains(matrix)
    with pytest.raises(pf.ChainError, match="finitely many chains"):
        _ = BALL.chains


def test_states_that_may_be_kept_for_ever_are_named():
    counts = np.array([[50, 9, 4, 1], [8, 40, 5, 0], [3, 4, 6, 0], [0, 0, 0, 0]])
    found = pf.leakage(pf.confidence_family(counts), 1000, 1.0)
    assert not found.reason  # one state that may be kept is met in the end
    counts[2] = 0, 0, 3, 0
    found = pf.leakage(pf.confidence_family(counts), 1000, 1.0)
    assert found.reason == (
        "under these bounds a chain may stay for ever in state 3, and for ever in state 4, so it need not forget; "
        "merge these states with others, or fit to more records"
    )
    assert found.scale == pytest.approx(1000)
    assert pf.leakage(pf.confidence_family(counts), 20, 1.0).scale <= 20 * (1 + 1e-9)
    swapped = pf.IntervalFamily(np.zeros((4, 4)), np.kron([[1, 0], [0, 1]], np.ones((2, 2))))
    assert "state 1, and for ever in state 2" in pf.leakage(swapped, 9, 1.0).reason
    pairs = pf.IntervalFamily(np.kron(np.eye(2), np.full((2, 2), 0.4)), np.kron(np.eye(2), np.full((2, 2), 0.6)))
    assert "states 1 and 2, and for ever in states 3 and 4" in pf.leakage(pairs, 9, 1.0).reason


def test_many_states_are_bounded_by_ratios_alone():
    k = MOST_ROBUST_STATES + 1
    rng = np.random.default_rng(0)
    matrix = rng.dirichlet(np.ones(k), k)
    family = pf.IntervalFamily(matrix * 0.99, np.minimum(matrix * 1.01, 1))
    found = pf.leakage(family, 30, 1.0)
    assert found.scale < 15
    assert found.scale == pytest.approx(pf.leakage(family, 30, 1.0, knows="any records").scale, rel=1e-5)
    assert found.reason == f"couplings are computed for at most 12 states, not for {k}"
    with pytest.raises(pf.ParameterError, match="no bound of the loss near this scale is at most epsilon"):
        pf.certify(family, 30, 1.0, mechanism="leakage")
    many = MOST_RATIO_STATES + 1
    simplex = pf.leakage(pf.IntervalFamily(np.zeros((many, many)), np.ones((many, many))), 30, 1.0)
    assert simplex.scale == 30
    assert f"of {many} states no other bound is computed" in simplex.reason


@pytest.mark.parametrize("length", counts(2, 3))
def test_between_six_and_twelve_states(length):
    rng = np.random.default_rng(1)
    matrix = 0.4 * rng.dirichlet(np.ones(7), 7) + 0.6 * np.eye(7)
    family = pf.IntervalFamily(matrix * 0.98, np.minimum(matrix * 1.02, 1))
    known = pf.IntervalFamily(matrix, matrix)
    scales = [pf.leakage(theta, length, 1.0).scale for theta in (known, family)]
    assert scales[0] <= scales[1] * (1 + 1e-6)
    assert scales[1] <= 1.1 * scales[0]


def test_one_confidence_for_both_readings():
    both, ahead = pf.confidence_family(COUNTS, 0.95, backward=True), pf.confidence_family(COUNTS, 0.975)
    assert np.allclose(both.low, ahead.low) and np.allclose(both.high, ahead.high)  # noqa: PT018
    back = pf.confidence_family(COUNTS.T, 0.975)
    assert np.allclose(both.backward.low, back.low)
    assert pf.confidence_family(COUNTS, 0.95).backward is None


def test_fit_bounds_both_readings_of_stationary_records():
    rng = np.random.default_rng(2)
    states = [0]
    for _ in range(4000):
        states.append(int(rng.choice(3, p=MATRIX[states[-1]])))
    table = pd.DataFrame({"value": np.array(list("abc"))[states]})
    fitted = pf.fit(table, states=[*"abc"], coverage=0.95)
    family = fitted.model.family
    assert family.backward is not None
    chain = pf.MarkovChain(MATRIX)
    assert family.contains(chain)
    assert family.backward.contains(pf.MarkovChain(chain.time_reversal, "any"))
    from_any = pf.fit(table, states=[*"abc"], coverage=0.95, start="any").model.family
    assert from_any.backward is None
    scale, known = (pf.leakage(theta, 4000, 1.0).scale for theta in (family, chain))
    assert known <= scale < pf.leakage(from_any, 4000, 1.0).scale
