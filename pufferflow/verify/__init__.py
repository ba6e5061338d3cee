"""The verification of certificates, with interval arithmetic and none of the code of scales.

A certificate states a family of chains as exact numbers, ε, the length T, a Laplace scale, and a
program that proves the scale; :mod:`pufferflow.certificates` describes the format. ``parse`` turns
the file into typed records, ``model`` has chains in balls (Arb: balls that contain the exact
numbers), ``rules`` the bounds of one step, and ``interpret`` runs the program. ``counts`` checks
the distributions of a single count. The soundness of another checker, built by ``make proofs``, is
proved (``docs/proofs.md``).
"""

from dataclasses import dataclass
from fractions import Fraction

from flint import ctx

from pufferflow.errors import CertificateError
from pufferflow.verify.balls import UndecidedError, Work, ball
from pufferflow.verify.interpret import interpret
from pufferflow.verify.parse import Claim, decimal, parse, require

MAX_WORK = 6 * 10**7
"""Default largest number of operations of a check: half a minute to a minute."""

PRECISIONS = (128, 256, 512, 1024, 2048, 4096)
"""Bits of the balls, increased until they are narrow enough to decide."""


@dataclass(frozen=True)
class Verification:
    """The proved claim of a certificate: at its scale the loss is at most ε.

    Attributes
    ----------
    subject : str
        The claim: mechanism, ε, family, segments, secrets and side information.
    scale : str
        The scale in the certificate.
    loss : Fraction
        The proved upper bound of the loss at that scale, in nats; at most ε.
    precision : int
        Number of bits of the proof.
    """

    subject: str
    scale: str
    loss: Fraction
    precision: int

    def __repr__(self) -> str:
        return f"Verification({self.subject}: scale {self.scale})"

    def decimals(self, digits: int = 17) -> str:
        """Return the loss as a decimal, rounded up."""
        return decimal(self.loss, digits)


def verify_certificate(document: object, *, most_work: float = MAX_WORK) -> Verification:
    """Return the loss that a certificate, given as parsed JSON, proves.

    Parameters
    ----------
    document : object
        A certificate, as :func:`pufferflow.certify` returns it.
    most_work : float
        Largest number of operations on numbers of 128 bits; the default takes about half a minute.

    Returns
    -------
    Verification
        The claim and the proved loss.

    Raises
    ------
    CertificateError
        It is malformed or of another version, a loss above ε is not excluded at its scale, or the
        check takes more than ``most_work``.
    """
    claim = parse(Claim, document)
    loss, precision = proved_loss(claim, most_work)
    why = f"a loss of {decimal(loss, 6)} is not excluded, epsilon is {decimal(claim.epsilon)}"
    require(loss <= claim.epsilon, why)
    _check_delta(claim)
    scale = str(dict(document)["scale"])  # type: ignore[call-overload]
    return Verification(claim.subject, scale, loss, precision)


def _check_delta(claim: Claim) -> None:
    """Require δ·c ≥ δ0(e^ε − 1), c = 1/scale, with c·e^(−a²/2 − 1)/a² in δ0, a = c/√2ρ."""
    if not (given := claim.approximate):
        return
    require(claim.mechanism == "leakage", "a delta needs a bound for all mechanisms: leakage")
    with ctx.workprec(PRECISIONS[0]):
        cost, event = ball(1 / claim.scale), ball(given.event_delta)
        if given.rho:
            square = cost**2 / (2 * ball(given.rho))
            event += cost * (-square / 2 - 1).exp() / square
        kept = ball(given.delta) * cost >= event * ball(claim.epsilon).expm1()
    require(kept, f"a delta above {decimal(given.delta)} is not excluded")


def proved_loss(claim: Claim, most_work: float = MAX_WORK) -> tuple[Fraction, int]:
    """Return the loss proved with more and more bits, until it is at most ε or does not change.

    Raises CertificateError: nothing is proved, or not by ``most_work`` operations.
    """
    work, last = Work(most_work), ""
    for precision in PRECISIONS:
        try:
            with ctx.workprec(precision):
                loss = interpret(claim, work)
            found = decimal(loss, 6)
            if loss <= claim.epsilon or found == last:
                return loss, precision
        except UndecidedError as error:
            found = str(error)
            require(found != last or not found, found)
        last = found
    raise CertificateError(f"{precision} bits do not decide whether the scale suffices")
