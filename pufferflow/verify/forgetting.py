"""Scales of leakage for all chains that forget: the certificate needs no more than its claim.

Every Markov chain is meant whose laws of X_{t+m}, and of X_{t−m}, given two values of X_t overlap in at least α. With
c = 1/scale and ρ = (1 − α) e^(mc), n = km + r records on one side of a node tell two of its values apart by at most a
factor E(n), where E(r) = e^(rc) for r < m and

    E(n) = α e^((m−1)c) + ρ E(n − m),   that is   E(km + r) = a + ρ^k (e^(rc) − a),   a = α e^((m−1)c) / (1 − ρ).

A node with j records before it and N − j after it loses at most c + log E(j) + log E(N − j), N = T − 1. The largest
value over j is one of a few. For fixed numbers of whole blocks on either side, log E is convex in r, so one of the two
r is 0 or both end a block; and for given ends e^(rc) = u and v, with K blocks in all, E E' is concave in the number k
of those before the node, largest at ρ^(2k − K) = (a − v)/(a − u), which lies between ρ and 1/ρ, so |k − K/2| ≤ ½. A
window of w records costs w c in place of c, and N = T − w. The smallest scale whose loss is at most ε is found by
halving. The proofs are in ``docs/leakage.md``.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from flint import arb

from pufferflow.verify.balls import UndecidedError, ball
from pufferflow.verify.parsing import CertificateError, Claim, Forgetting, Nodes
from pufferflow.verify.proof import Bound, Proof, Work

_HALVINGS = 400
_LARGEST = 10**6
"""Costs m·c of a block beyond which forgetting is left out: the loss is then taken to be that of T records, T·c."""


class ForgettingProof(Proof):
    """The smallest scale at which every chain of a forgetting family loses at most ε."""

    quantity = "1/c"
    hides_windows = True

    def __init__(self, claim: Claim) -> None:
        super().__init__(claim)
        if not isinstance(claim.family, Forgetting):
            raise CertificateError("the family is not one of chains that forget")
        self.steps, self.overlap = claim.family.steps, claim.family.overlap

    def work(self) -> Work:
        """Estimate some losses, each of at most six places."""
        return Work(_HALVINGS * 6 * 20)

    def bound(self) -> Bound:
        """Enclose the smallest scale between one that is too small and one that suffices."""
        epsilon, length = self.claim.epsilon, self.claim.length
        low, high = self.claim.hidden / epsilon, length / epsilon  # a window alone costs w·c, all of them T·c
        for _ in range(_HALVINGS):
            middle = _short((low + high) / 2)
            loss = self._loss(1 / middle)
            if loss <= ball(epsilon):
                high = middle
            elif loss > ball(epsilon):
                low = middle
            else:
                break
            if (high - low) * 10**25 <= low:
                break
        if (high - low) * 10**20 > low:
            raise UndecidedError
        return Bound(low, high, 1, None, Nodes(1, self.claim.windows))

    def _loss(self, cost: Fraction) -> arb:
        """What the worst node loses at most."""
        c, around = ball(cost), self.claim.length - self.claim.hidden
        if self.steps * cost > _LARGEST or not around:
            return self.claim.length * c
        ratio = ball(1 - self.overlap) * (self.steps * c).exp()
        fixed = ball(self.overlap) * ((self.steps - 1) * c).exp() / (1 - ratio)
        factors = [
            self._factor(before, c, ratio, fixed) * self._factor(around - before, c, ratio, fixed)
            for before in self._places(around)
        ]
        largest = factors[0]
        for factor in factors[1:]:
            largest = largest.max(factor)
        return self.claim.hidden * c + largest.log()

    def _factor(self, records: int, c: arb, ratio: arb, fixed: arb) -> arb:
        blocks, rest = divmod(records, self.steps)
        start = (rest * c).exp()
        return fixed + ratio**blocks * (start - fixed) if blocks else start

    def _places(self, around: int) -> Iterator[int]:
        """Records before the nodes one of which is the worst."""
        blocks, rest = divmod(around, self.steps)
        for k in {max(blocks // 2 - 1, 0), blocks // 2, min(blocks // 2 + 1, blocks)}:
            yield k * self.steps
        if blocks and rest + 1 < self.steps:  # a block is shared by both sides, so there is one less
            blocks -= 1
            for k in {max(blocks // 2 - 1, 0), blocks // 2, min(blocks // 2 + 1, blocks)}:
                yield k * self.steps + rest + 1


def _short(number: Fraction) -> Fraction:
    """A number of 150 bits within 2^-149 of this one, relatively."""
    bits = number.numerator.bit_length() - number.denominator.bit_length()
    unit = Fraction(2) ** (bits - 150)
    return round(number / unit) * unit
