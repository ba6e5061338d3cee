"""Bad arguments: one sentence each."""

import math

import numpy as np
import pandas as pd
import pytest

from pufferflow import dp
from pufferflow.dp.base2 import Base2Exponential, Base2Laplace, Eta, compute_precision
from pufferflow.errors import DataError, ParameterError

HALF, ETA = dp.AlphaBeta(0.5, 0.1), Eta(1, 1)
SMALL = dp.Domain({"a": [1, 2], "b": ["x", "y"]})
DATA = pd.DataFrame({"a": [1, 2], "b": ["x", "x"]})
COIN = dp.FiniteMechanism({0: ["1/2", "1/2"]})
WIDE = dp.FiniteMechanism({0: ["1/2000"] * 2000})
RESPONSE, LAPLACE, EXPONENTIAL = (
    dp.RandomisedResponse(("a", "b"), 0.7),
    dp.Laplace(1, 1),
    dp.Exponential(1, 1),
)
MAJORITY, BASE2 = dp.WeightedMajority(2, 1), Base2Exponential(ETA, 0, 5, 20)


@pytest.mark.parametrize(
    ("call", "arguments", "message"),
    [
        (dp.FiniteMechanism, [{}], "at least one input"),
        (dp.FiniteMechanism, [{0: [1], 1: ["1/2", "1/2"]}], "as many outputs"),
        (dp.FiniteMechanism, [{0: ["3/2", "-1/2"]}], "distribution 1 must be at least 0 and sum"),
        (dp.FiniteMechanism, [{0: [1]}, [(0, 1)]], "an input without a distribution"),
        (dp.FiniteMechanism, [{0: [1]}, [0]], "list of pairs of inputs"),
        (COIN.delta, ["1/2"], "factor is '1/2'; it must be a number of at least 1"),
        (COIN.level, [-1], "delta is -1; it must be a number of at least 0"),
        (COIN.is_private, [True], "epsilon is True; it must be a number"),
        (COIN.compose, [dp.FiniteMechanism({1: [1]})], "different inputs or neighbours"),
        (WIDE.compose, [WIDE], "more than 10\\^6 pairs"),
        (dp.databases, [dp.Domain({"x": range(10)}), 7], "more than 10\\^6 databases"),
        (dp.databases, [dp.Domain({"x": range(10**9)}), 0], "more than 10\\^6 tuples"),
        (dp.sensitivity, [len, [], lambda x: []], "no database"),
        (dp.sensitivity, [3, [()], lambda x: []], "must be functions"),
        (dp.sensitivity, [lambda x: "a", [()], lambda x: [(1,)]], "number or a list of numbers"),
        (
            dp.sensitivity,
            [lambda x: [1] * len(x), [()], lambda x: [(1,)]],
            "always return the same",
        ),
        (dp.differencing_success, [1], "ratio is 1; it must be below 1"),
        (dp.AlphaBeta, [0.7, 0.4], "alpha \\+ beta at most 1"),
        (dp.AlphaBeta, [0, 0.4], "alpha must be above 0"),
        (
            dp.AlphaBeta,
            [-0.1, 0.4],
            "alpha is -0.1; it must be a number of at least 0 and at most 1",
        ),
        (dp.AlphaBeta, [0.1, "x"], "beta is not an exact number"),
        (dp.AlphaBeta, [math.nan, 0], "alpha is nan"),
        (dp.choose_alpha_beta, [0.5, 0.2], "0 < d ≤ gamma"),
        (dp.choose_alpha_beta, [0.2, 0.2], "raise gamma"),
        (dp.check_views, [[], 0.1, 0.2], "views is empty"),
        (HALF.rho, [5, 4], "more tuples of the data than of the domain"),
        (HALF.failure, [1.0, 5, 4], "more tuples of the data than of the domain"),
        (dp.extreme_difference, [HALF, 3, 2], "more tuples of the data than of the domain"),
        (dp.answer_difference, [HALF, "0.5", 10**12], "use answer_difference_bound"),
        (dp.view_difference, [HALF, 10**5], "at most 10000"),
        (dp.Domain, [{}], "no column"),
        (dp.Domain, [{"a": []}], "sequence of distinct values"),
        (dp.Domain, [{"a": "yes"}], "sequence of distinct values"),
        (dp.Domain, [{"a": 3}], "sequence of distinct values"),
        (dp.Domain, [{"a": [1, 2, 1]}], "sequence of distinct values"),
        (dp.Domain, [{"a": range(2**70)}], "sequence of distinct values"),
        (
            dp.publish,
            [pd.DataFrame({1: [1]}), dp.Domain({"1": [1]}), HALF],
            "must have the columns",
        ),
        (dp.Domain, [{"a": range(2**62), "b": [1, 2]}], "more than 2\\^62"),
        (dp.publish, [DATA.assign(z=1), SMALL, HALF], "must have the columns"),
        (dp.publish, [DATA[["a"]], SMALL, HALF], "must have the columns"),
        (dp.publish, [DATA[["a", "b", "b"]], SMALL, HALF], "each once"),
        (dp.publish, [DATA.assign(a=[1, 3]), SMALL, HALF], "row 2 of the data has a value of a"),
        (
            dp.publish,
            [DATA.assign(b=["x", None]), SMALL, HALF],
            "row 2 of the data has a value of b",
        ),
        (dp.publish, [pd.concat([DATA, DATA]), SMALL, HALF], "row 3 of the data repeats"),
        (dp.publish, [[(1, [])], SMALL, HALF], "cannot be compared"),
        (dp.publish, [["ax"], SMALL, HALF], "a tuple of 2 values"),
        (dp.publish, [set(), dp.Domain({"a": range(10**12)}), HALF], "declare a smaller one"),
        (dp.publish(DATA, SMALL, HALF).count, [{"zip": 1}], "a column that is not one of"),
        (dp.publish(DATA, SMALL, HALF).count, [{"a": 31}], "a value of a that the domain lacks"),
        (dp.RandomisedResponse, [("a", "a"), 0.7], "two or more distinct strings"),
        (dp.RandomisedResponse, [(1, 2), 0.7], "two or more distinct strings"),
        (dp.RandomisedResponse, [("a", "b"), 0.3], "at least 1/k and below 1"),
        (dp.RandomisedResponse, [("a", "b"), math.nan], "truth is nan"),
        (RESPONSE.release, [["a", "c"]], "one of the categories"),
        (RESPONSE.probability, ["a", "z"], "one of the categories"),
        (dp.RandomisedResponse(("a", "b"), 0.5).estimate, [["a"]], "truth above 1/k"),
        (RESPONSE.standard_error, [4, 3], "count must be at most total"),
        (dp.RandomisedResponse.for_epsilon, [("a", "b"), 0], "epsilon is 0; it must be"),
        (dp.Laplace, [True, 1], "sensitivity is True; it must be"),
        (dp.Laplace, [1, math.inf], "epsilon is inf; it must be"),
        (dp.Laplace, [1e300, 1e-300], "sensitivity / epsilon is inf; it must be"),
        (LAPLACE.release, [[1, 2.5]], "all integers or all finite floats"),
        (LAPLACE.release, [[math.nan]], "all integers or all finite floats"),
        (EXPONENTIAL.release, [[]], "one row of finite numbers"),
        (EXPONENTIAL.probabilities, [[1, math.inf]], "one row of finite numbers"),
        (dp.WeightedMajority, [2, 0], "rate is 0; it must be"),
        (dp.WeightedMajority.tuned, [1, 5], "experts is 1; it must be an integer of at least 2"),
        (MAJORITY.release, [[0.0]], "2 finite numbers"),
        (MAJORITY.release, [[[0.0, 1.0]]], "one row of sums"),
        (MAJORITY.regret, [[[0, math.nan]]], "every loss must lie in"),
        (MAJORITY.regret, [[[0, 1, 1]]], "shape"),
        (MAJORITY.epsilon, [10], "delta is 0.0; it must lie between 0 and 1"),
        (lambda: MAJORITY.epsilon(10, 0.1, account="pure"), [], "must be 0 for the pure account"),
        (lambda: MAJORITY.epsilon(10, 0.1, account="published"), [], "use the zcdp account"),
        (lambda: dp.private_rate(9, 9, 0.1, account="published"), [], "use the zcdp account"),
        (lambda: LAPLACE.release([1], insecure_seed=-1), [], "insecure_seed is -1"),
        (Eta, [1.5, 2], "x of η is 1.5; it must be an integer"),
        (Eta, [2, 1], "x of η must be smaller than 2"),
        (Eta.for_epsilon, [math.nan], "epsilon is nan; it must be a positive number"),
        (Eta.for_epsilon, [1e-9], "raise y"),
        (Base2Exponential, ["1", 0, 5, 3], "eta is a str; give a Eta"),
        (Base2Exponential, [ETA, 5, 0, 3], "utility_max is 0; it must be an integer of at least 5"),
        (Base2Exponential, [ETA, 0, 2**31, 3], "narrow the range"),
        (lambda: Base2Exponential(ETA, 0, 5, 3, sensitivity=0), [], "sensitivity must be positive"),
        (lambda: Base2Exponential(ETA, 0, 5, 3, sampler="fast"), [], "rejection, bitwise"),
        (BASE2.release, [np.array([])], "there are 0 outcomes"),
        (BASE2.release, [[1] * 21], "at most 20"),
        (BASE2.release, [[1, math.nan]], "a utility is nan"),
        (BASE2.release, [[[1, 2]]], "a utility is a list"),
        (BASE2.release, [7], "one number per outcome"),
        (BASE2.weights, [[0.5]], "weights are of integer utilities"),
        (BASE2.probabilities, [[0.5] * 20], "2\\^12 ways to round"),
        (Base2Laplace, [ETA, 1, 0, 0.5], "upper − lower must be positive"),
        (Base2Laplace, [ETA, 0, math.inf, 1], "upper is inf"),
        (Base2Laplace(ETA, 0, 1, 1).release, [math.nan], "the value is nan"),
        (compute_precision, [ETA, -1, 3], "span is -1; it must be an integer of at least 0"),
    ],
)
def test_one_sentence(call, arguments, message):
    with pytest.raises((ParameterError, DataError), match=message) as caught:
        call(*arguments)
    assert "\n" not in str(caught.value)
