"""What the proofs of all mechanisms have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import ROUND_FLOOR
from fractions import Fraction
from math import isqrt
from typing import ClassVar, NamedTuple

from flint import ctx

from pufferflow.verify.balls import PRECISIONS, UndecidedError
from pufferflow.verify.parsing import (
    BinaryClass,
    CertificateError,
    Claim,
    Clocked,
    Family,
    Forgetting,
    Intervals,
    Nodes,
    check_object,
    decimal,
)

MOST_WORK = 4 * 10**7
"""Operations beyond which no certificate is checked unless more are allowed: about half a minute."""

MOST_KEPT = 5 * 10**8
"""Bytes of balls beyond which no certificate is checked."""


class Work(NamedTuple):
    """What a check takes, about, but not less than half of it.

    Attributes
    ----------
    operations : int
        On one or two balls each.
    products : int
        Of the entries of matrices or polynomials, which cost a tenth of an operation.
    kept : int
        Balls kept at a time.
    """

    operations: int
    products: int = 0
    kept: int = 0

    def at(self, precision: int) -> int:
        """Everything in operations on balls of 128 bits."""
        words = precision // 128
        return self.operations * (1 + words // 4) + self.products * words * isqrt(words) // 10

    def memory(self, precision: int) -> int:
        """Bytes of the balls that are kept."""
        return self.kept * (100 + precision // 4)


@dataclass(frozen=True)
class Bound:
    """The smallest scale that a proof proves lies in [lower, upper]; certain nodes (of a chain) decide."""

    lower: Fraction
    upper: Fraction
    ranges: int
    chain: int | None
    nodes: Nodes

    def __str__(self) -> str:
        return place(self.chain, self.nodes)


def place(chain: int | None, nodes: Nodes) -> str:
    """Say which nodes, and of which chain if it is one only."""
    return str(nodes) if chain is None else f"chain {chain + 1}, {nodes}"


class Proof(ABC):
    """The proof that a certificate gives of its claim."""

    keys: ClassVar[tuple[str, ...]] = ()
    """Fields of the certificate that only this kind of proof has."""

    quantity: ClassVar[str] = "card/(epsilon - e)"
    """What the scale must not be below."""

    hides_windows: ClassVar[bool] = False
    """Whether it can prove that windows of several records are hidden."""

    from_informed: ClassVar[bool] = False
    """Whether it can prove that records are hidden from those who know others."""

    precisions: ClassVar[tuple[int, ...]] = PRECISIONS
    """Bits of the balls, tried in turn."""

    def __init__(self, claim: Claim) -> None:
        """Parse the fields of this kind of proof; raises CertificateError."""
        self.claim = claim
        if claim.window > 1 and not self.hides_windows:
            raise CertificateError(f"{claim.mechanism} has no proof for windows of several records; use leakage")
        if claim.knows != "nothing" and not self.from_informed:
            raise CertificateError(f"{claim.mechanism} has no proof against those who know records; use leakage")
        self.fields = check_object(claim.rest, self.keys, "the certificate")

    @property
    def subject(self) -> str:
        """What the scale is said to be private for."""
        claim = self.claim
        family, hidden = _in_words(claim.family), "single records" if claim.window == 1 else "any {} records in a row"
        whom = "know no record" if claim.knows == "nothing" else "may know any other records"
        return (
            f"{claim.mechanism} at epsilon {decimal(claim.epsilon)} for {family}, {self.segments}: "
            f"hides {hidden.format(claim.window)} from those who {whom}"
        )

    @property
    def segments(self) -> str:
        """For which segments."""
        return f"segments of up to {self.claim.length} records"

    @property
    def stated(self) -> Fraction:
        """The smallest scale that is proved, as the certificate has it: that of the mechanism, if nothing else."""
        return Fraction(self.claim.scale)

    @abstractmethod
    def work(self) -> Work:
        """Estimate what :meth:`bound` takes, without a ball."""

    @abstractmethod
    def bound(self) -> Bound:
        """Return what is proved, in balls of the present precision.

        Raises CertificateError: nothing is; UndecidedError: more bits are needed.
        """

    def bounds(self, most_work: int = MOST_WORK) -> Iterator[tuple[int, Bound]]:
        """Yield what is proved with ever more bits, and those; from the first precision on that suffices.

        Raises CertificateError: before they start: the precisions up to the next one take more than ``most_work``
        operations, or the next one more memory than :data:`MOST_KEPT`.
        """
        work, spent = self.work(), 0
        for precision in self.precisions:
            spent += work.at(precision)
            self._afford(spent, most_work, "operations", precision)
            self._afford(work.memory(precision), MOST_KEPT, "bytes", precision)
            try:
                with ctx.workprec(precision):
                    bound = self.bound()
            except UndecidedError:
                continue
            yield precision, bound

    def _afford(self, size: int, most: int, unit: str, precision: int) -> None:
        hint = "; allow more (`most_work`)" if unit == "operations" else ""
        if size > most:
            raise CertificateError(
                f"{self.subject[:200]}: to check it with {precision} bits takes about {decimal(Fraction(size), 2)} "
                f"{unit}, at most {decimal(Fraction(most), 2)} are allowed{hint}"
            )


def _in_words(family: Family) -> str:
    if isinstance(family, Intervals):
        ways = "" if family.backward is None else ", forwards and backwards"
        return f"all chains of {len(family.low)} states {family.words}{ways}"
    if isinstance(family, Forgetting):
        least = decimal(family.overlap, rounding=ROUND_FLOOR)
        return f"all Markov chains whose laws {family.steps} steps apart overlap in at least {least}"
    if isinstance(family, Clocked):
        k = len(family.matrices[0])
        if family.labels is not None:
            return f"1 chain of {k} hidden states of which {len(set(family.labels))} labels are seen"
        parts, steps = len(family.matrices), len(family.matrices) * family.repeat
        return f"1 chain of {k} states with {parts} matrices and a public clock of {steps} steps, from any phase"
    if isinstance(family, BinaryClass):
        return f"all binary chains that stay with probability {decimal(family.low)} to {decimal(family.high)}"
    number = "1 chain" if len(family) == 1 else f"{len(family)} chains"
    return f"{number} of {len(family[0].matrix)} states"
