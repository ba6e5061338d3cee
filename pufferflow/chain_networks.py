"""Markov chains as Bayesian networks: where the theory of chains and that of networks meet; neither knows the other."""

from __future__ import annotations

from pufferflow._checks import check_type, check_whole
from pufferflow.errors import NetworkError
from pufferflow.markov.chain import MarkovChain
from pufferflow.related.bayesnet.network import MOST_VARIABLES, BayesianNetwork, Variable


def chain_network(chain: MarkovChain, length: int) -> BayesianNetwork:
    """First ``length`` records of a Markov chain as a network X1 → X2 → … → XT.

    Parameters
    ----------
    chain : MarkovChain
        With a given or a stationary initial distribution.
    length : int
        T ≥ 1, at most :data:`MOST_VARIABLES`.

    Raises
    ------
    NetworkError
        The chain stands for any initial distribution, which is no single network.
    ParameterError
        ``chain`` is no chain, or T no such integer.
    """
    check_type(chain, "chain", MarkovChain)
    length, law = check_whole(length, "length", most=MOST_VARIABLES), chain.initial_distribution
    if law is None:
        raise NetworkError('a chain with initial_distribution "any" is no single network; give one distribution')
    later = (Variable(f"X{i}", chain.transition_matrix, parents=[f"X{i - 1}"]) for i in range(2, length + 1))
    return BayesianNetwork([Variable("X1", law), *later])
