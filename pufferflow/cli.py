"""The command ``pufferflow``."""

from __future__ import annotations

import argparse
import inspect
import json
import os
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, NoReturn, get_args

import pufferflow
from pufferflow._files import write_atomic
from pufferflow.errors import ChainError, ParameterError, PufferflowError
from pufferflow.influence.tables import Convention
from pufferflow.markov.families import Family, GapKind
from pufferflow.mechanisms import MECHANISMS, NoiseScale, find_mechanism
from pufferflow.mechanisms.base import longest
from pufferflow.models import read_model


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line ``argv`` (default: the arguments of the process).

    Returns
    -------
    int
        Exit code: 0, or 2 for bad input (one line on standard error says what), 130 if interrupted,
        141 if nobody reads the output any more.
    """
    try:
        arguments = _parser().parse_args(argv)
        arguments.run(arguments)
        sys.stdout.flush()
    except SystemExit:  # argparse, after --help or --version
        return 0
    except BrokenPipeError:
        # what is still buffered would fail again when Python flushes on exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except KeyboardInterrupt:
        return 130
    except (PufferflowError, OSError) as error:
        print("pufferflow: error:", " ".join(str(error).split()), file=sys.stderr)
        return 2
    return 0


class _Parser(argparse.ArgumentParser):
    """A parser, also for subcommands, whose errors are ordinary ones: one line, no usage."""

    def error(self, message: str) -> NoReturn:
        raise ParameterError(f"{message} (see {self.prog} --help)")


def _parser() -> _Parser:
    parser = _Parser(
        prog="pufferflow",
        description="Noise scales that keep correlated data private.",
        epilog="Example: pufferflow scale model.json --length 100 --epsilon 1",
    )
    parser.add_argument("--version", action="version", version=f"pufferflow {pufferflow.__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    _add_scale(commands)
    _add_verify(commands)
    return parser


# -- pufferflow scale --------------------------------------------------------------------------------


def _add_scale(commands: argparse._SubParsersAction[_Parser]) -> None:
    parser = commands.add_parser(
        "scale",
        help="Laplace scales for a family of chains",
        description="Print the Laplace scale of a 1-Lipschitz query for every mechanism and epsilon. "
        "A query with Lipschitz constant L (L1 norm) gets L times that scale on every coordinate.",
        epilog='Example: echo \'{"chains": [{"transition_matrix": [[0.9, 0.1], [0.4, 0.6]], '
        '"initial_distribution": [1, 0]}]}\' | pufferflow scale - --length 100 --epsilon 1 --epsilon 0.2',
    )
    parser.add_argument(
        "model",
        metavar="MODEL.json",
        help='family of chains: {"chains": [{"transition_matrix": [[...]], "initial_distribution": [...] | '
        '"stationary" | "any"}, ...]} or {"binary_interval": [low, high]} or '
        '{"interval": {"low": [[...]], "high": [[...]]}}; - reads standard input',
    )
    parser.add_argument(
        "--length",
        type=int,
        action="append",
        required=True,
        metavar="T",
        help="records of an independent segment; repeat for several, the longest decides",
    )
    parser.add_argument(
        "--epsilon", type=float, action="append", required=True, help="privacy parameter; repeat for several"
    )
    parser.add_argument(
        "--mechanism",
        action="append",
        metavar="NAME",
        help=f"one of {', '.join(MECHANISMS)}; repeat for several (default: all)",
    )
    parser.add_argument(
        "--convention",
        choices=get_args(Convention),
        default="exact",
        help="max-influence of mqm-exact: by its definition, or by the paper's formula as printed (default: exact)",
    )
    parser.add_argument(
        "--eigengap",
        choices=get_args(GapKind),
        default="auto",
        help="eigengap of mqm-approx; auto uses the larger one for chains in detailed balance (default: auto)",
    )
    parser.add_argument("--json", action="store_true", help="print a JSON list instead of a table")
    parser.add_argument(
        "--certificate",
        metavar="FILE",
        help="write a certificate of the scale of the one --mechanism (default: mqm-exact), which is then the "
        "certified one; needs a single --epsilon",
    )
    parser.set_defaults(run=_scale)


def _scale(arguments: argparse.Namespace) -> None:
    family = read_model(arguments.model)
    options = {"convention": arguments.convention, "eigengap": arguments.eigengap}
    names = arguments.mechanism or list(MECHANISMS)
    if arguments.certificate is not None:
        names = arguments.mechanism or ["mqm-exact"]
        if len(arguments.epsilon) > 1 or len(names) > 1:
            raise ParameterError("--certificate needs a single --epsilon and a single --mechanism")
    results = [
        _result(name, family, arguments.length, epsilon, options, asked=bool(arguments.mechanism))
        for epsilon in arguments.epsilon
        for name in names
    ]
    if arguments.certificate is not None:
        results = [results[0].certified(family, arguments.convention)]
        write_atomic(arguments.certificate, json.dumps(results[0].certificate) + "\n")
    if arguments.json:
        print(json.dumps([result.to_dict() for result in results], indent=2, allow_nan=False))
    else:
        print(_table(results))


def _result(
    name: str, family: Family, lengths: list[int], epsilon: float, options: dict[str, Any], asked: bool
) -> NoiseScale:
    mechanism = find_mechanism(name)
    known = inspect.signature(mechanism).parameters
    try:
        return mechanism(family, lengths, epsilon, **{key: options[key] for key in options if key in known})
    except ChainError as error:
        if asked:
            raise
        return NoiseScale(name, epsilon, longest(lengths), None, "not applicable", str(error))


def _table(results: Sequence[NoiseScale]) -> str:
    """Return the results as an aligned table, scales with all digits."""
    rows = [("mechanism", "epsilon", "scale", "node", "quilt", "influence", "status")]
    for r in results:
        rows.append(
            (
                r.mechanism,
                repr(r.epsilon),
                "-" if r.scale is None else repr(r.scale),
                "-" if r.node is None else f"X{r.node}",
                _quilt_nodes(r),
                "-" if r.influence is None else f"{r.influence:.6g}",
                f"{r.status}: {r.reason}" if r.reason else r.status,
            )
        )
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    )


def _quilt_nodes(result: NoiseScale) -> str:
    if result.quilt is None or result.node is None:
        return "-"
    left, right = result.quilt
    nodes = [] if left is None else [f"X{result.node - left}"]
    nodes += [] if right is None else [f"X{result.node + right}"]
    return "{" + ", ".join(nodes) + "}"


# -- pufferflow verify -------------------------------------------------------------------------------


def _add_verify(commands: argparse._SubParsersAction[_Parser]) -> None:
    parser = commands.add_parser(
        "verify",
        help="check a certificate",
        description="Check with interval arithmetic that the scale of a certificate suffices for every node, and "
        "print the certified enclosure of the smallest scale proved.",
        epilog="Example: pufferflow scale model.json --length 100 --epsilon 1 --certificate out.json "
        "&& pufferflow verify out.json",
    )
    parser.add_argument(
        "certificate", metavar="CERTIFICATE.json", help="written by scale --certificate; - reads standard input"
    )
    parser.add_argument("--json", action="store_true", help="print a JSON object instead of a line")
    parser.set_defaults(run=_verify)


def _verify(arguments: argparse.Namespace) -> None:
    from pufferflow.verify import CertificateError, read_certificate, verify_certificate

    path = arguments.certificate
    try:
        text = sys.stdin.buffer.read() if path == "-" else Path(path).read_bytes()
        found = verify_certificate(read_certificate(text))
    except OSError as error:
        raise CertificateError(f"cannot read {path}: {error.strerror}") from error
    except CertificateError as error:
        raise CertificateError(f"certificate rejected: {error}") from error
    lower, upper = found.decimals()
    if arguments.json:
        fields = {"verified": True, "scale": found.scale, "lower": lower, "upper": upper, "ranges": found.ranges}
        fields |= {"chain": found.chain, **asdict(found.nodes), "precision": found.precision}
        print(json.dumps(fields, indent=2))
    else:
        print(
            f"verified: scale {found.scale} >= largest {found.quantity} in [{lower}, {upper}], "
            f"ranges of nodes: {found.ranges}"
        )


if __name__ == "__main__":
    sys.exit(main())
