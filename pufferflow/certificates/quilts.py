"""Quilts that serve many nodes at once, for certificates of mqm-exact and mqm-approx."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, Protocol

from flint import arb, ctx, fmpq

from pufferflow.errors import ParameterError
from pufferflow.influence.search import Candidate, QuiltSearch, worst_node
from pufferflow.influence.tables import Convention, influence_tables
from pufferflow.markov.families import Family
from pufferflow.verify.balls import PRECISIONS, UndecidedError
from pufferflow.verify.parsing import Chain
from pufferflow.verify.quilts import NodeRange, QuiltScores, Scores

TOLERANCES = (2.0**-40, 2.0**-30, 2.0**-20, 2.0**-10, 2.0**-6, 2.0**-3, 1.0, math.inf)
"""How far (relatively) ranges of nodes may exceed the worst node; the next one where too many ranges were needed."""

MOST_RANGES = 5_000
"""Ranges of one chain at most (single nodes count)."""

_KNOWN_QUILTS = 12

_Form = tuple[int | None, int | None]


class _Search(Protocol):
    def best_quilt(self, node: int) -> Candidate:
        """Return the quilt with the smallest score."""


def quilts_of_chains(
    theta: Family, chains: tuple[Chain, ...], length: int, epsilon: float, convention: Convention, window: int = 1
) -> dict[str, Any]:
    """Return the fields of a proof by quilts for the exact ``chains``, which are those of ``theta``.

    The quilts are found with the floating-point search and judged with the balls of the verifier.
    """
    tables = [influence_tables(chain, convention, window) for chain in theta.chains]
    worst = [worst_node(table, length, epsilon) for table in tables]
    searches = [QuiltSearch(table, length, epsilon) for table in tables]
    hidden = min(window, length)
    numbers = length - hidden + 1, Fraction(repr(epsilon)), hidden
    for precision in PRECISIONS:
        try:
            with ctx.workprec(precision):
                scores = [QuiltScores(chain, convention, *numbers) for chain in chains]
                return {"convention": convention, "nodes": _node_ranges(scores, searches, worst)}
        except UndecidedError:
            continue
    raise ParameterError(f"no certificate: {PRECISIONS[-1]} bits do not tell small probabilities from 0")


def neighbours(length: int) -> list[dict[str, int | None]]:
    """Ranges of nodes with the quilt next to each."""
    if length == 1:
        nodes = [NodeRange(1, 1, None, None)]
    else:
        nodes = [NodeRange(1, 1, None, 1), NodeRange(2, length - 1, 1, 1), NodeRange(length, length, 1, None)]
    return [vars(entry) for entry in nodes if entry.first <= entry.last]


class _TooManyRangesError(Exception):
    pass


def _node_ranges(
    scores: Sequence[Scores], searches: Sequence[_Search], worst: list[Candidate]
) -> list[list[dict[str, int | None]]]:
    """Ranges of nodes of all chains whose scores hardly exceed that of the worst node."""
    highest = arb(0)
    for score, candidate in zip(scores, worst, strict=True):
        reached = score.score(NodeRange(candidate.node, candidate.node, candidate.left, candidate.right))
        if reached is not None:
            highest = highest.max(reached)
    for tolerance in TOLERANCES:
        try:
            covers = [
                _Cover(score, search, highest.upper() * (1 + arb(tolerance)))
                for score, search in zip(scores, searches, strict=True)
            ]
            return [
                [vars(nodes).copy() for nodes in cover.run(candidate)]
                for cover, candidate in zip(covers, worst, strict=True)
            ]
        except _TooManyRangesError:
            continue
    raise AssertionError("with infinite tolerance the trivial quilt covers all nodes")


class _Cover:
    """Nodes 1 … T in few ranges whose scores are at most ``target``, as far as there are such quilts.

    A quilt serves a whole range of nodes where the bound of its first node suffices: a two-sided one up
    to T − b, a left-only one up to T, a right-only one as long as its card is small enough. Where no
    known quilt serves, a single node gets its best one, which joins the known ones.
    """

    def __init__(self, scores: Scores, search: _Search, target: arb) -> None:
        self.scores, self.search, self.target = scores, search, target
        self.length = scores.length
        self.excess = TOLERANCES[0]  # how far (relatively) the next raise of the target goes beyond its cause
        self.forms: list[_Form] = [(None, None)]
        self.waits: dict[_Form, tuple[int, int]] = {}  # node from which to try again, nodes waited for

    def run(self, worst: Candidate) -> list[NodeRange]:
        self._learn(worst)
        ranges: list[NodeRange] = []
        node = 1
        while node <= self.length:
            if len(ranges) == MOST_RANGES:
                raise _TooManyRangesError
            ranges.append(self._longest(node) or self._single(node))
            node = ranges[-1].last + 1
        return ranges

    def _learn(self, quilt: Candidate) -> None:
        """Put the quilt and its sides in front of the known ones; the trivial one stays."""
        a, b = quilt.left, quilt.right
        self.forms = list(dict.fromkeys([(a, b), (None, b), (a, None), *self.forms[: _KNOWN_QUILTS - 1], (None, None)]))

    def _longest(self, node: int) -> NodeRange | None:
        """The longest range from ``node`` on that a known quilt serves."""
        served = [nodes for form in self.forms if (nodes := self._served(node, *form)) is not None]
        return max(served, key=lambda nodes: nodes.last, default=None)

    def _served(self, node: int, a: int | None, b: int | None) -> NodeRange | None:
        end = self.length - (b or 0)
        nodes = NodeRange(node, end, a, b)
        again, waited = self.waits.get((a, b), (0, 0))
        if node > end or node <= (a or 0) or node < again:
            return None
        if a is None and b is not None:
            # influence does not depend on the law: the card alone limits the range
            score = self.scores.score(nodes)
            if score is None:
                return None
            hidden = self.scores.hidden - 1
            card = end + b - 1 + hidden
            most = (int(float((self.target * card / score).mid())) if self.target.is_finite() else card) - hidden
            for last in (most - b + 1, most - b):
                nodes = NodeRange(node, min(last, end), a, b)
                if last >= node and self._good(nodes):
                    return nodes
            return None
        if self._good(nodes):
            return nodes
        if a is not None:
            # the bound falls with the node, but costs a power of P: do not ask for it at every node
            waited = 2 * waited + 1
            self.waits[(a, b)] = node + waited, waited
        return None

    def _single(self, node: int) -> NodeRange:
        for a, b in self.forms:
            if (a or 0) < node <= self.length - (b or 0):
                nodes = NodeRange(node, node, a, b)
                if self._good(nodes):
                    return nodes
        best = self.search.best_quilt(node)
        self._learn(best)
        nodes = NodeRange(node, node, best.left, best.right)
        score = self.scores.score(nodes)
        if score is None:  # the search rounds influences up, so this takes a quilt at the very edge of ε
            return NodeRange(node, node, None, None)
        if score > self.target:
            # no quilt does better here, so other nodes may score as much: a little more each time,
            # lest scores that rise slowly take a range at every node
            self.target = score.upper() * (1 + arb(self.excess))
            self.excess *= 2
        return nodes

    def _good(self, nodes: NodeRange) -> bool:
        if not self._least_score(nodes) <= self.target:
            return False
        score = self.scores.score(nodes)
        return score is not None and bool(score <= self.target)

    def _least_score(self, nodes: NodeRange) -> arb:
        """Card/ε, which needs no power of P."""
        card = self.scores.card(nodes)
        epsilon = self.scores.epsilon
        return arb(fmpq(card * epsilon.denominator, epsilon.numerator))
