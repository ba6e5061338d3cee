"""Check with interval arithmetic that the scale of a certificate suffices for every node.

It prints the proved bound of the loss at that scale.

Example: pufferflow verify meter.csv.release/publish/certificate.json
"""

import argparse

from pufferflow._util.files import read_bounded
from pufferflow.cli.printing import add_bounds, show
from pufferflow.errors import CertificateError
from pufferflow.verify import MAX_WORK, ask_proved_checker, read_certificate, verify_certificate


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("certificate", metavar="CERTIFICATE.json", help="- reads standard input")
    proved = "also run the checker that `make proofs` builds, whose soundness is proved"
    parser.add_argument("--proved", action="store_true", help=proved)
    add_bounds(parser.add_argument, MAX_WORK)


def run(arguments: argparse.Namespace) -> None:
    try:
        text = read_bounded(arguments.certificate)
        checked = verify_certificate(read_certificate(text), most_work=int(arguments.most_work))
        answer = {"proved checker": ask_proved_checker(text)} if arguments.proved else {}
    except CertificateError as error:
        raise CertificateError(f"certificate rejected: {error}") from error
    loss = checked.decimals()
    found = {"verified": True, "subject": checked.subject, "scale": checked.scale}
    found |= {"loss": loss, "precision": checked.precision} | answer
    message = f"verified: {checked.subject}: at scale {checked.scale} the loss is at most {loss}"
    show(found, arguments.json, [message, *map(": ".join, answer.items())])
