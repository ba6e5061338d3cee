"""What is no chain and no family: each is refused in one sentence that says how to mend it."""

import numpy as np
import pandas as pd
import pytest

import pufferflow as pf
from pufferflow.audit import CountQuery
from pufferflow.errors import ChainError, DataError, NetworkError, ParameterError
from pufferflow.mechanisms import MECHANISMS
from pufferflow.models import confidence_family, mixing_from_counts
from pufferflow.models.families import as_family
from pufferflow.networks import BayesianNetwork, Variable

THETA, HALF, HUGE = [[0.9, 0.1], [0.4, 0.6]], [[0.5, 0.5], [0.5, 0.5]], [[1e308, 1e308], [0.5, 0.5]]
CHAIN, ANY = pf.MarkovChain(THETA), pf.MarkovChain(HALF, "any")
BOX = pf.IntervalFamily(np.full((3, 3), 0.3), np.full((3, 3), 0.4))
BALL = pf.TotalVariationFamily(np.full((3, 3), 1 / 3), 0.1)
PAIR = pf.IntervalFamily([[0.2, 0.1], [0.1, 0.2]], [[0.9, 0.8], [0.8, 0.9]])
NOTHING, ALL = [[0, 0], [0, 0]], [[1, 1], [1, 1]]
DAY = pf.PeriodicChain([HALF, THETA])
ORDER_2 = np.array([[[0.9, 0.1], [0.5, 0.5]], [[0.3, 0.7], [0.2, 0.8]]])
NAMED = pd.DataFrame(THETA, index=[*"ab"], columns=[*"ab"])
TIED = [[0, 1, 0], [0, 0, 1], [1, 0, 0]]
IRREVERSIBLE = pf.MarkovChain([[0.1, 0.6, 0.3], [0.5, 0.25, 0.25], [0.2, 0.1, 0.7]])
BLOCKS = pf.MarkovChain([[0.5, 0.5, 0], [0.5, 0.5, 0], [0, 0, 1]], "any")
FINITE = "is computed for finitely many chains"
THETAS = "this needs finitely many chains, which a family between bounds does not have; use leakage"


def bounded(backward):
    return pf.IntervalFamily(BOX.low, BOX.high, backward=backward)


