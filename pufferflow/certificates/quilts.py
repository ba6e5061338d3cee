"""Quilts that serve many nodes at once, chosen by what the verifier reads from them."""

from __future__ import annotations

from typing import Any

from flint import ctx

from pufferflow.influence.quilts import Candidate, QuiltSearch, influence_tables, worst_node
from pufferflow.models.chain import MarkovChain
from pufferflow.verify.interpret import QuiltReader, Terms
from pufferflow.verify.model import PRECISIONS, Model, UndecidedError
from pufferflow.verify.parse import CertificateError, Chain, Claim, Quilt

MOST_RANGES = 5_000
"""Ranges of one chain at most (single nodes count)."""

_KNOWN_QUILTS = 12


def quilts_of_chain(chain: MarkovChain, exact: Chain, claim: Claim) -> list[list[int | None]]:
    """Return ranges of nodes with a quilt each whose losses are at most ε, as far as there are such quilts.

    The quilts are found with the floating-point search and judged with the balls of the verifier.

    Raises CertificateError: there are too many of them, or no precision suffices.
    """
    table = influence_tables(chain, "exact", claim.window)
    search = QuiltSearch(table, claim.length, float(claim.epsilon))
    worst = worst_node(table, claim.length, float(claim.epsilon))
    for precision in PRECISIONS:
        try:
            with ctx.workprec(precision):
                return _Cover(QuiltReader(Model(exact), Terms(claim)), search).run(worst)
        except UndecidedError:
            continue
    raise CertificateError(f"{PRECISIONS[-1]} bits do not tell small probabilities from 0")


class _Cover:
    """Nodes 1 … T in few ranges.

    A quilt serves a whole range of nodes where the bound of its first node suffices: a two-sided one up to T − b, a
    left-only one up to T, a right-only one as long as its card is small enough. Where no known quilt serves, a single
    node gets its best one, which joins the known ones.
    """

    def __init__(self, reader: QuiltReader, search: QuiltSearch) -> None:
        self.reader, self.search, self.windows = reader, search, reader.windows
        self.epsilon, self.scale = reader.terms.claim.epsilon, reader.terms.scale
        self.forms: list[tuple[int | None, int | None]] = [(None, None)]
        self.waits: dict[Any, tuple[int, int]] = {}  # node from which to try again, nodes waited for

    def run(self, worst: Candidate) -> list[list[int | None]]:
        self._learn(worst)
        ranges: list[Quilt] = []
        node = 1
        while node <= self.windows:
            if len(ranges) == MOST_RANGES:
                raise CertificateError(f"more than {MOST_RANGES} ranges of nodes have quilts of their own")
            served = [quilt for form in self.forms if (quilt := self._served(node, *form)) is not None]
            ranges.append(max(served, key=lambda quilt: quilt.last, default=None) or self._single(node))
            node = ranges[-1].last + 1
        return [list(quilt) for quilt in ranges]

    def _served(self, node: int, a: int | None, b: int | None) -> Quilt | None:
        """The longest range from ``node`` on that a known quilt serves."""
        end = self.windows - (b or 0)
        again, waited = self.waits.get((a, b), (0, 0))
        if node > end or node <= (a or 0) or node < again:
            return None
        if a is None and b is not None:
            # influence does not depend on the node: the card alone limits the range
            influence = self.reader.influence(Quilt(node, end, a, b))
            if influence is None:
                return None
            left = float(self.epsilon) - float(influence.log())
            for less in (0, 1):
                last = int(left * float(self.scale)) - b + 1 - (self.reader.hidden - 1) - less
                quilt = Quilt(node, min(last, end), a, b)
                if quilt.last >= node and self._good(quilt):
                    return quilt
            return None
        quilt = Quilt(node, end, a, b)
        if self._good(quilt):
            return quilt
        if a is not None:  # the bound falls with the node, but costs a power of P: do not ask at every node
            self.waits[a, b] = node + 2 * waited + 1, 2 * waited + 1
        return None

    def _single(self, node: int) -> Quilt:
        for a, b in self.forms:
            if (a or 0) < node <= self.windows - (b or 0) and self._good(quilt := Quilt(node, node, a, b)):
                return quilt
        best = self.search.best_quilt(self.search.nodes(node))
        self._learn(best)
        return Quilt(node, node, best.left, best.right)

    def _learn(self, quilt: Candidate) -> None:
        """Put the quilt and its sides in front of the known ones; the trivial one stays."""
        a, b = quilt.left, quilt.right
        known = [(a, b), (None, b), (a, None), *self.forms[: _KNOWN_QUILTS - 1], (None, None)]
        self.forms = list(dict.fromkeys(known))

    def _good(self, quilt: Quilt) -> bool:
        return self.reader.card(quilt) <= self.epsilon * self.scale and self.reader.one(quilt) <= self.epsilon
