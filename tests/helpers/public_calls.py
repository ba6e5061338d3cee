"""Every public function with arguments that it takes, for tests of arguments and of reprs."""

from datetime import datetime

import numpy as np
import opendp.prelude as opendp
import pandas as pd

import pufferflow as pf
from pufferflow import dp, hmm, networks
from pufferflow.audit import CountQuery, HistogramQuery, chain_sensitivity
from pufferflow.models import confidence_family, mixing_from_counts
from pufferflow.records import Schema, StateSpace

CHAIN = pf.MarkovChain([[0.9, 0.1], [0.4, 0.6]])
opendp.enable_features("contrib")
NOISY = opendp.m.make_laplace(
    opendp.atom_domain(T="i64"), opendp.absolute_distance(T="i64"), scale=5.0
)
NETWORK = networks.chain_network(CHAIN, 3)
STATES = StateSpace.categories(["a", "b"])
PUBLIC = pf.models.PublicModel(pf.ChainFamily([CHAIN]), Schema(states=STATES))
ROWS = pd.Series(["a", "a", "b", "b", "a", "b"] * 4)
TIMED = ROWS.set_axis(pd.date_range(datetime(2020, 1, 1), periods=24, freq="60s"))
METER = pd.Series([0.0, 1.0, 2.0, 1.0] * 6, index=TIMED.index)
PEOPLE = pd.DataFrame(
    {"participant": [f"p{i // 3}" for i in range(600)], "value": ["a", "a", "b"] * 200}
)
COUNT = CountQuery({1})
COINS = [["1/2", "1/2"], ["1/4", "3/4"]]
RESPONSE = dp.FiniteMechanism({"a": COINS[0], "b": COINS[1]})
UNIT, LAW = [[1, 0], [0, 1]], {"0": [1, 0], "1": [0, 1]}
MODEL = hmm.HiddenMarkovModel(UNIT, COINS, LAW)
PRIORS = {"ill": COINS, "well": [["1/3", "2/3"]] * 2}
FREE = {"ill": [["p", "1 - p"]] * 2, "well": [["1/3", "2/3"]] * 2}
NOISY_MAX = hmm.NoisyMax("index", 1, COINS)
FAMILY = NOISY_MAX.family(FREE, {"p": ("1/4", "1/2")})
MAJORITY = dp.WeightedMajority(2, 0.5)
PUBLICATION = dp.publish(
    [(1,)], dp.Domain({"a": range(3)}), dp.AlphaBeta("0.5", "0.2"), insecure_seed=1
)
ON_CHAIN = {"family": CHAIN, "length": 10}
LAWS = {"well": {0: 0.5, 1: 0.5}, "ill": {1: 0.5, 2: "1/2"}}
FRAMEWORK = pf.PufferfishFramework({"all": LAWS})
DATABASES = {"all": {(0,): 0.5, (1,): 0.25, (2,): "1/4"}}
RECORDS = pf.PufferfishFramework.from_databases(DATABASES, sum)
RNG = np.random.default_rng(1)


def accountant(scale):
    account = pf.Accountant(CHAIN, 10)
    account.add(scale)
    return account.cost()


def networked(**fields):
    return networks.BayesianNetwork([networks.Variable(**fields)])


def quilts(network, node):
    return list(networks.markov_quilts(network, node))


