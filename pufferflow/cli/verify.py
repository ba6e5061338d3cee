"""``pufferflow verify``: check a certificate."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict

from pufferflow._checks import check_positive
from pufferflow._files import read_bounded
from pufferflow.errors import DataError

DESCRIPTION = (
    "Check with interval arithmetic that the scale of a certificate suffices for every node, and "
    "print the certified enclosure of the smallest scale proved."
)
EPILOG = (
    "Example: pufferflow scale model.json --length 100 --epsilon 1 --certificate out.json && pufferflow verify out.json"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument(
        "certificate", metavar="CERTIFICATE.json", help="written by scale --certificate; - reads standard input"
    )
    parser.add_argument(
        "--most-work",
        type=float,
        metavar="N",
        help="operations that the check may take; a certificate that takes more is refused before it starts "
        "(default: 4e7, about half a minute)",
    )
    parser.add_argument("--json", action="store_true", help="print a JSON object instead of a line")


def run(arguments: argparse.Namespace) -> None:
    """Print what the certificate proves."""
    from pufferflow.verify import MOST_WORK, CertificateError, read_certificate, verify_certificate

    given = arguments.most_work
    most_work = MOST_WORK if given is None else int(check_positive(given, "--most-work"))
    try:
        checked = verify_certificate(read_certificate(read_bounded(arguments.certificate)), most_work=most_work)
    except DataError as error:
        raise CertificateError(str(error)) from error
    except CertificateError as error:
        raise CertificateError(f"certificate rejected: {error}") from error
    lower, upper = checked.decimals()
    if arguments.json:
        fields = {
            "verified": True,
            "subject": checked.subject,
            "scale": checked.scale,
            "lower": lower,
            "upper": upper,
            "ranges": checked.ranges,
        }
        fields |= {"chain": checked.chain, **asdict(checked.nodes), "precision": checked.precision}
        print(json.dumps(fields, indent=2))
    else:
        print(
            f"verified: {checked.subject}: scale {checked.scale} >= largest {checked.quantity} in [{lower}, {upper}], "
            f"ranges of nodes: {checked.ranges}"
        )
