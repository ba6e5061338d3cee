"""Quilts that serve many nodes at once, chosen by what the verifier reads from them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from pufferflow.influence.quilts import QuiltSearch, influence_tables
from pufferflow.models.chain import MarkovChain
from pufferflow.verify import MOST_WORK, CertificateError
from pufferflow.verify.balls import Work
from pufferflow.verify.interpret import Interpreter
from pufferflow.verify.parse import Claim, Proof

MOST_RANGES = 5_000
"""Ranges of one chain at most (single nodes count)."""
_KNOWN_QUILTS = 12

Form: TypeAlias = tuple[int | None, int | None]


def quilts_of_chain(chain: MarkovChain, exact: Any, claim: Claim) -> list[list[int | None]]:
    """Return ranges of nodes with a quilt each whose losses are at most ε, as far as there are any.

    A quilt serves a whole range of nodes where the bound of its first node suffices: a two-sided
    one up to T − b, a left-only one up to T, a right-only one as long as its card is small enough.
    Where no known quilt serves, a single node gets its best one, which joins the known ones. The
    search in floats proposes, the verifier's rules decide.
    """
    loss = Interpreter(claim, exact, Proof(), Work(MOST_WORK)).quilt
    tables, windows = influence_tables(chain, "exact", claim.window), claim.windows
    search = QuiltSearch(tables, claim.length, float(claim.epsilon))
    worst = search.worst_node()
    left, right = worst.left, worst.right
    forms: list[Form] = [(left, right), (None, right), (left, None), (None, None)]
    waits: dict[Form, tuple[int, int]] = {}  # node from which to try again, nodes waited for
    ranges: list[list[int | None]] = []

    def served(first: int, form: Form) -> int:
        """The last node of the longest range from ``first`` on, or 0."""
        (a, b), (again, waited) = form, waits.get(form, (0, 0))
        end = windows - (b or 0)
        if first > end or first <= (a or 0) or first < again:
            return 0
        if loss(first, end, a, b) <= claim.epsilon:
            return end
        if a is None and b is not None:  # its influence does not depend on the node
            return _largest(first, end, lambda last: loss(first, last, a, b) <= claim.epsilon)
        # the bound falls with the node, but costs a power of P: do not ask at every node
        if a is not None:
            waits[form] = first + 2 * waited + 1, 2 * waited + 1
        return 0

    first = 1
    while first <= windows:
        if len(ranges) == MOST_RANGES:
            raise CertificateError(
                f"more than {MOST_RANGES} ranges of nodes have quilts of their own"
            )
        last, form = max(
            ((served(first, form), form) for form in forms), key=lambda found: found[0]
        )
        if not last:
            fit = (f for f in forms if (f[0] or 0) < first <= windows - (f[1] or 0))
            last = first
            single = next((f for f in fit if loss(first, first, *f) <= claim.epsilon), None)
            if single is None:
                best = search.best_quilt(search.nodes(first))
                single = best.left, best.right
                sides = (None, best.right), (best.left, None)
                forms = list(dict.fromkeys([single, *sides, *forms[:_KNOWN_QUILTS]]))
                forms = [*(f for f in forms if f != (None, None)), (None, None)]
            form = single
        ranges.append([first, last, *form])
        first = last + 1
    return ranges


def _largest(least: int, most: int, good: Callable[[int], bool]) -> int:
    """The largest number that is good, where all below one are; 0 if none is."""
    if not good(least):
        return 0
    while least < most:
        middle = (least + most + 1) // 2
        least, most = (middle, most) if good(middle) else (least, middle - 1)
    return least
