"""Quilts for ranges of nodes, chosen by the verifier's bounds."""

from bisect import bisect_left
from operator import itemgetter
from typing import Any, TypeAlias

from pufferflow.errors import CertificateError
from pufferflow.influence.quilts import QuiltSearch
from pufferflow.models.chain import MarkovChain
from pufferflow.verify import MAX_WORK
from pufferflow.verify.balls import Work
from pufferflow.verify.interpret import Interpreter
from pufferflow.verify.parse import Claim, Proof

MAX_RANGES = 5_000
"""Largest number of ranges of one chain, single nodes included."""
_KNOWN_QUILTS = 12

Form: TypeAlias = tuple[int | None, int | None]


def quilts_of_chain(chain: MarkovChain, exact: Any, claim: Claim) -> list[list[int | None]]:
    """Return ranges of nodes with a quilt each whose losses are at most ε, as far as possible.

    A quilt serves a whole range of nodes if the bound of its first node suffices: a two-sided one
    up to T − b, a left-only one up to T, a right-only one as long as its card is small enough. If
    no known quilt serves, a single node gets its best one, which is added to the known ones. The
    search in floats proposes quilts, the verifier's rules check them.
    """
    loss = Interpreter(claim, exact, Proof(), Work(MAX_WORK)).quilt
    search = QuiltSearch(chain, claim.length, float(claim.epsilon), window=claim.window)
    windows, worst = claim.windows, search.worst_node()
    left, right = worst.left, worst.right
    forms: list[Form] = [(left, right), (None, right), (left, None), (None, None)]
    waits: dict[Form, tuple[int, int]] = {}  # node of the next trial, and distance to it
    ranges: list[list[int | None]] = []

    def served(first: int, form: Form) -> int:
        """Return the last node of the longest range from ``first`` on, or ``first`` − 1."""
        (a, b), (again, waited) = form, waits.get(form, (0, 0))
        end = windows - (b or 0)
        if first > end or first <= (a or 0) or first < again:
            return first - 1
        if loss(first, end, a, b) <= claim.epsilon:
            return end
        # the bound falls with the node, but takes a power of P: do not compute it at every node
        if a is not None:
            waits[form] = first + 2 * waited + 1, 2 * waited + 1
        if a is not None or loss(first, first, a, b) > claim.epsilon:
            return first - 1
        # its influence does not depend on the node
        later = range(first + 1, end + 1)
        return first + bisect_left(
            later, True, key=lambda last: loss(first, last, a, b) > claim.epsilon
        )

    first = 1
    while first <= windows:
        if len(ranges) == MAX_RANGES:
            why = f"more than {MAX_RANGES} ranges of nodes have quilts of their own"
            raise CertificateError(why)
        found = ((served(first, form), form) for form in forms)
        last, form = max(found, key=itemgetter(0))
        if last < first:
            last = first
            fit = (f for f in forms if (f[0] or 0) < first <= windows - (f[1] or 0))
            alone = next((f for f in fit if loss(first, first, *f) <= claim.epsilon), None)
            if alone is None:
                best = search.best_quilt(search.nodes(first))
                alone = best.left, best.right
                known = [alone, (None, best.right), (best.left, None), *forms[:_KNOWN_QUILTS]]
                forms = [*(f for f in dict.fromkeys(known) if f != (None, None)), (None, None)]
            form = alone
        ranges.append([first, last, *form])
        first = last + 1
    return ranges
