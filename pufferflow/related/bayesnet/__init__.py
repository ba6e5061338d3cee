"""Markov Quilt Mechanism on general Bayesian networks (Song, Wang, Chaudhuri, SIGMOD 2017, Algorithm 2).

A worked example: who caught the flu from whom. Ann may have brought it from work; Bob and Cem met her, Dan and Eva
met Bob, Fay met Cem.

>>> import pufferflow as pf
>>> met = [[0.9, 0.1], [0.6, 0.4]]  # healthy or ill, given that the contact was healthy, was ill
>>> contacts = {"Bob": "Ann", "Cem": "Ann", "Dan": "Bob", "Eva": "Bob", "Fay": "Cem"}
>>> tree = pf.BayesianNetwork([
...     pf.Variable("Ann", [0.8, 0.2], states=["healthy", "ill"]),
...     *(pf.Variable(who, met, [source], ["healthy", "ill"]) for who, source in contacts.items()),
... ])

The number of ill people changes by at most 1 with one person, so it is released with Laplace noise of this scale:

>>> found = pf.markov_quilt_mechanism(tree, epsilon=3)
>>> round(found.scale, 6), found.node, found.quilt, found.nearby
(1.83889, 'Ann', ('Bob', 'Fay'), ('Ann', 'Cem'))
>>> round(found.influence, 6), found.optimal
(1.912387, True)

Ann decides. Given Bob and Fay, Dan and Eva tell nothing more of her; together Bob and Fay reveal at most a ratio of
exp(1.912) = 6.77 about her. Protecting all six as one group would take 6 / 3 = 2. For Cem, the cheapest of
his quilts is Ann alone, with Fay nearby:

>>> for quilt in pf.markov_quilts(tree, "Cem"):
...     e = pf.max_influence(tree, "Cem", quilt.quilt)
...     if len(quilt.quilt) < 2:
...         print(quilt.quilt, len(quilt.nearby), round(e, 4), round(len(quilt.nearby) / (3 - e), 4))
('Ann',) 2 1.2528 1.1447
('Bob',) 3 0.5596 1.2293
('Fay',) 5 1.3863 3.0985
('Dan',) 5 0.2029 1.7876
('Eva',) 5 0.2029 1.7876
() 6 0.0 2.0

What is *not* guaranteed: the networks are believed. A person with knowledge that contradicts all of them may learn more
than ε allows. Where the tables are not known exactly, give several networks.
"""

from pufferflow.related.bayesnet.composition import NetworkCost, network_cost
from pufferflow.related.bayesnet.files import network_document, parse_networks, read_networks, write_networks
from pufferflow.related.bayesnet.influence import max_influence
from pufferflow.related.bayesnet.mechanism import NetworkScale, markov_quilt_mechanism
from pufferflow.related.bayesnet.network import BayesianNetwork, Variable
from pufferflow.related.bayesnet.quilts import MarkovQuilt, markov_quilts

__all__ = [
    "BayesianNetwork",
    "MarkovQuilt",
    "NetworkCost",
    "NetworkScale",
    "Variable",
    "markov_quilt_mechanism",
    "markov_quilts",
    "max_influence",
    "network_cost",
    "network_document",
    "parse_networks",
    "read_networks",
    "write_networks",
]
