"""Scales that the largest and the smallest transition probability prove: bayesian-dp.

With γ their ratio, the law of the next node given the last value of a window, and whatever else is known, is
proportional to P(x, z) h(z), h ≥ 0; two such laws differ by at most the factor γ², as do those of the node before. So a
window of w records loses at most w c + 4 log γ at c = 1/scale, and w / (ε − 4 log γ) suffices.
"""

from __future__ import annotations

from fractions import Fraction

from flint import arb

from pufferflow.verify.balls import UndecidedError, ball, exact
from pufferflow.verify.parsing import CertificateError, Claim, Intervals, Nodes, finite
from pufferflow.verify.proof import Bound, Proof, Work


class ExtremesProof(Proof):
    """w / (ε − 4 log (max P / min P)), for whoever knows whichever other records."""

    quantity = "w/(epsilon - 4 log(max P / min P))"
    hides_windows = from_informed = True

    def __init__(self, claim: Claim) -> None:
        super().__init__(claim)
        if isinstance(claim.family, Intervals):
            low, high = claim.family.low, claim.family.high
        else:
            low = high = [row for chain in finite(claim) for row in chain.matrix]
        self.smallest, self.largest = min(min(row) for row in low), max(max(row) for row in high)
        if not self.smallest:
            raise CertificateError("a transition has probability 0, so max P / min P is infinite")

    def work(self) -> Work:
        """Nothing to speak of."""
        return Work(1)

    def bound(self) -> Bound:
        """Enclose the scale."""
        nodes, epsilon = Nodes(1, self.claim.windows), ball(self.claim.epsilon)
        # of a segment that is one window no node is left, and equal probabilities tell nothing
        alone = self.claim.windows == 1 or self.smallest == self.largest
        slack = epsilon if alone else epsilon - 4 * ball(Fraction(self.largest / self.smallest)).log()
        if slack > 0:
            scale: arb = self.claim.hidden / slack
            return Bound(exact(scale.lower()), exact(scale.upper()), 1, None, nodes)
        if slack <= 0:
            raise CertificateError(f"epsilon is not above {self.quantity[12:-1]}, up to which it proves nothing")
        raise UndecidedError
