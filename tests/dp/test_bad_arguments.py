"""Bad arguments: one sentence each."""

import math

import numpy as np
import pandas as pd
import pytest

from pufferflow import dp
from pufferflow.errors import DataError, ParameterError

HALF, ETA = dp.AlphaBeta(0.5, 0.1), dp.Eta(1, 1)
SMALL = dp.Domain({"a": [1, 2], "b": ["x", "y"]})
DATA = pd.DataFrame({"a": [1, 2], "b": ["x", "x"]})
COIN = dp.FiniteMechanism({0: ["1/2", "1/2"]})
WIDE = dp.FiniteMechanism({0: ["1/2000"] * 2000})
RESPONSE, LAPLACE = dp.RandomisedResponse(("a", "b"), 0.7), dp.Laplace(1, 1)
EXPONENTIAL, MAJORITY = dp.Exponential(1, 1), dp.WeightedMajority(2, 1)
BASE2 = dp.Base2Exponential(ETA, 0, 5, 20)
DISTINCT = "sequence of distinct values"


@pytest.mark.parametrize(
    ("call", "arguments", "message"),
    [
        (dp.FiniteMechanism, [{0: [1], 1: ["1/2", "1/2"]}], "as many outputs"),
        (dp.FiniteMechanism, [{0: ["3/2", "-1/2"]}], "must be ≥ 0 and sum to 1"),
        (dp.FiniteMechanism, [{0: [1]}, [(0, 1)]], "pairs of inputs with a distribution"),
        (COIN.delta, ["1/2"], "factor is '1/2'; it must be a number of at least 1"),
        (COIN.compose, [dp.FiniteMechanism({1: [1]})], "different inputs or neighbours"),
        (WIDE.compose, [WIDE], "more than 10\\^6 pairs"),
        (dp.sensitivity, [len, [], lambda x: []], "no database"),
        (dp.sensitivity, [lambda x: "a", [()], lambda x: [(1,)]], "number or a list of numbers"),
        (dp.sensitivity, [list, [(1,)], lambda x: [()]], "always return the same"),
        (dp.AlphaBeta, [0.7, 0.4], "alpha \\+ beta at most 1"),
        (dp.AlphaBeta, [-0.1, 0.4], "alpha is -0.1; it must be a number of at least 0 and at most"),
        (dp.choose_alpha_beta, [0.5, 0.2], "0 < d ≤ gamma"),
        (dp.choose_alpha_beta, [0.2, 0.2], "raise gamma"),
        (dp.check_views, [[], 0.1, 0.2], "at least one"),
        (HALF.standard_error, [5, 4], "more tuples of the data"),
        (dp.Domain, [{}], DISTINCT),
        (dp.Domain, [{"a": []}], DISTINCT),
        (dp.Domain, [{"a": "yes"}], DISTINCT),
        (dp.Domain, [{"a": [1, 2, 1]}], DISTINCT),
        (dp.Domain, [{"a": [[1], 2]}], DISTINCT),
        (dp.Domain, [{"a": range(2**70)}], DISTINCT),
        (dp.Domain, [{"a": range(10**9), "b": [1, 2]}], "more than 10\\^8 tuples"),
        (dp.publish, [pd.DataFrame({1: [1]}), dp.Domain({"1": [1]}), HALF], "have the columns"),
        (dp.publish, [DATA.assign(a=[1, 3]), SMALL, HALF], "row 2 of the data has a value of a"),
        (dp.publish, [pd.concat([DATA, DATA]), SMALL, HALF], "row 3 of the data repeats"),
        (dp.publish, [[(1, [])], SMALL, HALF], "cannot be compared"),
        (dp.publish, [["ax"], SMALL, HALF], "a tuple of 2 values"),
        (dp.publish(DATA, SMALL, HALF).count, [{"zip": 1}], "a column that is not one of"),
        (dp.publish(DATA, SMALL, HALF).count, [{"a": 31}], "a value of a that the domain lacks"),
        (dp.RandomisedResponse, [("a", "a"), 0.7], "two or more distinct strings"),
        (dp.RandomisedResponse, [("a", "b"), 0.4], "at least 1/k and below 1"),
        (dp.RandomisedResponse.for_epsilon, [("a", "b", "c"), 1e-17], "at least 1/k and below 1"),
        (RESPONSE.release, [["a", "c"]], "one of the categories"),
        (dp.RandomisedResponse(("a", "b"), 0.5).estimate, [["a"]], "truth above 1/k"),
        (RESPONSE.standard_error, [4, 3], "count must be at most total"),
        (dp.Laplace, [1e300, 1e-300], "sensitivity / epsilon is inf; it must be"),
        (LAPLACE.release, [[1, 2.5]], "all integers or all finite floats"),
        (EXPONENTIAL.probabilities, [[1, math.inf]], "one row of finite numbers"),
        (MAJORITY.release, [[0.0]], "rows of 2 finite numbers"),
        (MAJORITY.release, [[[0.0, 1.0]]], "one row of sums"),
        (MAJORITY.epsilon, [10, 1.0], "delta is 1.0; it must lie between 0 and 1"),
        (lambda: LAPLACE.release([1], insecure_seed=-1), [], "insecure_seed is -1"),
        (dp.Eta, [2, 1], "x of η must be smaller than 2"),
        (dp.Eta.for_epsilon, [1e-9], "raise y"),
        (dp.Base2Exponential, [ETA, 0, 2**31, 3], "narrow the range"),
        (lambda: dp.Base2Exponential(ETA, 0, 5, 3, sensitivity=0), [], "must be positive"),
        (lambda: dp.Base2Exponential(ETA, 0, 5, 3, sampler="fast"), [], "rejection, bitwise"),
        (BASE2.release, [np.array([])], "there are 0 outcomes"),
        (BASE2.release, [[1, math.nan]], "a utility is nan"),
        (BASE2.weights, [[0.5]], "weights are of integer utilities"),
        (BASE2.probabilities, [[0.5] * 20], "2\\^12 ways to round"),
        (dp.Base2Laplace, [ETA, 1, 0, 0.5], "upper − lower must be positive"),
    ],
)
def test_one_sentence(call, arguments, message):
    with pytest.raises((ParameterError, DataError), match=message) as caught:
        call(*arguments)
    assert "\n" not in str(caught.value)
