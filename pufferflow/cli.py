"""The command ``pufferflow``."""

from __future__ import annotations

import argparse
import inspect
import json
import os
import sys
from collections.abc import Sequence
from dataclasses import asdict
from fractions import Fraction
from pathlib import Path
from typing import Any, NoReturn, get_args

import pufferflow
from pufferflow._files import write_atomic
from pufferflow.errors import ChainError, ParameterError, PufferflowError
from pufferflow.influence.tables import Convention
from pufferflow.markov.families import Family, GapKind
from pufferflow.mechanisms import MECHANISMS, NoiseScale, find_mechanism
from pufferflow.mechanisms.base import check_epsilon, longest
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
    _add_audit(commands)
    _add_check(commands)
    _add_network(commands)
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
    parser.add_argument(
        "--states",
        type=int,
        action="append",
        metavar="STATE",
        help="a state whose visits wasserstein counts, from 0; repeat for several (default: of two states 1)",
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
    options = {"convention": arguments.convention, "eigengap": arguments.eigengap, "states": arguments.states}
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
    return _aligned(rows)


def _aligned(rows: Sequence[Sequence[str]]) -> str:
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


# -- pufferflow audit --------------------------------------------------------------------------------


def _add_audit(commands: argparse._SubParsersAction[_Parser]) -> None:
    parser = commands.add_parser(
        "audit",
        help="exact loss of Laplace noise",
        description="Print the privacy loss that Laplace noise really has on a count or a histogram, from the exact "
        "law of the chains, beside what the mechanism guarantees. The loss is never below the exact value.",
        epilog="Example: pufferflow audit model.json --length 100 --count 1 --mechanism mqm-exact --epsilon 1",
    )
    parser.add_argument("model", metavar="MODEL.json", help="chains, as for scale; - reads standard input")
    parser.add_argument("--length", type=int, required=True, metavar="T", help="records")
    parser.add_argument(
        "--scale", type=float, metavar="S", help="Laplace scale of a 1-Lipschitz query (a histogram has noise 2 S)"
    )
    parser.add_argument(
        "--epsilon",
        type=float,
        action="append",
        help="guarantee to hold the loss against; repeat for several mechanisms' scales",
    )
    parser.add_argument(
        "--mechanism",
        action="append",
        metavar="NAME",
        help=f"audit the scale of one of {', '.join(MECHANISMS)}; repeat for several (default without --scale: all)",
    )
    parser.add_argument(
        "--convention",
        choices=get_args(Convention),
        default="exact",
        help="as for scale (default: exact)",
    )
    parser.add_argument(
        "--count",
        type=int,
        action="append",
        metavar="STATE",
        help="audit the number of records in this state (states from 0); repeat for a set of states",
    )
    parser.add_argument("--histogram", action="store_true", help="audit the histogram of all states")
    parser.add_argument("--json", action="store_true", help="print a JSON list instead of a table")
    parser.set_defaults(run=_audit)


def _audit(arguments: argparse.Namespace) -> None:
    from pufferflow.audit import CountQuery, HistogramQuery, privacy_loss

    if (arguments.count is None) == (not arguments.histogram):
        raise ParameterError("give either --count STATE or --histogram")
    if arguments.scale is not None and arguments.mechanism:
        raise ParameterError("give either --scale or --mechanism, not both")
    if arguments.scale is None and not arguments.epsilon:
        raise ParameterError("give --scale S, or --epsilon E for the scales of mechanisms")
    if arguments.scale is not None and len(arguments.epsilon or []) > 1:
        raise ParameterError("--scale is held against a single --epsilon")
    query = HistogramQuery() if arguments.histogram else CountQuery(arguments.count)
    family = read_model(arguments.model)
    audited: list[tuple[str | None, float | None, float | None]]
    if arguments.scale is not None:
        epsilons = [check_epsilon(epsilon) for epsilon in arguments.epsilon or []]
        audited = [(None, epsilons[0] if epsilons else None, arguments.scale)]
    else:
        options = {"convention": arguments.convention}
        asked = bool(arguments.mechanism)
        found = [
            _result(name, family, [arguments.length], epsilon, options, asked)
            for epsilon in arguments.epsilon
            for name in arguments.mechanism or MECHANISMS
        ]
        audited = [(r.mechanism, r.epsilon, r.scale) for r in found]
    rows = []
    for name, epsilon, scale in audited:
        row: dict[str, Any] = {"mechanism": name, "guarantee": epsilon, "loss": None, "ratio": None, "scale": scale}
        if scale is not None:
            loss = privacy_loss(family, arguments.length, scale, query)
            row |= loss.to_dict() | {"ratio": None if epsilon is None else loss.loss / epsilon}
        rows.append(row)
    if arguments.json:
        print(json.dumps(rows, indent=2, allow_nan=False))
    else:
        print(f"{query}, {arguments.length} records")
        print(
            _aligned(
                [("mechanism", "scale", "guarantee", "actual loss", "ratio", "node", "secrets", "output")]
                + [_audit_row(row) for row in rows]
            )
        )


def _audit_row(row: dict[str, Any]) -> tuple[str, ...]:
    def shown(key: str, form: str = "") -> str:
        value = row.get(key)
        return "-" if value is None else format(value, form)

    pair, output = row.get("pair"), row.get("output")
    return (
        shown("mechanism"),
        shown("scale"),
        shown("guarantee"),
        shown("loss", ".6f") if row["scale"] is not None else "not applicable",
        shown("ratio", ".4f"),
        shown("node", "d") if row.get("node") is None else f"X{row['node']}",
        "-" if pair is None else f"{pair[0]} against {pair[1]}",
        "-" if output is None else str(tuple(output) if isinstance(output, list) else output),
    )


# -- pufferflow check --------------------------------------------------------------------------------


def _add_check(commands: argparse._SubParsersAction[_Parser]) -> None:
    parser = commands.add_parser(
        "check",
        help="decide Pufferfish privacy of a hidden Markov model",
        description="Decide exactly whether the observations of a hidden Markov model have the same probability under "
        "every two secrets up to the factor e^epsilon, and print the observations that violate it most. A model with "
        "free parameters is checked for every prior.",
        epilog='Example: echo \'{"transition_matrix": [[1, 0], [0, 1]], "observation_matrix": [["3/4", "1/4"], '
        '["1/4", "3/4"]], "initial_distributions": {"yes": [1, 0], "no": [0, 1]}}\' '
        "| pufferflow check - --factor 3 --length 1",
    )
    parser.add_argument(
        "model",
        metavar="MODEL.json",
        help='{"transition_matrix": [[...]], "observation_matrix": [[...]], "initial_distributions": {"secret": [...], '
        "...}} with optional states, observations, pairs, length and parameters; numbers are read as written, "
        '"1/3" is a third; - reads standard input',
    )
    parser.add_argument("--factor", required=True, help="e^epsilon, an exact number such as 2 or 3/2")
    parser.add_argument(
        "--length", type=int, metavar="L", help="longest observation sequence (default: the length in the model)"
    )
    parser.add_argument("--json", action="store_true", help="print a JSON object instead of lines")
    parser.set_defaults(run=_check)


def _check(arguments: argparse.Namespace) -> None:
    from pufferflow import hmm

    model = hmm.read_hidden_markov_model(arguments.model)
    factor, length = arguments.factor, arguments.length
    found: dict[str, Any]
    if isinstance(model, hmm.PriorFamily):
        prior = hmm.find_prior(model, factor, length)
        supremum = hmm.sup_ratio(model, length)
        worst = supremum.witness
        found = {"holds": prior is None, "factor": factor, "violation": None if prior is None else prior.to_dict()}
        found["largest"] = supremum.to_dict()
        held = "holds for every prior of the box"
    else:
        verdict, worst = hmm.check(model, factor, length), hmm.largest_ratio(model, length)
        found = verdict.to_dict() | {"largest": worst.to_dict()}
        held = "holds for every length" if verdict.every_length else f"holds up to length {verdict.length}"
    if arguments.json:
        print(json.dumps(found, indent=2, allow_nan=False))
        return
    print(f"{held if found['holds'] else 'violated'}: factor {factor}")
    largest = found["largest"]
    if "prior" in largest:
        bound = "" if largest["exact"] else f", at most {largest['upper']} at any"
        at = ", ".join(f"{name} = {value}" for name, value in largest["prior"].items())
        print(f"largest ratio {_exact(worst.ratio)} at the prior {at}{bound}")
    else:
        print(f"largest ratio {_exact(worst.ratio)}")
    print(f"observations {', '.join(worst.observations) or 'none'}")
    print(f"  probability given {worst.secret}: {_exact(worst.probability)}")
    print(f"  probability given {worst.other}: {_exact(worst.other_probability)}")


def _exact(number: Fraction | float) -> str:
    """Show an exact number, a fraction with its decimal."""
    from pufferflow.hmm.checking import ratio_text

    text = ratio_text(number)
    return f"{text} ({float(number):.6g})" if "/" in text else text


# -- pufferflow network ------------------------------------------------------------------------------


def _add_network(commands: argparse._SubParsersAction[_Parser]) -> None:
    parser = commands.add_parser(
        "network",
        help="Laplace scale for a Bayesian network",
        description="Print the scale of the Markov Quilt Mechanism for a query that changes by at most 1 when one "
        "variable changes. A query with Lipschitz constant L (L1 norm) gets L times that scale on every coordinate.",
        epilog='Example: echo \'{"variables": [{"name": "Ann", "table": [0.9, 0.1]}, '
        '{"name": "Bob", "parents": ["Ann"], "table": [[0.95, 0.05], [0.4, 0.6]]}]}\' '
        "| pufferflow network - --epsilon 1 --epsilon 6",
    )
    parser.add_argument(
        "networks",
        metavar="NETWORK.json",
        help='{"variables": [{"name": ..., "parents": [...], "states": [...], "table": [...]}, ...]}, '
        "the table with one level of lists a parent; or "
        '{"networks": [{"variables": [...]}, ...]}; - reads standard input',
    )
    parser.add_argument(
        "--epsilon", type=float, action="append", required=True, help="privacy parameter; repeat for several"
    )
    parser.add_argument(
        "--secret", action="append", metavar="NAME", help="variable to protect; repeat for several (default: all)"
    )
    parser.add_argument(
        "--query", action="append", metavar="NAME", help="variable the query reads; repeat for several (default: all)"
    )
    parser.add_argument("--json", action="store_true", help="print a JSON list instead of a table")
    parser.set_defaults(run=_network)


def _network(arguments: argparse.Namespace) -> None:
    from pufferflow.bayesnet import markov_quilt_mechanism, read_networks

    networks = read_networks(arguments.networks)
    results = [
        markov_quilt_mechanism(networks, epsilon, secrets=arguments.secret, query=arguments.query)
        for epsilon in arguments.epsilon
    ]
    if arguments.json:
        print(json.dumps([result.to_dict() for result in results], indent=2, allow_nan=False))
        return
    rows = [("epsilon", "scale", "node", "quilt", "nearby", "influence", "network", "optimal")]
    for r in results:
        quilt, nearby = ("{" + ", ".join(names) + "}" for names in (r.quilt, r.nearby))
        optimal = "yes" if r.optimal else "not shown"
        rows.append(
            (repr(r.epsilon), repr(r.scale), r.node, quilt, nearby, f"{r.influence:.6g}", str(r.network), optimal)
        )
    print(_aligned(rows))


if __name__ == "__main__":
    sys.exit(main())
