"""MarkovChain: validation, stationary law, classes and periods, eigengaps."""

from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from cases import examples
from enumeration import random_matrix, stationary_law
from hypothesis import given
from hypothesis import strategies as st

import pufferflow as pf
from pufferflow import networks

THETA_1 = [[0.9, 0.1], [0.4, 0.6]]
THETA_2 = [[0.8, 0.2], [0.3, 0.7]]


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        ([], r"transition matrix must be non-empty rows of numbers, not an array of shape \(0,\)"),
        ([[]], r"non-empty rows of numbers, not an array of shape \(1, 0\)"),
        ([0.5, 0.5], r"not an array of shape \(2,\)"),
        (np.ones((2, 2, 2)) / 2, r"not an array of shape \(2, 2, 2\)"),
        ([[0.5, 0.5]], "must be square, not 1 × 2; one row a state"),
        ([[0.5, 0.5], [1.0]], "numbers in rows of equal length"),
        ([["a", "b"], [0, 1]], "numbers in rows of equal length$"),
        ([[10**400]], "numbers in rows of equal length.*too large"),
        (None, r"not an array of shape \(\)"),
        ([[1.2, -0.2], [0.5, 0.5]], "has -0.2 in row 1, column 2; probabilities must lie between 0 and 1"),
        ([[0.5, 0.5], [np.nan, 1]], "has nan in row 2, column 1"),
        ([[0.5, 0.5], [0, np.inf]], "has inf in row 2, column 2"),
        ([[0.5, 0.5], [0.3, 0.6]], "row 2 of the transition matrix sums to 0.9, not to 1; divide it"),
        ([[0.5, 0.5], [0.5, 0.5 + 1e-8]], "row 2 of the transition matrix sums to 1.00000001, not to 1"),
    ],
)
def test_bad_transition_matrix(matrix, message):
    with pytest.raises(pf.ChainError, match=message):
        pf.MarkovChain(matrix)


@pytest.mark.parametrize(
    ("start", "message"),
    [
        ("uniform", """initial distribution 'uniform' is unknown; give "stationary", "any" or a list"""),
        ([1.0], "initial distribution has 1 entries, the transition matrix 2 states"),
        ([0.5, 0.4], "the initial distribution sums to 0.9, not to 1"),
        ([1.5, -0.5], "the initial distribution has -0.5 in entry 2; probabilities must lie between 0 and 1"),
        ([[1.0, 0.0]], r"initial distribution must be non-empty rows of numbers, not an array of shape \(1, 1, 2\)"),
        ([], "initial distribution must be non-empty"),
        ({"a": 1}, "initial distribution must be numbers"),
    ],
)
def test_bad_initial_distribution(start, message):
    with pytest.raises(pf.ChainError, match=message):
        pf.MarkovChain(THETA_1, start)


def test_errors_are_value_errors_of_the_package():
    assert issubclass(pf.ChainError, pf.PufferflowError)
    assert issubclass(pf.ChainError, ValueError)


def test_rows_are_normalised_once_and_read_only():
    chain = pf.MarkovChain([[0.3333333333, 0.6666666666], [0.1, 0.9]])
    assert chain.transition_matrix.sum(axis=1) == pytest.approx([1, 1], abs=1e-15)
    again = pf.MarkovChain(chain.transition_matrix)
    assert (again.transition_matrix == chain.transition_matrix).all()
    for array in (chain.transition_matrix, chain.initial_distribution):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0.5


@examples(20, 60)
@given(st.lists(st.lists(st.floats(1e-3, 1), min_size=7, max_size=7), min_size=7, max_size=7))
def test_a_chain_made_of_a_chain_is_the_same(rows):
    matrix = np.array(rows) / np.sum(rows, axis=1, keepdims=True)
    once = pf.MarkovChain(matrix).transition_matrix
    assert (pf.MarkovChain(once).transition_matrix == once).all()


def test_input_is_copied():
    matrix = np.array(THETA_1)
    chain = pf.MarkovChain(matrix)
    matrix[0] = [0, 1]
    assert chain.transition_matrix[0].tolist() == [0.9, 0.1]


def test_kinds_of_start():
    stationary, some, given_ = (pf.MarkovChain(THETA_1, s) for s in ("stationary", "any", [0, 1]))
    assert stationary.initial_distribution == pytest.approx([0.8, 0.2], abs=1e-15)
    assert some.initial_distribution is None
    assert given_.initial_distribution.tolist() == [0, 1]
    assert [c.start for c in (stationary, some, given_)] == ["stationary", "any", "given"]
    assert [c.initial_support.tolist() for c in (stationary, some, given_)] == [[True] * 2, [True] * 2, [False, True]]
    assert repr(some) == "MarkovChain(2 states, initial_distribution=any)"
    assert repr(given_) == "MarkovChain(2 states, initial_distribution=given)"


