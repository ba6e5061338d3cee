"""``pufferflow count``: a running count of a stream."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO

from pufferflow._files import PathLike, check_outputs, kind_of_file, write_atomic
from pufferflow._progress import progress
from pufferflow._work import afford
from pufferflow.cli._faults import nothing_quoted
from pufferflow.cli._figures import add_figure, figure_files, figure_stem
from pufferflow.cli._records import listed
from pufferflow.cli._releases import add_ledger, add_theta, ledger_of, model, warn
from pufferflow.cli._scales import add_protection, level
from pufferflow.errors import DataError, ParameterError
from pufferflow.publishing.calibration import GROUP, calibration_work
from pufferflow.publishing.sketch import Sketch
from pufferflow.publishing.stream import HEADER, PreparedStream, StreamRequest, prepare_stream
from pufferflow.publishing.stream_values import Counted, check_values
from pufferflow.records.format import StateSpace

DESCRIPTION = (
    "Count a stream with noise, line by line: how many of the records so far were 1, or at least --threshold, or in "
    f"--count STATE. Each line in gives a line out at once, {HEADER}; all of them together cost epsilon once, which is "
    "reserved in a ledger before the first. A file is checked before anything is paid for, and refused at the first "
    "line that is no value; in a stream such a line counts as one that is not counted, and nothing tells. The noise is "
    "kept nowhere, so a stream that was broken off cannot be taken up again: a new run pays again. What is promised is "
    "printed on standard error first, or written (--statement)."
)
EPILOG = "Example: sensor | pufferflow count - --length 1000000 --forgets 60 0.4 --epsilon 1 --ledger sensor.ledger"

A_LINE = 1.2e5
"""Operations that a line of a file takes."""

FEWER_STATES = "give a model of fewer states, or one that forgets (--forgets)"
"""What makes a calibration cheaper."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("data", metavar="DATA", help="a record a line: a file, or - for a stream on standard input")
    parser.add_argument(
        "--length",
        type=int,
        metavar="T",
        help="the most records that come; public, and more are not read (default: as many as the file has)",
    )
    add_theta(parser)
    parser.add_argument("--epsilon", type=float, required=True, help="privacy parameter, of all lines together")
    add_protection(parser)
    add_ledger(parser, "stream")
    what = parser.add_argument_group("what is counted (default: records that are 1, of 0 and 1)")
    what.add_argument("--threshold", type=float, metavar="X", help="numbers of at least X")
    what.add_argument("--count", action="append", metavar="STATE", help="records in this state; repeat for several")
    what.add_argument("--states", metavar="A,B,...", help="all states there are, where the model does not say")
    lines = parser.add_argument_group("lines")
    lines.add_argument(
        "--value", metavar="NAME", help="column of the values; the first line is then a header (default: only values)"
    )
    lines.add_argument("--separator", default=",", metavar="CHAR", help="between the fields of a line (default: ,)")
    lines.add_argument("--decimal", default=".", metavar="CHAR", help="decimal sign (default: .)")
    lines.add_argument("--step", type=int, metavar="SECONDS", help="time between two records")
    lines.add_argument("--start", metavar="TIME", help="of the first record (default: records are numbered)")
    parser.add_argument(
        "--statement", metavar="FILE", help="write the statement there, as Markdown, instead of printing it"
    )
    parser.add_argument(
        "--certificate",
        metavar="FILE",
        help="write the certificate of the noise there; only its owner may read it, as it holds the model",
    )
    add_figure(parser, "the lines that were printed", ", when the last of them is")
    parser.add_argument(
        "--dry-run",
        action="store_true",
        help="say what it would do and how far off; nothing is drawn or paid for, and a stream is not read",
    )


