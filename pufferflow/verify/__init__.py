"""Checking a certificate, with interval arithmetic and none of the code that computes scales.

A certificate states a family of chains as exact numbers, ε, the length T, a Laplace scale, and what proves the
scale; its layout is described in :mod:`pufferflow.certificates`, which makes it. ``parsing`` turns the file into
typed records, ``balls`` holds the arithmetic on one chain (Arb: balls that contain the exact numbers), and there is
one file for every kind of proof. This one compares what is proved with what is stated.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR
from fractions import Fraction
from html import escape

from pufferflow.verify.counts import CountProof
from pufferflow.verify.couplings import CouplingProof
from pufferflow.verify.forgetting import ForgettingProof
from pufferflow.verify.parsing import (
    CertificateError,
    Claim,
    Clocked,
    Forgetting,
    Intervals,
    Nodes,
    decimal,
    parse_claim,
    read_certificate,
)
from pufferflow.verify.proof import MOST_WORK, Proof
from pufferflow.verify.quilts import IndependenceProof, LargerScaleProof, QuiltProof, WholeChainProof
from pufferflow.verify.robust import RobustCouplingProof
from pufferflow.verify.rounds import RoundsProof
from pufferflow.verify.stepwise import StepwiseProof


def _leakage(claim: Claim) -> Proof:
    if isinstance(claim.family, Forgetting):
        return ForgettingProof(claim)
    if isinstance(claim.family, Clocked):
        return RoundsProof(claim)
    if isinstance(claim.family, Intervals):
        return RobustCouplingProof(claim)
    if "nodes" in claim.rest:  # where quilts prove more
        return QuiltProof(claim)
    return StepwiseProof(claim) if "steps" in claim.rest else CouplingProof(claim)


PROOFS: dict[str, Callable[[Claim], Proof]] = {
    "mqm-exact": QuiltProof,
    "mqm-approx": LargerScaleProof,
    "group-dp": WholeChainProof,
    "entry-dp": IndependenceProof,
    "leakage": _leakage,
    "wasserstein": CountProof,
}
"""The mechanisms whose scales can be proved, and what makes the proof of a parsed claim."""

EXCESS = Fraction(1, 10**12)
"""How far (relatively) a scale may exceed the smallest one proved and still be the one it belongs to."""


@dataclass(frozen=True)
class Verification:
    """What a certificate proves: its scale is at least a quantity that lies in [lower, upper].

    Attributes
    ----------
    subject : str
        What the scale is for: mechanism, ε, chains, segments, for wasserstein the count.
    scale : str
        As the certificate writes it.
    quantity : str
        What is the smallest scale proved; of quilts the largest card / (ε − e).
    lower, upper : Fraction
        Certified enclosure of its largest value over all nodes and chains.
    ranges : int
        Ranges of nodes checked.
    chain : int or None
        Index of the chain that decides; None where all of them do together.
    nodes : Nodes
        The range that decides; for proofs by quilts with the distances of the quilt.
    precision : int
        Bits that were needed.
    """

    subject: str
    scale: str
    quantity: str
    lower: Fraction
    upper: Fraction
    ranges: int
    chain: int | None
    nodes: Nodes
    precision: int

    def __repr__(self) -> str:
        return f"Verification({self.subject}: scale {self.scale})"

    def _repr_html_(self) -> str:
        return f"<code>{escape(repr(self))}</code>"

    def decimals(self, digits: int = 25) -> tuple[str, str]:
        """Return the enclosure as decimals, rounded outward."""
        return decimal(self.lower, digits, ROUND_FLOOR), decimal(self.upper, digits, ROUND_CEILING)


def verify_certificate(document: object, *, most_work: int = MOST_WORK) -> Verification:
    """Check a certificate, given as parsed JSON.

    Parameters
    ----------
    document : object
        What :func:`pufferflow.certify` returns.
    most_work : int
        Operations on numbers of 128 bits that the check may take; more are estimated, and refused, before it starts.
        The default takes about half a minute.

    Returns
    -------
    Verification
        The enclosure that proves it.

    Raises
    ------
    CertificateError
        It is malformed, its scale is too small for some node, its scale is not the one it proves, or the check takes
        more than ``most_work``.
    """
    proof = parse(document)
    scale, stated = Fraction(proof.claim.scale), proof.stated
    for precision, bound in proof.bounds(most_work):
        if scale < bound.lower:
            raise CertificateError(
                f"{bound}: {proof.quantity} is at least {decimal(bound.lower)}, "
                f"more than the scale {decimal(scale)} (by {decimal(bound.lower - scale, 3)})"
            )
        if scale >= bound.upper:
            if not bound.lower <= stated <= bound.upper * (1 + EXCESS):
                raise CertificateError(
                    f"{decimal(stated)} is not the scale that is proved: the largest {proof.quantity}, "
                    f"{bound}, is {decimal(bound.upper)}; something was changed"
                )
            return Verification(
                proof.subject,
                proof.claim.scale,
                proof.quantity,
                bound.lower,
                bound.upper,
                bound.ranges,
                bound.chain,
                bound.nodes,
                precision,
            )
    raise CertificateError(f"{proof.precisions[-1]} bits do not decide whether the scale suffices")


def parse(document: object) -> Proof:
    """Return the proof that a certificate gives, still unchecked.

    Raises CertificateError: it is malformed.
    """
    claim = parse_claim(document, tuple(PROOFS))
    return PROOFS[claim.mechanism](claim)


__all__ = ["MOST_WORK", "CertificateError", "Verification", "read_certificate", "verify_certificate"]
