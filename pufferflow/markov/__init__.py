"""Markov chains, families of chains, estimation from samples and simulation."""

from pufferflow.markov.chain import ANY, STATIONARY, MarkovChain
from pufferflow.markov.estimation import fit_chain, fit_periodic_chain
from pufferflow.markov.families import BinaryInterval, ChainFamily, Family, as_family
from pufferflow.markov.labelled import LabelledChain
from pufferflow.markov.periodic import PeriodicChain

__all__ = [
    "ANY",
    "STATIONARY",
    "BinaryInterval",
    "ChainFamily",
    "Family",
    "LabelledChain",
    "MarkovChain",
    "PeriodicChain",
    "as_family",
    "fit_chain",
    "fit_periodic_chain",
]
