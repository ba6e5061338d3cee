"""Markov Quilt Mechanism on general Bayesian networks (Song et al., SIGMOD 2017, Algorithm 2).

A flu network: Bob and Cem met Ann, Dan and Eva met Bob, Fay met Cem.

>>> from pufferflow.networks import BayesianNetwork, Variable, markov_quilt_mechanism
>>> met = [[0.9, 0.1], [0.6, 0.4]]  # healthy or ill, given that the contact was healthy, was ill
>>> contacts = {"Bob": "Ann", "Cem": "Ann", "Dan": "Bob", "Eva": "Bob", "Fay": "Cem"}
>>> people = [Variable(who, met, [source]) for who, source in contacts.items()]
>>> found = markov_quilt_mechanism(BayesianNetwork([Variable("Ann", [0.8, 0.2]), *people]), 3)
>>> round(found.scale, 6), found.node, found.quilt, round(found.influence, 6), found.optimal
(1.83889, 'Ann', ('Bob', 'Fay'), 1.912387, True)

Given Bob and Fay, Dan and Eva are independent of Ann; together Bob and Fay reveal at most a ratio
of exp(1.912) = 6.77 about her. Group privacy for all six has scale 6 / 3 = 2. If the tables are not
known exactly, give several networks.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
