"""Check with interval arithmetic that the scale of a certificate suffices for every node.

It prints the proved bound of the loss at that scale.

Example: pufferflow verify meter.csv.release/publish/certificate.json
"""

import argparse
import json
import subprocess
from contextlib import suppress
from pathlib import Path
from shutil import which

from pufferflow._util.json import read_json
from pufferflow.cli.printing import add_bounds, show
from pufferflow.errors import CertificateError, ParameterError
from pufferflow.verify import MAX_WORK, verify_certificate

SECONDS = 600
"""Largest number of seconds of the proved checker: Lemma 6 takes k⁴ operations per step."""

BUILT = Path(__file__).parents[2] / "proofs" / "_build" / "pufferflow-checker"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("certificate", metavar="CERTIFICATE.json", help="- reads standard input")
    proved = "also run the checker that `make proofs` builds, whose soundness is proved"
    parser.add_argument("--proved", action="store_true", help=proved)
    add_bounds(parser.add_argument, MAX_WORK)


def run(arguments: argparse.Namespace) -> None:
    document = read_json(arguments.certificate, lambda found: found, "a certificate")
    try:
        checked = verify_certificate(document, most_work=int(arguments.most_work))
        answer = {"proved checker": ask_proved_checker(document)} if arguments.proved else {}
    except CertificateError as error:
        raise CertificateError(f"certificate rejected: {error}") from error
    loss = checked.decimals()
    found = {"verified": True, "subject": checked.subject, "scale": checked.scale}
    found |= {"loss": loss, "precision": checked.precision} | answer
    message = f"verified: {checked.subject}: at scale {checked.scale} the loss is at most {loss}"
    show(found, arguments.json, [message, *map(": ".join, answer.items())])


def proved_checker() -> str | None:
    """Return the path of the checker, if it was built here or is installed."""
    return str(BUILT) if BUILT.exists() else which("pufferflow-checker")


def ask_proved_checker(document: object) -> str:
    """Return "accepted", or "unproved rule: …" if no theorem covers the certificate.

    Raises CertificateError: it refuses or takes too long; ParameterError: there is no checker.
    """
    if (checker := proved_checker()) is None:
        raise ParameterError("the proved checker is not built; run make proofs, or verify without")
    code, found = 1, f"no answer within {SECONDS} s; verify without it"
    with suppress(subprocess.TimeoutExpired):
        command, text = [checker, "-"], json.dumps(document).encode()
        answer = subprocess.run(command, input=text, capture_output=True, timeout=SECONDS)
        code, found = answer.returncode, answer.stdout.decode(errors="replace").strip()
    if code not in (0, 2) or not found:
        why = found or "it ended without an answer"
        raise CertificateError(f"the proved checker: {why}")
    return found
