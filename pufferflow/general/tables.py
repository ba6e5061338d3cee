"""Scenarios from a table: laws of the query given secrets, or laws of whole databases.

With a column ``secret`` a row is P(F = value | secret, scenario); without one it is P(database | scenario) with the
value of the query, and every column besides ``scenario``, ``probability`` and ``value`` is a record, of which the
secrets are the texts ``record=state``. Without a column ``scenario`` there is one scenario. Numbers are exact: 1/3, 0.2
or 2e-3.
"""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Callable, Hashable, Iterator, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from pufferflow._checks import LONGEST_SHOWN, check_path, named_type, shown
from pufferflow._files import read_bounded
from pufferflow.divergences import Law
from pufferflow.errors import DataError, ParameterError
from pufferflow.general.databases import Database, Databases
from pufferflow.general.given import exact_probability, exact_value, given_databases, pairs_of_records, scenario_laws
from pufferflow.general.sensitivity import Pair

if TYPE_CHECKING:
    import pandas as pd

MOST_ROWS = 10**5
"""Rows of a table at most."""

MOST_COLUMNS = 1000
"""Columns of a table at most."""

ONLY = "all"
"""Name of the scenario of a table without a column of scenarios."""

Source: TypeAlias = "str | os.PathLike[str] | pd.DataFrame"


class Scenarios(NamedTuple):
    """What a table holds: laws given secrets by scenario and, where its rows are databases, those with their pairs."""

    laws: dict[Hashable, dict[Hashable, Law]]
    databases: Databases | None = None
    pairs: list[Pair] | None = None


class _Row(NamedTuple):
    """One row: where it stands, and what it holds by column."""

    place: str
    cells: dict[str, Any]

    def name(self, column: str) -> str:
        """Return the name of a scenario, a secret or a state of a record."""
        text = str(self.cells[column]).strip()
        if not (text and text.isprintable() and len(text) <= LONGEST_SHOWN):
            raise DataError(f"{self.place}: {column} must be 1 to {LONGEST_SHOWN} printable characters")
        return text

    def number(self, column: str, read: Callable[[Any, str], Fraction]) -> Fraction:
        """Return a number, as ``read`` checks it."""
        cell = self.cells[column]
        try:
            return read(cell.strip() if isinstance(cell, str) else cell, column)
        except ParameterError as error:
            raise DataError(f"{self.place}: {error}") from None

    @property
    def scenario(self) -> str:
        """Its scenario."""
        return self.name("scenario") if "scenario" in self.cells else ONLY


def read_scenarios(source: Source) -> Scenarios:
    """Read a CSV file, ``"-"`` for standard input, or a frame.

    Raises DataError: it cannot be read, a column is missing or unknown, a row says what another one did, a number is
    no probability, or probabilities do not sum to 1; ParameterError: ``source`` is no path.
    """
    table = _file_rows(source) if isinstance(source, str | os.PathLike) else _frame_rows(source)
    where, columns = next(table)
    records = [column for column in columns if column not in ("scenario", "secret", "value", "probability")]
    for needed in ("value", "probability"):
        if needed not in columns:
            raise DataError(f"{where}: there is no column {needed}; the header needs secret, value and probability")
    if "secret" in columns and records:
        raise DataError(
            f"{where}: unknown column {shown(records[0])}; beside secret there are scenario, value and probability"
        )
    if any("=" in record for record in records):  # a secret is written record=state
        raise DataError(f"{where}: the name of a record has an = in it; give it another name")
    if "secret" not in columns and not records:
        raise DataError(f"{where}: there is neither a column secret nor one of a record; add secret, or the records")
    rows = (_Row(*row) for row in table)
    try:
        if records:
            return _of_databases(rows, records)
        return Scenarios(_laws(rows))
    except ParameterError as error:
        raise DataError(f"{where}: {error}") from None