@pytest.mark.parametrize("number", range(40))
def test_stationary_law_against_rational_elimination(number):
    rng = np.random.default_rng([1, number])
    matrix = random_matrix(rng, int(rng.integers(1, 8)))
    floats = [[float(p) for p in row] for row in matrix]
    exact = stationary_law(matrix)
    if exact is None:
        with pytest.raises(pf.ChainError, match=r"not unique: the chain has \d closed classes"):
            pf.MarkovChain(floats)
        return
    chain = pf.MarkovChain(floats)
    for found, law in zip(chain.stationary_distribution.tolist(), exact, strict=True):
        assert abs(Fraction(found) - law) <= law * Fraction(chain.stationary_error)


def test_restriction_to_closed_states():
    matrix = [[0.5, 0.25, 0.25, 0], [0, 0.9, 0.1, 0], [0, 0.4, 0.6, 0], [0, 0, 0, 1]]
    inside = np.array([False, True, True, False])
    for start, restricted in (("any", "any"), ([0, 0.3, 0.7, 0], "given")):
        chain = pf.MarkovChain(matrix, start).restricted(inside)
        assert chain.transition_matrix.tolist() == THETA_1
        assert chain.start == restricted
    assert chain.initial_distribution.tolist() == [0.3, 0.7]
    transient = pf.MarkovChain([row[:3] for row in matrix[:3]])
    recurrent = transient.restricted(transient.initial_support)
    assert recurrent.start == "stationary"
    assert recurrent.initial_distribution.tolist() == transient.initial_distribution[1:].tolist()
    assert recurrent.restricted(np.ones(2, dtype=bool)) is recurrent
    for start, states in (([0.1, 0.3, 0.6, 0], inside), ("any", [True, True, False, True])):
        with pytest.raises(pf.ChainError, match="in which it starts and which it never leaves"):
            pf.MarkovChain(matrix, start).restricted(np.array(states))


def test_stationary_law_keeps_tiny_probabilities():
    tiny = 2.0**-200
    chain = pf.MarkovChain([[0.5, 0.5, 0], [1, 0, tiny], [1, 0, 0]])
    assert chain.stationary_distribution == pytest.approx([2 / 3, 1 / 3, tiny / 3], rel=1e-14)
    transient = pf.MarkovChain([[0.5, 0.5, 0], [0, 0.5, 0.5], [0, 0.5, 0.5]])
    assert transient.stationary_distribution.tolist() == [0, 0.5, 0.5]
    assert transient.initial_support.tolist() == [False, True, True]


def test_stationary_law_beyond_the_range_of_floats():
    rare = 1e-200  # π is proportional to 1, 0.5e200, 0.25e400
    chain = pf.MarkovChain([[0.5, 0.5, 0], [rare, 0.5, 0.5], [0, rare, 1]])
    assert chain.stationary_distribution == pytest.approx([0, 2e-200, 1], rel=1e-14)
    assert chain.eigengap("general") == 0
    assert pf.ChainFamily([chain]).smallest_stationary_probability() == 0
    with pytest.raises(pf.ChainError, match="time reversal needs stationary probabilities of at least 1e-290; state 1"):
        _ = chain.time_reversal


CYCLE_3 = np.eye(3)[[1, 2, 0]]
TWO_BLOCKS = [[0.5, 0.5, 0], [0.5, 0.5, 0], [0, 0, 1]]


@pytest.mark.parametrize(
    ("matrix", "period"),
    [
        ([[1.0]], 1),
        (THETA_1, 1),
        ([[0, 1], [1, 0]], 2),
        (CYCLE_3, 3),
        ([[0, 0.5, 0.5], [1, 0, 0], [1, 0, 0]], 2),
        ([[0, 1, 0], [0, 0, 1], [0.5, 0.5, 0]], 1),  # cycles of lengths 2 and 3
        ([[0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1], [0.5, 0, 0.5, 0]], 2),  # 4 and 2
    ],
)
def test_period(matrix, period):
    chain = pf.MarkovChain(matrix)
    assert chain.is_irreducible
    assert chain.period == period
    assert chain.is_aperiodic == (period == 1)


def test_reducible_chains_have_no_period():
    chain = pf.MarkovChain(TWO_BLOCKS, "any")
    assert not chain.is_irreducible
    assert not chain.is_aperiodic
    assert not chain.is_reversible
    with pytest.raises(pf.ChainError, match="the period is defined for irreducible chains"):
        _ = chain.period
    with pytest.raises(pf.ChainError, match="the time reversal needs an irreducible chain"):
        _ = chain.time_reversal
    with pytest.raises(pf.ChainError, match="the eigengap needs an irreducible chain; this one has 2 communicating"):
        chain.eigengap("general")
    with pytest.raises(pf.ChainError, match="the eigengap needs an aperiodic chain; this one has period 3"):
        pf.MarkovChain(CYCLE_3).eigengap("general")


def test_time_reversal():
    chain = pf.MarkovChain([[0.1, 0.6, 0.3], [0.5, 0.25, 0.25], [0.2, 0, 0.8]])
    law, reversal = chain.stationary_distribution, chain.time_reversal
    for x in range(3):
        for y in range(3):
            assert law[x] * reversal[x, y] == pytest.approx(law[y] * chain.transition_matrix[y, x])
    assert not chain.is_reversible
    two = pf.MarkovChain(THETA_1)
    assert two.is_reversible
    assert two.time_reversal == pytest.approx(two.transition_matrix)


