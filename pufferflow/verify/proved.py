"""The checker whose soundness is proved (``docs/proofs.md``), built by ``make proofs``."""

import subprocess
from pathlib import Path
from shutil import which

from pufferflow.errors import ParameterError
from pufferflow.verify.parse import CertificateError

SECONDS = 600
"""Largest number of seconds of a check: Lemma 6 takes k⁴ operations per step."""

BUILT = Path(__file__).parents[2] / "proofs" / "_build" / "pufferflow-checker"


def proved_checker() -> str | None:
    """Return the path of the checker, if it was built here or is installed."""
    return str(BUILT) if BUILT.exists() else which("pufferflow-checker")


def ask_proved_checker(text: bytes) -> str:
    """Return "accepted", or "unproved rule: …" if no theorem covers the certificate.

    Raises CertificateError: it refuses or takes too long; ParameterError: there is no checker.
    """
    if (checker := proved_checker()) is None:
        raise ParameterError("the proved checker is not built; run make proofs, or verify without")
    try:
        answer = subprocess.run(
            [checker, "-"], input=text, capture_output=True, check=False, timeout=SECONDS
        )
    except subprocess.TimeoutExpired as late:
        raise CertificateError(
            f"the proved checker: no answer within {SECONDS} s; verify without it"
        ) from late
    found = answer.stdout.decode(errors="replace").strip()
    if answer.returncode not in (0, 2) or not found:
        raise CertificateError(f"the proved checker: {found or 'it ended without an answer'}")
    return found
