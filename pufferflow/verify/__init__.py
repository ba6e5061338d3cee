"""Checking a certificate, with interval arithmetic and none of the code that computes scales.

A certificate states a family of chains as exact numbers, ε, the length T, a Laplace scale, and a program that proves
the scale; its format is described in :mod:`pufferflow.certificates`, which makes it. ``parse`` turns the file into
typed records, ``model`` holds chains in balls (Arb: balls that contain the exact numbers), ``rules`` what one step
proves, and ``interpret`` follows the program. ``counts`` checks the distributions of a single count.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import ROUND_CEILING
from fractions import Fraction

from flint import ctx

from pufferflow.verify.interpret import interpret
from pufferflow.verify.model import PRECISIONS, UndecidedError
from pufferflow.verify.parse import (
    MECHANISMS,
    VERSION,
    CertificateError,
    Claim,
    decimal,
    parse,
    read_certificate,
)
from pufferflow.verify.work import MOST_KEPT, MOST_WORK, work_of


@dataclass(frozen=True)
class Verification:
    """What a certificate proves: at its scale the loss is at most ε.

    Attributes
    ----------
    subject : str
        What the scale is for: mechanism, ε, family, segments, what is hidden from whom.
    scale : str
        As the certificate writes it.
    loss : Fraction
        What is proved to be the most that is lost at that scale, in nats; at most ε.
    steps : int
        Steps of the program, or ranges of nodes.
    precision : int
        Bits that were needed.
    """

    subject: str
    scale: str
    loss: Fraction
    steps: int
    precision: int

    def __repr__(self) -> str:
        return f"Verification({self.subject}: scale {self.scale})"

    def decimals(self, digits: int = 17) -> str:
        """Return the loss as a decimal, rounded up."""
        return decimal(self.loss, digits, ROUND_CEILING)


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
        The loss that is proved.

    Raises
    ------
    CertificateError
        It is malformed or of another version, a loss above ε is not excluded at its scale, or the check takes more
        than ``most_work``.
    """
    claim = parse(document)
    said = ""
    for precision, loss in losses(claim, most_work):
        if isinstance(loss, Fraction) and loss <= claim.epsilon:
            return Verification(claim.subject, claim.scale, loss, claim.steps, precision)
        why = loss
        if isinstance(loss, Fraction):
            why = f"a loss of {decimal(loss, 6)} is not excluded, epsilon is {decimal(claim.epsilon)}"
        if why and why == said:  # more bits change nothing
            raise CertificateError(why)
        said = str(why)
    raise CertificateError(said or f"{precision} bits do not decide whether the scale suffices")


def losses(claim: Claim, most_work: int = MOST_WORK) -> Iterator[tuple[int, Fraction | str]]:
    """Yield with ever more bits those, and the loss that is proved, or why none is.

    Raises CertificateError: nothing is proved, or the precisions up to the next one take more than ``most_work``
    operations, or the next one more memory than :data:`MOST_KEPT`, before it starts.
    """
    work, spent = work_of(claim), 0
    counted = claim.mechanism == "wasserstein"  # all is known to a relative error: the rest is equal
    for precision in PRECISIONS[:3] if counted else PRECISIONS:
        spent += work.at(precision)
        for size, most, unit in ((spent, most_work, "operations"), (work.memory(precision), MOST_KEPT, "bytes")):
            if size > most:
                hint = "; allow more (`most_work`)" if unit == "operations" else ""
                raise CertificateError(
                    f"{claim.subject[:200]}: to check it with {precision} bits takes about {size:.1e} {unit}, "
                    f"at most {most:.1e} are allowed{hint}"
                )
        found: Fraction | str
        try:
            with ctx.workprec(precision):
                found = interpret(claim)
        except UndecidedError as error:
            found = str(error)
        yield precision, found


__all__ = [
    "MECHANISMS",
    "MOST_WORK",
    "VERSION",
    "CertificateError",
    "Verification",
    "read_certificate",
    "verify_certificate",
]