@pytest.mark.parametrize(
    ("matrix", "general", "reversible"),
    [
        (THETA_1, 0.75, 1.0),
        (THETA_2, 0.75, 1.0),
        ([[0.9, 0.1], [0.1, 0.9]], 0.36, 0.4),
        ([[0.2, 0.8], [0.8, 0.2]], 0.64, 0.8),
        ([[1]], 1, 2),
    ],
)
def test_eigengap(matrix, general, reversible):
    chain = pf.MarkovChain(matrix)
    for kind, gap in (("general", general), ("reversible", reversible)):
        assert chain.eigengap(kind) <= gap
        assert chain.eigengap(kind) == pytest.approx(gap, abs=1e-11)


def test_general_eigengap_is_that_of_the_printed_product():
    chain = pf.MarkovChain([[0.1, 0.6, 0.3], [0.5, 0.25, 0.25], [0.2, 0.1, 0.7]])
    product = np.sort(np.linalg.eigvals(chain.transition_matrix @ chain.time_reversal).real)
    assert chain.eigengap("general") == pytest.approx(1 - product[-2], abs=1e-12)
    with pytest.raises(pf.ChainError, match='eigengap "reversible" needs detailed balance'):
        chain.eigengap("reversible")


def test_eigengap_counts_eigenvalues_with_multiplicity():
    # states 0 and 2 lead to the same states, state 1 elsewhere: PP* falls apart into {0, 2} and {1}
    chain = pf.MarkovChain([[1 / 64, 63 / 64, 0], [0, 0, 1], [1 / 64, 63 / 64, 0]])
    product = np.sort(np.linalg.eigvals(chain.transition_matrix @ chain.time_reversal).real)
    assert product == pytest.approx([0, 1, 1], abs=1e-12)
    assert chain.is_aperiodic
    assert chain.eigengap("general") == 0


def test_labelled_states_in_two_orders_are_refused():
    matrix = [[0.9, 0.1], [0.4, 0.6]]
    for index, columns in (("ab", "ba"), ("ab", "xy"), ([0, 1], [1, 0])):
        with pytest.raises(pf.ChainError, match=r"the rows of the transition matrix are labelled .* and its columns"):
            pf.MarkovChain(pd.DataFrame(matrix, index=list(index), columns=list(columns)))
    named = pd.DataFrame(matrix, index=[*"ab"], columns=[*"ab"])
    for frame in (named, pd.DataFrame(matrix), pd.DataFrame(matrix, columns=[*"ab"]), named.reset_index(drop=True)):
        assert pf.MarkovChain(frame).transition_matrix.tolist() == matrix
    with pytest.raises(
        pf.ChainError, match="labelled a, b and the initial distribution b, a; bring both into one order"
    ):
        pf.MarkovChain(named, pd.Series({"b": 0.3, "a": 0.7}))
    assert pf.MarkovChain(named, pd.Series({"a": 0.7, "b": 0.3})).initial_distribution.tolist() == [0.7, 0.3]
    assert pf.MarkovChain(named, [0.7, 0.3]).initial_distribution.tolist() == [0.7, 0.3]


HUGE = [[1e308, 1e308], [0.5, 0.5]]


@pytest.mark.parametrize(
    ("make", "error"),
    [
        (lambda: pf.MarkovChain(HUGE, "any"), pf.ChainError),
        (lambda: pf.MarkovChain(np.eye(2), HUGE[0]), pf.ChainError),
        (lambda: networks.BayesianNetwork([networks.Variable("Ann", HUGE[0])]), pf.NetworkError),
        (
            lambda: networks.BayesianNetwork(
                [networks.Variable("Ann", [0.5, 0.5]), networks.Variable("Bob", HUGE, ["Ann"])]
            ),
            pf.NetworkError,
        ),
        (lambda: pf.fit_chain(np.array(HUGE)), pf.DataError),
        (lambda: pf.fit_chain(np.eye(2), smoothing=1e308), pf.DataError),
    ],
)
@pytest.mark.filterwarnings("error")
def test_sums_beyond_floats_are_refused_in_one_sentence(make, error):
    with pytest.raises(error, match="sum"):
        make()


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("up", [1e-105, 1e-110, 1e-150, 5e-324])
def test_stationary_probabilities_below_floats_raise_no_warning(up):
    """A ladder whose upper steps have stationary probabilities that are subnormal or 0."""
    matrix = [[1 - up, up, 0, 0], [0.5, 0.5 - up, up, 0], [0, 0.5, 0.5 - up, up], [0, 0, 0.5, 0.5]]
    for start in ([0, 0, 0, 1], [0.25] * 4, "any", "stationary"):
        chain = pf.MarkovChain(matrix, start)
        upper = pf.mqm_exact(chain, 9, 1.0).scale
        assert 1 <= pf.leakage(chain, 9, 1.0).scale <= upper <= 9
