"""Every public function with arguments that it takes, for tests of arguments and of reprs."""

import ast
from pathlib import Path

import numpy as np
import opendp.prelude as opendp
import pandas as pd
from written_calls import called

import pufferflow as pf
from pufferflow import dp, hmm, networks
from pufferflow.audit import CountQuery
from pufferflow.records import Schema, StateSpace

CHAIN = pf.MarkovChain([[0.9, 0.1], [0.4, 0.6]])
opendp.enable_features("contrib")
NETWORK = networks.chain_network(CHAIN, 3)
STATES = StateSpace.categories(["a", "b"])
PUBLIC = pf.models.PublicModel(pf.ChainFamily([CHAIN]), Schema(states=STATES))
ROWS = pd.Series(["a", "a", "b", "b", "a", "b"] * 4)
TIMED = ROWS.set_axis(pd.date_range("2020-01-01", periods=24, freq="60s"))
COUNT = CountQuery({1})
COINS = [["1/2", "1/2"], ["1/4", "3/4"]]
RESPONSE = dp.FiniteMechanism({"a": COINS[0], "b": COINS[1]})
UNIT, LAW = [[1, 0], [0, 1]], {"0": [1, 0], "1": [0, 1]}
MODEL = hmm.HiddenMarkovModel(UNIT, COINS, LAW)
PRIORS = {"ill": COINS, "well": [["1/3", "2/3"]] * 2}
NOISY_MAX = hmm.NoisyMax("index", 1, COINS)
FAMILY = NOISY_MAX.family(PRIORS | {"ill": [["p", "1 - p"]] * 2}, {"p": ("1/4", "1/2")})
MAJORITY = dp.WeightedMajority(0.5)
ON_CHAIN = {"family": CHAIN, "length": 10}
LAWS = {"well": {0: 0.5, 1: 0.5}, "ill": {1: 0.5, 2: "1/2"}}
FRAMEWORK = pf.PufferfishFramework({"all": LAWS})
DATABASES = {"all": {(0,): 0.5, (1,): 0.25, (2,): "1/4"}}
RECORDS = pf.PufferfishFramework.from_databases(DATABASES, sum)
RNG = np.random.default_rng(1)


def written():
    """The calls of public_calls.txt, each as a function and its arguments by name."""
    text = Path(__file__).with_suffix(".txt").read_text("utf-8")
    for line in text.replace("\n    ", " ").splitlines():
        call = ast.parse(line, mode="eval").body
        arguments = ", ".join(map(ast.unparse, call.keywords))
        yield called(ast.unparse(call.func), globals()), called(f"dict({arguments})", globals())


CALLS = list(written())
