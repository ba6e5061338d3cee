"""Markov Quilt Mechanism on general Bayesian networks."""

from pufferflow.bayesnet.files import network_document, parse_networks, read_networks, write_networks
from pufferflow.bayesnet.influence import max_influence
from pufferflow.bayesnet.mechanism import NetworkScale, markov_quilt_mechanism
from pufferflow.bayesnet.network import BayesianNetwork, Variable, chain_network
from pufferflow.bayesnet.quilts import MarkovQuilt, markov_quilts

__all__ = [
    "BayesianNetwork",
    "MarkovQuilt",
    "NetworkScale",
    "Variable",
    "chain_network",
    "markov_quilt_mechanism",
    "markov_quilts",
    "max_influence",
    "network_document",
    "parse_networks",
    "read_networks",
    "write_networks",
]