CALLS = [
    *(
        (of, ON_CHAIN | {"epsilon": 1.0})
        for of in (pf.mechanisms.entry_dp, pf.group_dp, pf.gk16, pf.lower_bound)
    ),
    (pf.mqm_approx, ON_CHAIN | {"epsilon": 1.0, "eigengap": "auto"}),
    (pf.mqm_exact, ON_CHAIN | {"epsilon": 1.0, "convention": "exact"}),
    (pf.leakage, ON_CHAIN | {"epsilon": 1.0, "max_states": 3}),
    (pf.wasserstein, ON_CHAIN | {"epsilon": 1.0, "states": [1]}),
    (pf.certify, ON_CHAIN | {"epsilon": 1.0, "mechanism": "mqm-exact", "scale": 30.0}),
    (pf.verify_certificate, {"document": pf.certify(CHAIN, 10, 1.0)}),
    (pf.leakage_loss, ON_CHAIN | {"scale": 5.0, "max_states": 3}),
    (pf.Accountant.guarantee, ON_CHAIN | {"scale": 5.0, "mechanism": "mqm-exact"}),
    (pf.Accountant, ON_CHAIN),
    (pf.MixingFamily, {"steps": 60, "overlap": 0.4}),
    (pf.models.mixing_of, {"family": CHAIN, "steps": 3}),
    (pf.models.mixing_of(CHAIN, 3).family, {"margin": 0.1}),
    (mixing_from_counts, {"transition_counts": [[50, 3], [2, 10]], "steps": 3, "coverage": 0.9}),
    (pf.event_epsilon, ON_CHAIN | {"epsilon": 1.0, "window": 2, "side_information": "none"}),
    (
        pf.accounting.wrap,
        ON_CHAIN | {"measurement": NOISY, "d_in": 1, "window": 2, "side_information": "none"},
    ),
    (pf.RunningCount, {"length": 10, "event_epsilon": 1.0}),
    (pf.RunningCount(10**6, 1.0).add, {"value": 1}),
    (pf.RunningCount(10, 1.0).half_width, {"readings": 3}),
    (accountant, {"scale": 5.0}),
    (pf.mqm_exact(CHAIN, 10, 1.0).release, {"values": [1.0, 2.0], "lipschitz": 1.0, "rng": RNG}),
    (
        pf.MarkovChain,
        {"transition_matrix": [[0.5, 0.5], [0.2, 0.8]], "initial_distribution": "any"},
    ),
    (pf.ChainFamily, {"chains": [CHAIN]}),
    (pf.BinaryInterval, {"low": 0.3, "high": 0.6}),
    (pf.TotalVariationFamily, {"transition_matrix": [[0.5, 0.5], [0.2, 0.8]], "radius": 0.1}),
    (pf.HiddenChain, {"chain": CHAIN, "observations": [0, 1]}),
    (
        pf.PeriodicChain,
        {
            "transition_matrices": [[[0.5, 0.5], [0.2, 0.8]]],
            "repeat": 2,
            "initial_distribution": "any",
        },
    ),
    (pf.IntervalFamily, {"low": [[0.5, 0.2], [0.2, 0.5]], "high": [[0.8, 0.5], [0.5, 0.8]]}),
    (confidence_family, {"transition_counts": [[5, 3], [2, 1]], "coverage": 0.9}),
    (
        pf.fit_chain,
        {"transition_counts": [[5, 3], [2, 1]], "smoothing": 0.5, "initial_distribution": "any"},
    ),
    (CHAIN.simulate, {"length": 5, "rng": RNG}),
    (CountQuery, {"states": [1]}),
    (HistogramQuery, {"bins": [[0], [1]]}),
    (pf.privacy_loss, ON_CHAIN | {"scale": 5.0, "query": COUNT}),
    (pf.audit.smallest_scale, ON_CHAIN | {"epsilon": 1.0, "query": COUNT}),
    (networked, {"name": "A", "table": [0.5, 0.5], "parents": ()}),
    (networks.BayesianNetwork, {"variables": [networks.Variable("A", [0.5, 0.5])]}),
    (networks.chain_network, {"chain": CHAIN, "length": 3}),
    (
        networks.markov_quilt_mechanism,
        {"networks": NETWORK, "epsilon": 1.0, "secrets": ["X1"], "query": ["X1"]},
    ),
    (
        networks.network_cost,
        {"networks": NETWORK, "scales": [1.0, 2.0], "secrets": ["X1"], "query": ["X1"]},
    ),
    (quilts, {"network": NETWORK, "node": "X1"}),
    (networks.max_influence, {"network": NETWORK, "node": "X1", "quilt": ["X2"]}),
    (pf.audit.close_adversary, {"theta": CHAIN, "theta_tilde": CHAIN, "length": 5}),
    (pf.audit.close_adversary(CHAIN, CHAIN, 5).loss, {"epsilon": 1.0}),
    (chain_sensitivity, {"chains": CHAIN, "lengths": 2, "weights": [0, 1]}),
    (pf.PufferfishFramework, {"distributions": {"all": LAWS}, "pairs": [("well", "ill")]}),
    (
        pf.PufferfishFramework.from_databases,
        {"scenarios": DATABASES, "query": sum, "records": ["ann"], "pairs": None},
    ),
    (FRAMEWORK.wasserstein().scale, {"epsilon": 1.0}),
    (FRAMEWORK.release, {"value": 1, "epsilon": 1.0}),
    (FRAMEWORK.privacy_loss, {"scale": 1.0}),
    (FRAMEWORK.close_adversary, {"belief": LAWS}),
    (FRAMEWORK.close_adversary(LAWS).loss, {"epsilon": 1.0}),
    (RECORDS.group_sensitivity, {"groups": [["X1"]]}),
    (RECORDS.group_sensitivity([["X1"]]).scale, {"epsilon": 1.0}),
    (
        pf.plan,
        {
            "theta": pf.MixingFamily(3, 0.5),
            "statistics": ["mean-by-hour"],
            "step": "1h",
            "participants": 5,
        }
        | {
            "period": "2d",
            "epsilon": 1.0,
            "bounds": (0, 3),
            "protect": "2h",
            "side_information": "none",
        },
    ),
    (StateSpace.numeric, {"edges": [1.0, 2.0]}),
    (StateSpace.categories, {"names": ["a", "b"], "other": True}),
    (
        Schema,
        {
            "time": "t",
            "value": "v",
            "timezone": "UTC",
            "separator": ",",
            "decimal": ".",
            "thousands": "'",
        },
    ),
    (Schema, {"rows_are_steps": True, "states": STATES, "participant": "p", "group": "g"}),
    (pf.mixing, {"time": "1h", "overlap": 0.4}),
    (pf.fit, {"source": ROWS, "states": ["a", "b"], "coverage": 0.9, "start": "any"}),
    (pf.fit, {"source": TIMED, "states": ["a", "b"], "step": "1min", "timezone": "UTC"}),
    (
        pf.fit_privately,
        {"source": PEOPLE, "epsilon": 9.0, "most_transitions": 1, "participant": "participant"}
        | {"states": ["a", "b"], "confidence": 0.5, "start": "any", "rows_are_steps": True},
    ),
    (
        pf.release,
        {"source": METER, "theta": pf.MixingFamily(3, 0.5), "epsilon": 1.0, "edges": [0.5, 1.5]}
        | {
            "statistics": ["mean-by-hour", "durations", "histogram"],
            "bounds": (0.0, 2.0),
            "share": "1/2",
        }
        | {
            "threshold": np.float64(1),
            "duration_edges": (1, 5),
            "protect": "2min",
            "timezone": "UTC",
        }
        | {
            "output": None,
            "ledger": None,
            "accept_noise": True,
            "longest": 20,
            "first": "2020-01-01",
            "unit": "W",
        },
    ),
    (
        pf.release,
        {"source": ROWS, "theta": PUBLIC, "epsilon": 1.0, "seed": 3, "accept_noise": True},
    ),
    (pf.dp.Eta, {"x": 1, "y": 2, "z": 1}),
    (pf.dp.Eta.for_epsilon, {"epsilon": 1.0, "sensitivity": "1", "y": 16}),
    (
        pf.dp.Base2Exponential,
        {
            "eta": pf.dp.Eta(1, 1),
            "utility_min": 0,
            "utility_max": 3,
            "max_outcomes": 3,
            "sampler": "bitwise",
        }
        | {"sensitivity": "1", "minimum_attempts": 2, "insecure_seed": 1},
    ),
    (pf.dp.Base2Exponential(pf.dp.Eta(1, 1), 0, 3, 3).release, {"utilities": [0, 1]}),
    (
        pf.dp.Base2Laplace,
        {
            "eta": pf.dp.Eta(1, 1),
            "lower": "0",
            "upper": "3",
            "granularity": "1",
            "sensitivity": "1",
        },
    ),
    (pf.dp.Base2Laplace(pf.dp.Eta(1, 1), 0, 3, 1).release, {"value": "1"}),
    (dp.Laplace, {"sensitivity": 1.0, "epsilon": 1.0}),
    (dp.Laplace(1.0, 1.0).release, {"values": [1, 2]}),
    (dp.Laplace(1.0, 1.0).probability, {"noise": 1}),
    (dp.Exponential, {"sensitivity": 1.0, "epsilon": 1.0}),
    (dp.Exponential(1.0, 1.0).release, {"utilities": [1.0, 2.0], "count": 2}),
    (dp.RandomisedResponse, {"categories": ["a", "b"], "truth": 0.75}),
    (dp.RandomisedResponse.for_epsilon, {"categories": ["a", "b"], "epsilon": 1.0}),
    (dp.RandomisedResponse(("a", "b"), 0.75).release, {"values": ["a"]}),
    (dp.RandomisedResponse(("a", "b"), 0.75).estimate, {"answers": ["a"]}),
    (dp.RandomisedResponse(("a", "b"), 0.75).standard_error, {"count": 1.0, "total": 3}),
    (dp.WeightedMajority, {"experts": 2, "rate": 0.5}),
    (MAJORITY.probabilities, {"losses_so_far": [1.0, 2.0]}),
    (MAJORITY.release, {"losses_so_far": [1.0, 2.0], "insecure_seed": 1}),
    (MAJORITY.epsilon, {"rounds": 3, "delta": 1e-6}),
    (dp.private_rate, {"epsilon": 1.0, "rounds": 3, "delta": 1e-6}),
    (dp.AlphaBeta, {"alpha": "0.5", "beta": "0.2"}),
    (dp.AlphaBeta("0.5", "0.2").standard_error, {"count": 1.0, "domain_count": 3}),
    (dp.choose_alpha_beta, {"d": "0.2", "gamma": "0.5", "views": 2}),
    (dp.check_views, {"views": [dp.AlphaBeta("0.5", "0.2")], "d": "0.2", "gamma": "0.5"}),
    (
        dp.Publisher,
        {"data": [(1,)], "domain": dp.Domain({"a": range(3)}), "d": "0.2", "gamma": "0.5"},
    ),
    (
        dp.Publisher([(1,)], dp.Domain({"a": range(3)}), "0.2", 1).publish,
        {"parameters": dp.AlphaBeta("0.1", "0.2")},
    ),
    (
        dp.FiniteMechanism,
        {"distributions": {"a": COINS[0], "b": COINS[1]}, "neighbours": [("a", "b")]},
    ),
    (RESPONSE.delta, {"factor": "2"}),
    (RESPONSE.delta_at, {"epsilon": "0.5"}),
    (RESPONSE.level, {"delta": "0.1"}),
    (RESPONSE.is_private, {"epsilon": "1", "delta": "0.1"}),
    (RESPONSE.group, {"size": 2}),
    (RESPONSE.compose, {"other": RESPONSE}),
    (RESPONSE.repeated, {"times": 3}),
    (dp.composed, {"levels": [RESPONSE.level()]}),
    (dp.grouped, {"level": RESPONSE.level(), "size": 2}),
    (dp.change_one, {"values": range(3)}),
    (dp.add_or_remove_one, {"values": range(3)}),
    (
        dp.sensitivity,
        {"query": lambda rows: 1, "databases": [()], "neighbours": lambda rows: [(1,)]},
    ),
    (dp.Domain, {"columns": {"a": range(3)}}),
    (
        dp.publish,
        {
            "data": [(1,)],
            "domain": dp.Domain({"a": range(3)}),
            "parameters": dp.AlphaBeta("0.5", "0.2"),
            "insecure_seed": 1,
        },
    ),
    (PUBLICATION.count, {"where": {"a": 1}}),
    (hmm.truncated_geometric, {"largest": 3, "ratio": "1/2"}),
    (
        hmm.HiddenMarkovModel,
        {"transition_matrix": UNIT, "observation_matrix": COINS, "initial_distributions": LAW},
    ),
    (NOISY_MAX.model, {"priors": PRIORS}),
    (NOISY_MAX.family, {"priors": PRIORS, "parameters": {"p": (0, 1)}}),
    (NOISY_MAX.distribution, {"counts": [0, ["1/2", "1/2"]]}),
    (
        hmm.largest_value_ratio,
        {"queries": 2, "relation": "one-by-one", "largest": 1, "mechanism": COINS},
    ),
    (MODEL.probability, {"secret": "0", "sequence": ["0"]}),
    (hmm.check, {"model": MODEL, "factor": "2", "length": 1}),
    (hmm.largest_ratio, {"model": MODEL, "length": 1}),
    (hmm.check_by_solver, {"model": MODEL, "factor": "2", "length": 1}),
    (hmm.sup_ratio, {"family": FAMILY, "length": 2, "tolerance": "1/10"}),
    (hmm.find_prior, {"family": FAMILY, "factor": "2", "length": 2}),
    (hmm.preserving_region, {"family": FAMILY, "factor": "2", "length": 2}),
    (hmm.preserving_region(FAMILY, "2").interval, {"parameter": "p"}),
    (hmm.NoisyMax, {"release": "index", "largest": 1, "mechanism": COINS, "ties": "first"}),
    (hmm.NoisyMax("value").sample, {"counts": [0, 2], "insecure_seed": 1}),
    (pf.Ledger, {"path": "missing"}),
    (pf.Ledger.create, {"path": "new.ledger"}),
    (pf.models.read_public_model, {"path": "missing"}),
    (hmm.read_hidden_markov_model, {"path": "missing"}),
]
