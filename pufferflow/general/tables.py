"""Scenarios from a table: distributions of the query given secrets, or distributions of whole databases.

With a column ``secret`` a row is P(F = value | secret, scenario); without one it is P(database | scenario) with the
value of the query, and every column besides ``scenario``, ``probability`` and ``value`` is a record, of which the
secrets are the texts ``record=state``. Without a column ``scenario`` there is one scenario. Numbers are exact: 1/3, 0.2
or 2e-3.
"""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Hashable, Iterator, Mapping
from fractions import Fraction
from typing import Any, NamedTuple

from pufferflow._checks import LONGEST_SHOWN, check_path, named_type, shown
from pufferflow._files import read_bounded
from pufferflow.divergences import Law
from pufferflow.errors import DataError, ParameterError
from pufferflow.general.databases import Database, Databases
from pufferflow.general.given import exact_probability, exact_value, given_databases, pairs_of_records, scenario_laws
from pufferflow.general.sensitivity import Pair

MOST_ROWS, MOST_COLUMNS = 10**5, 1000
"""Rows and columns of a table at most."""

ONLY = "all"
"""Name of the scenario of a table without a column of scenarios."""


class Scenarios(NamedTuple):
    """Distributions given secrets by scenario and, where the rows are databases, those with their pairs."""

    laws: dict[Hashable, dict[Hashable, Law]]
    databases: Databases | None = None
    pairs: list[Pair] | None = None


def read_scenarios(source: str | os.PathLike[str]) -> Scenarios:
    """Read a CSV file, or ``"-"`` for standard input.

    Raises DataError: it cannot be read, a column is missing or unknown, a row says what another one did, a number is
    no probability, or probabilities do not sum to 1; ParameterError: ``source`` is no path.
    """
    table = _rows(source)
    where, columns = next(table)
    records = [column for column in columns if column not in ("scenario", "secret", "value", "probability")]
    _check_columns(where, columns, records)
    weights: dict[str, dict[Any, Fraction]] = {}
    query: dict[Any, Fraction] = {}
    for place, cells in table:
        scenario = _name(place, cells, "scenario") if "scenario" in cells else ONLY
        names = tuple(_name(place, cells, column) for column in records or ["secret"])
        try:
            value = exact_value(cells["value"], "value")
            probability = exact_probability(cells["probability"], "probability")
        except ParameterError as error:
            raise DataError(f"{place}: {error}") from None
        key = names if records else (*names, value)
        if query.setdefault(key, value) != value:
            raise DataError(f"{place}: the query has another value for this database elsewhere; it must have one")
        if key in weights.setdefault(scenario, {}):
            twice = "the scenario has this database" if records else "the secret has this value"
            raise DataError(f"{place}: {twice} already; give its probability once")
        weights[scenario][key] = probability
    if not weights:
        raise DataError(f"{where}: there are no rows below the header; give probabilities")
    try:
        return _of_databases(weights, query, records) if records else Scenarios(_laws(weights))
    except ParameterError as error:
        raise DataError(f"{where}: {error}") from None


def _laws(weights: Mapping[str, Mapping[Any, Fraction]]) -> dict[Hashable, dict[Hashable, Law]]:
    laws: dict[Hashable, dict[Hashable, Law]] = {}
    for scenario, given in weights.items():
        by_secret: dict[str, dict[Fraction, Fraction]] = {}
        for (secret, value), probability in given.items():
            by_secret.setdefault(secret, {})[value] = probability
        laws[scenario] = scenario_laws(by_secret, scenario)
    return laws


def _of_databases(
    weights: Mapping[str, Mapping[Database, Fraction]], query: Mapping[Database, Fraction], records: list[str]
) -> Scenarios:
    databases = given_databases(weights, query.__getitem__, records)
    laws = databases.laws(databases.states)
    texts: dict[Any, Hashable] = {secret: "=".join(secret) for given in laws.values() for secret in given}  # type: ignore[arg-type]
    pairs = [(texts[one], texts[other]) for one, other in pairs_of_records(laws)]
    named = {scenario: {texts[secret]: law for secret, law in given.items()} for scenario, given in laws.items()}
    return Scenarios(named, databases, pairs)


def _name(place: str, cells: Mapping[str, str], column: str) -> str:
    """The name of a scenario, a secret or a state of a record."""
    text = cells[column]
    if not (text and text.isprintable() and len(text) <= LONGEST_SHOWN):
        raise DataError(f"{place}: {column} must be 1 to {LONGEST_SHOWN} printable characters")
    return text


def _rows(source: str | os.PathLike[str]) -> Iterator[Any]:
    """Yield its name and its columns, then each row with its place."""
    if not isinstance(source, str | os.PathLike):
        raise ParameterError(f"source is {named_type(source)}; give the path of a CSV file")
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
            stripped = [cell.strip() for cell in cells]
            if not any(stripped):
                continue
            if not names:
                names = stripped
                yield where, names
                continue
            place, rows = f"{where}, line {lines.line_num}", rows + 1
            if len(cells) != len(names):
                raise DataError(f"{place}: {len(cells)} fields, the header has {len(names)}; mend that line")
            if rows > MOST_ROWS:
                raise DataError(
                    f"{where} has more than {MOST_ROWS:,} rows; round the query, or leave out what is alike"
                )
            yield place, dict(zip(names, stripped, strict=True))
    except csv.Error as error:
        raise DataError(f"{where}, line {lines.line_num}: {error}; mend that line") from None
    if not names:
        raise DataError(f"{where} is empty; its first line must name the columns: secret, value, probability")


def _check_columns(where: str, names: list[str], records: list[str]) -> None:
    if len(names) > MOST_COLUMNS:
        raise DataError(f"{where}: {len(names):,} columns; at most {MOST_COLUMNS:,} are read")
    for place, name in enumerate(names):
        if not (name and name.isprintable() and len(name) <= LONGEST_SHOWN):
            raise DataError(f"{where}: names of columns must be 1 to {LONGEST_SHOWN} printable characters")
        if name in names[:place]:
            raise DataError(f"{where}: the column {name!r} is there twice; give each a name of its own")
    for needed in ("value", "probability"):
        if needed not in names:
            raise DataError(f"{where}: there is no column {needed}; the header needs secret, value and probability")
    if "secret" in names and records:
        raise DataError(
            f"{where}: unknown column {shown(records[0])}; beside secret there are scenario, value and probability"
        )
    if any("=" in record for record in records):  # a secret is written record=state
        raise DataError(f"{where}: the name of a record has an = in it; give it another name")
    if "secret" not in names and not records:
        raise DataError(f"{where}: there is neither a column secret nor one of a record; add secret, or the records")