CHAINS = [
    (
        pf.MarkovChain,
        ([],),
        "transition matrix must be non-empty rows of numbers, not an array of shape (0,)",
    ),
    (pf.MarkovChain, ([0.5, 0.5],), "not an array of shape (2,)"),
    (pf.MarkovChain, ([[0.5, 0.5]],), "must be square, not 1 × 2; one row per state"),
    (pf.MarkovChain, ([[0.5, 0.5], [1.0]],), "numbers, in rows of equal length"),
    (pf.MarkovChain, ([[10**400]],), "numbers, in rows of equal length"),
    (pf.MarkovChain, (None,), "not an array of shape ()"),
    (
        pf.MarkovChain,
        ([[1.2, -0.2], [0.5, 0.5]],),
        "has no probability in row 1, column 1; each must lie between 0 and 1",
    ),
    (pf.MarkovChain, ([[0.5, 0.5], [np.nan, 1]],), "has no probability in row 2, column 1"),
    (
        pf.MarkovChain,
        ([[0.5, 0.5], [0.3, 0.6]],),
        "row 2 of the transition matrix sums to 0.9, not to 1; divide it",
    ),
    (
        pf.MarkovChain,
        ([[0.5, 0.5], [0.5, 0.5 + 1e-8]],),
        "row 2 of the transition matrix sums to 1.00000001, not to 1",
    ),
    (pf.MarkovChain, (HUGE, "any"), "has no probability in row 1, column 1"),
    (
        pf.MarkovChain,
        (THETA, "uniform"),
        """'uniform' is unknown; give "stationary", "any" or a list""",
    ),
    (
        pf.MarkovChain,
        (THETA, [1.0]),
        "initial distribution has 1 entries, the transition matrix 2 states",
    ),
    (pf.MarkovChain, (THETA, [0.5, 0.4]), "the initial distribution sums to 0.9, not to 1"),
    (
        pf.MarkovChain,
        (THETA, [1.5, -0.5]),
        "has no probability in entry 1; each must lie between 0 and 1",
    ),
    (
        pf.MarkovChain,
        (THETA, [[1.0, 0.0]]),
        "initial distribution must be non-empty rows of numbers, not an arr",
    ),
    (pf.MarkovChain, (THETA, {"a": 1}), "initial distribution must be numbers"),
    (pf.MarkovChain, (NAMED[["b", "a"]],), "the states are labelled a, b and also b, a"),
    (
        pf.MarkovChain,
        (NAMED.set_axis([*"xy"], axis=1),),
        "the states are labelled a, b and also x, y",
    ),
    (
        pf.MarkovChain,
        (NAMED, pd.Series({"b": 0.3, "a": 0.7})),
        "labelled a, b and also b, a; bring rows, columns",
    ),
    (pf.ChainFamily, ([],), "the family holds no chain; give at least one"),
    (
        pf.ChainFamily,
        ([CHAIN, pf.MarkovChain(TIED)],),
        "the chains have 2 and 3 states; give all the same",
    ),
    (pf.ChainFamily, ([CHAIN, [[1]]],), "the family holds a list, which is not a MarkovChain"),
    *(
        (pf.BinaryInterval, (a, b), f"binary interval [{a!r}, {b!r}]: needs 0 < low ≤ high < 1")
        for a, b in [
            *((0, 0.5), (0.5, 1), (0.6, 0.4), (-0.1, 0.5), (0.5, 1.1)),
            *((np.nan, 0.5), (0.5, np.nan), ("0", 0.5)),
        ]
    ),
    (
        pf.IntervalFamily,
        ([[0.5, 0.6], [0, 0]], ALL),
        "row 1: the lower bounds sum to 1.1, above 1; lower some of them",
    ),
    (
        pf.IntervalFamily,
        (NOTHING, [[1, 1], [0.5, 0.4]]),
        "row 2: the upper bounds sum to 0.9, below 1; raise some",
    ),
    (
        pf.IntervalFamily,
        ([[0, 0.5], [0, 0]], [[1, 0.4], [1, 1]]),
        "row 1, column 2: low 0.5 is above high 0.4; exc",
    ),
    (pf.IntervalFamily, ([[0, -0.1], [0, 0]], ALL), "low has no probability in row 1, column 2"),
    (
        pf.IntervalFamily,
        (NOTHING, [[1, 1], [np.nan, 1]]),
        "high has no probability in row 2, column 1",
    ),
    (pf.IntervalFamily, ([[0, 0]], ALL), "low must be square, not 1 × 2; one row per state"),
    (pf.IntervalFamily, ([[0]], ALL), "low has 1 rows and high 2; give both for the same states"),
    (pf.IntervalFamily, ([[0], [0, 1]], ALL), "low must be numbers, in rows of equal length"),
    (bounded, (PAIR,), "backward has 2 states, the family 3"),
    (
        bounded,
        (pf.IntervalFamily(BOX.low, BOX.high, backward=BOX),),
        "backward has backward bounds itself",
    ),
    (pf.TotalVariationFamily, ([[1]], 2), "not between 0 and 1"),
    (pf.TotalVariationFamily, ([[1]], [0, 0]), "give one number, or one for each of the 1"),
    (pf.HiddenChain, (CHAIN, [0]), "1 observations for a chain of 2 states"),
    (pf.HiddenChain.of_order, ([0.5, 0.5],), "the probabilities have shape"),
    (pf.HiddenChain.of_order, (np.ones((2, 2, 2)),), "sums to 2"),
    (
        pf.HiddenChain.of_order,
        ([[HALF[0], [0, 0]], [[1, 0]] * 2],),
        "states 1, 1 lead to 1, 2, whose row",
    ),
    (pf.HiddenChain.of_order, (ORDER_2, [0.5, 0.5]), "initial distribution has shape (2,)"),
    (pf.HiddenChain.hidden, (CHAIN, [[1.0]]), "1 rows for 2 states"),
    (pf.HiddenChain.with_durations, ([[0, 1], [1, 0]], [[1.0]]), "1 rows for 2 states"),
    (pf.PeriodicChain, ([],), "the transition matrices have no states; give at least one"),
    (pf.PeriodicChain, ([HALF, np.eye(3)],), "the transition matrices have 2 and 3 states"),
    (pf.PeriodicChain, ([HALF, [[1, 1], [0, 1]]],), "row 1 of the transition matrix 2 sums to 2"),
    (
        pf.PeriodicChain,
        ([np.eye(2)],),
        "the distribution of the records at each phase is not unique",
    ),
    *(
        (pf.MixingFamily, (60, overlap), "overlap is")
        for overlap in (0, 1.1, -1, "0.4", True, np.nan, None)
    ),
]
WITHOUT_AN_ANSWER = [
    (getattr, (BLOCKS, "period"), "the period is defined for irreducible chains"),
    (getattr, (BLOCKS, "time_reversal"), "the time reversal needs an irreducible chain"),
    (
        BLOCKS.eigengap,
        ("general",),
        "the eigengap needs an irreducible chain; this one has 2 communicating",
    ),
    (
        pf.MarkovChain(TIED).eigengap,
        ("general",),
        "the eigengap needs an aperiodic chain; this one has period 3",
    ),
    (IRREVERSIBLE.eigengap, ("reversible",), 'eigengap "reversible" needs detailed balance'),
    (PAIR.eigengap, ("auto",), "use leakage"),
    (PAIR.smallest_stationary_probability, (), "use leakage"),
    (pf.models.mixing_of, (PAIR, 3), "finitely many chains"),
    (pf.mqm_approx, (pf.MarkovChain([[0, 1], [1, 0]]), 5, 1.0), "this one has period 2"),
    (
        pf.mqm_approx,
        (pf.MarkovChain([[1, 0], [0.5, 0.5]]), 5, 1.0),
        "this one has 2 communicating classes",
    ),
    (pf.lower_bound, (PAIR, 50, 1.0), "interval"),
    *((MECHANISMS[name], (PAIR, 10, 1.0), THETAS) for name in ("mqm-exact", "mqm-approx", "gk16")),
    (
        pf.mqm_exact,
        (pf.HiddenChain.of_order(ORDER_2), 9, 1.0),
        "this needs Markov chains, not observations of one; use l",
    ),
    (pf.mqm_exact, (DAY, 10, 1.0), "a periodic chain has several; use leakage or group-dp"),
    *(
        (pf.privacy_loss, (theta, 5, 3.0, CountQuery({1})), FINITE)
        for theta in (PAIR, pf.BinaryInterval(0.3, 0.6))
    ),
    *(
        (pf.audit.close_adversary, (theta, ANY, 5), FINITE)
        for theta in (PAIR, pf.BinaryInterval(0.3, 0.6))
    ),
]
PARAMETERS = [  # of numbers see test_arguments.py
    (bounded, (BALL,), "backward is a TotalVariationFamily; give a Inte"),
    (
        as_family,
        (HALF,),
        "give a MarkovChain, a ChainFamily, a BinaryInterval, an IntervalFamily, a",
    ),
    (pf.HiddenChain, (CHAIN, [0, 0.5]), "observations must be integers of at least 0"),
    (pf.HiddenChain, (ORDER_2, [0]), "chain is a"),
    (
        lambda: pf.PeriodicChain([HALF], initial_distribution="given"),
        (),
        "choose from stationary, any",
    ),
    (pf.mechanisms.loss_profile, (CHAIN, 10, 1.0), "chain is a MarkovChain; give a PeriodicChain"),
    (mixing_from_counts, (ALL, 10**6), "steps is 1000000; it must be an integer of at most 100000"),
    *(
        (confidence_family, (ALL, coverage), "it must lie between 0 and 1, for example")
        for coverage in (0, 1, 1.5)
    ),
]
DATA = [
    (mixing_from_counts, ([[1.5, 1], [1, 1]], 10), "integers"),
    (
        confidence_family,
        (np.ones((2, 3), dtype=int),),
        "must be a square matrix of numbers of at least 0; give one row per state",
    ),
    (confidence_family, (np.full((2, 2), 0.5),), "must be integers; give counts, not frequencies"),
    (confidence_family, ([[1, -1], [0, 0]],), "of numbers of at least 0"),
    (pf.fit_chain, (np.array(HUGE),), "sum"),
    (lambda: pf.fit_chain(np.eye(2), smoothing=1e308), (), "sum"),
    (lambda: pf.fit_chain(np.ones((2, 2)), order=2), (), "an array with 3 equal sides"),
    (
        lambda: pf.fit_chain(np.array([[[0, 1], [0, 0]], [[0, 0], [0, 0]]]), order=2),
        (),
        "set smoothing > 0",
    ),
    (pf.models.fit_periodic_chain, (np.ones((2, 2)),), "square matrices of numbers"),
]
NETWORKS = [
    (lambda: BayesianNetwork([Variable("Ann", HUGE[0])]), (), "sum"),
    (
        lambda: BayesianNetwork([Variable("Ann", HALF[0]), Variable("Bob", HUGE, ["Ann"])]),
        (),
        "sum",
    ),
]


@pytest.mark.parametrize(
    ("error", "call", "arguments", "message"),
    [
        (error, *case)
        for error, cases in (
            (ChainError, CHAINS + WITHOUT_AN_ANSWER),
            (ParameterError, PARAMETERS),
            (DataError, DATA),
            (NetworkError, NETWORKS),
        )
        for case in cases
    ],
)
def test_bad_models(error, call, arguments, message):
    with pytest.raises(error) as found:
        call(*arguments)
    assert message in str(found.value)