def _laws(rows: Iterator[_Row]) -> dict[Hashable, dict[Hashable, Law]]:
    weights: dict[str, dict[str, dict[Fraction, Fraction]]] = {}
    for row in rows:
        law = weights.setdefault(row.scenario, {}).setdefault(row.name("secret"), {})
        value = row.number("value", exact_value)
        if value in law:
            raise DataError(f"{row.place}: the secret has this value already; give its probability once")
        law[value] = row.number("probability", exact_probability)
    if not weights:
        raise ParameterError("there are no rows below the header; give the laws of the query")
    return {scenario: scenario_laws(given, scenario) for scenario, given in weights.items()}


def _of_databases(rows: Iterator[_Row], records: Sequence[str]) -> Scenarios:
    weights: dict[str, dict[Database, Fraction]] = {}
    query: dict[Database, Fraction] = {}
    for row in rows:
        database = tuple(row.name(record) for record in records)
        law = weights.setdefault(row.scenario, {})
        value = row.number("value", exact_value)
        if query.setdefault(database, value) != value:
            raise DataError(f"{row.place}: the query has another value for this database elsewhere; it must have one")
        if database in law:
            raise DataError(f"{row.place}: the scenario has this database already; give its probability once")
        law[database] = row.number("probability", exact_probability)
    if not weights:
        raise ParameterError("there are no rows below the header; give the databases")
    databases = given_databases(weights, query.__getitem__, records)
    laws = databases.laws(databases.states)
    texts: dict[Any, Hashable] = {secret: "=".join(secret) for given in laws.values() for secret in given}  # type: ignore[arg-type]
    pairs = [(texts[one], texts[other]) for one, other in pairs_of_records(laws)]
    named = {scenario: {texts[secret]: law for secret, law in given.items()} for scenario, given in laws.items()}
    return Scenarios(named, databases, pairs)


def _frame_rows(frame: pd.DataFrame) -> Iterator[Any]:
    """As :func:`_file_rows`, of a frame."""
    if not (hasattr(frame, "itertuples") and hasattr(frame, "columns")):
        raise ParameterError(f"source is {named_type(frame)}; give the path of a CSV file, or a pandas DataFrame")
    names = _checked_header("the table", [str(name) for name in frame.columns])
    yield "the table", names
    if len(frame) > MOST_ROWS:
        raise DataError(f"the table has {len(frame):,} rows; at most {MOST_ROWS:,} are read")
    for number, cells in enumerate(frame.itertuples(index=False, name=None), 1):
        yield f"the table, row {number}", dict(zip(names, cells, strict=True))


def _file_rows(source: str | os.PathLike[str]) -> Iterator[Any]:
    """Yield its name and its columns, then each row with its place."""
    check_path(source, "source")
    where = "standard input" if source == "-" else os.fspath(source)
    try:
        text = read_bounded(source).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError(f"{where} is not UTF-8 text (byte {error.start + 1}); save it as UTF-8") from None
    lines = csv.reader(io.StringIO(text, newline=""), strict=True)
    names: list[str] = []
    rows = 0
    try:
        for cells in lines:
            if not any(cell.strip() for cell in cells):
                continue
            if not names:
                names = _checked_header(where, [cell.strip() for cell in cells])
                yield where, names
                continue
            place, rows = f"{where}, line {lines.line_num}", rows + 1
            if len(cells) != len(names):
                raise DataError(f"{place}: {len(cells)} fields, the header has {len(names)}; mend that line")
            if rows > MOST_ROWS:
                raise DataError(
                    f"{where} has more than {MOST_ROWS:,} rows; round the query, or leave out what is alike"
                )
            yield place, dict(zip(names, cells, strict=True))
    except csv.Error as error:
        raise DataError(f"{where}, line {lines.line_num}: {error}; mend that line") from None
    if not names:
        raise DataError(f"{where} is empty; its first line must name the columns: secret, value, probability")


def _checked_header(where: str, names: list[str]) -> list[str]:
    if len(names) > MOST_COLUMNS:
        raise DataError(f"{where}: {len(names):,} columns; at most {MOST_COLUMNS:,} are read")
    for place, name in enumerate(names):
        if not (name and name.isprintable() and len(name) <= LONGEST_SHOWN):
            raise DataError(f"{where}: names of columns must be 1 to {LONGEST_SHOWN} printable characters")
        if name in names[:place]:
            raise DataError(f"{where}: the column {name!r} is there twice; give each a name of its own")
    return names