def run(arguments: argparse.Namespace) -> None:
    """Count line by line."""
    stream = arguments.data == "-"
    if not stream and (kind := kind_of_file(arguments.data)) is not None:
        raise DataError(f"{arguments.data} is {kind}, not a file; for a stream give - and put it on standard input")
    if stream and arguments.length is None:
        raise ParameterError("nobody knows how long a stream is: give --length, the most records that may come")
    if stream and arguments.chain == "-":
        raise ParameterError("the model and the records cannot both be standard input; give one of them as a file")
    if stream and arguments.ledger is None and not arguments.no_ledger:
        raise ParameterError("standard input has no ledger of its own: give --ledger FILE, or --no-ledger")
    ledger = ledger_of(arguments)
    stem = None if arguments.figure is None else figure_stem(arguments)
    drawn = () if stem is None else figure_files(stem)
    outputs = [arguments.statement, arguments.certificate, *drawn]
    check_outputs(outputs, [arguments.data, arguments.chain], ledger=ledger)
    request = _request(arguments, ledger)
    with nothing_quoted():
        prepared = prepare_stream(request)
        left = None if ledger is None else prepared.tried()
        if arguments.certificate is not None and prepared.calibration.certificate is None:
            raise ParameterError(
                f"there is no certificate of this noise ({prepared.calibration.reason}); leave --certificate out"
            )
        warn(prepared.warnings)
        if arguments.dry_run:
            _say(prepared, None)
            if left is not None:
                print(
                    f"within the ledger's limit {left['limit']:g}, of which {left['left']:.6g} would be left",
                    file=sys.stderr,
                )
            print("a dry run: nothing was drawn or paid for", file=sys.stderr)
            return
        with _opened(arguments.data) as lines:
            values = request.counted.values(lines, arguments.data)
            if arguments.certificate is not None:
                proof = json.dumps(prepared.calibration.certificate)
                write_atomic(arguments.certificate, proof + "\n", private=True)
            _say(prepared, arguments.statement)
            # one line out for each that comes in, at once
            if not (stream or sys.stdout.isatty()):
                values = progress(values, desc="counting", total=request.length, unit=" records", delay=1)
            sketch = None if stem is None else Sketch(request.length)
            try:
                for line in prepared.lines(values, lambda said: warn([said])):
                    print(line, flush=True)
                    if sketch is not None:
                        sketch.add(line)
            finally:  # also of a stream that nobody reads any more
                if stem is not None and sketch is not None and (fault := sketch.draw(stem, prepared)):
                    warn([f"the figure could not be drawn ({fault})"])


def _request(arguments: argparse.Namespace, ledger: PathLike | None) -> StreamRequest:
    """What is asked for; a file is checked, and what its count takes."""
    public = model(arguments)
    whole = level(arguments, 1).whole
    afford(calibration_work(public.family, GROUP if whole else None), "to find and prove the noise", FEWER_STATES)
    states, names = _states(arguments, None if public.records is None else public.records.states)
    counted = Counted(arguments.threshold, states, names, arguments.value, arguments.separator, arguments.decimal)
    length, source = arguments.length, None if arguments.data == "-" else arguments.data
    with nothing_quoted():
        if source is not None:
            records = check_values(counted, source)
            length = records if length is None else length
            afford(records * A_LINE, f"the running count of {records:,} records", "give fewer records")
            if records > length:
                raise ParameterError(f"{source} has {records:,} records, more than --length {length:,}")
        step = arguments.step if public.records is None else public.records.step_seconds
        hidden, start = level(arguments, step), arguments.start
        return StreamRequest(
            public, length, arguments.epsilon, counted, hidden, source, ledger, arguments.limit, step, start
        )


def _say(prepared: PreparedStream, statement: str | None) -> None:
    """Write the statement, or print it; print how far off the counts are."""
    if statement is None:
        print(prepared.statement.text(), file=sys.stderr)
    else:
        write_atomic(statement, prepared.statement.markdown() + "\n")
    length = prepared.request.length
    print(
        f"95 % half width of the noise {prepared.half_width(1):.6g} at the first record, "
        f"{prepared.half_width(length):.6g} at record {length}",
        file=sys.stderr,
    )


def _states(arguments: argparse.Namespace, known: StateSpace | None) -> tuple[StateSpace | None, tuple[str, ...]]:
    """The states there are, and those that are counted."""
    given = listed(arguments.states)
    if known is not None and given is not None:
        raise ParameterError("the model says what its states are; leave --states out")
    states = known if given is None else StateSpace.categories(given)
    names = tuple(arguments.count or ())
    if names and states is None:
        raise ParameterError("--count is the name of a state: give all states there are (--states)")
    if not names and arguments.threshold is None and states is not None:
        raise ParameterError("say what to count: --count STATE, or --threshold X where the records are numbers")
    return states, names


@contextmanager
def _opened(path: str) -> Iterator[BinaryIO]:
    if path == "-":
        yield sys.stdin.buffer
        return
    with open(os.fspath(path), "rb") as lines:
        yield lines
