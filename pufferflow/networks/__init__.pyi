"""Public names, each with its module."""

from .influence import max_influence as max_influence
from .mechanism import MarkovQuilt as MarkovQuilt
from .mechanism import NetworkScale as NetworkScale
from .mechanism import markov_quilt_mechanism as markov_quilt_mechanism
from .mechanism import markov_quilts as markov_quilts
from .mechanism import network_cost as network_cost
from .network import BayesianNetwork as BayesianNetwork
from .network import Variable as Variable
from .network import chain_network as chain_network
from .network import read_networks as read_networks
