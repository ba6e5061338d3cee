"""Scenarios from a CSV file; see :meth:`pufferflow.PufferfishFramework.from_table`."""

import csv
import io
import os
from typing import Any

from pufferflow._util.files import read_bounded
from pufferflow.errors import DataError

Table = tuple[dict[str, dict[Any, Any]], list[str], dict[tuple[str, ...], str]]
"""``scenarios[scenario][secret][value]``; or ``[scenario][database]``, records and query."""


def read_table(source: str | os.PathLike[str]) -> Table:
    """Return the scenarios of a CSV file, or of standard input for ``"-"``.

    Raises DataError: it cannot be read, its columns are wrong, or two rows contradict each other.
    """
    content = read_bounded(source)
    where = "standard input" if source == "-" else os.fspath(source)
    try:
        rows = csv.DictReader(io.StringIO(content.decode("utf-8-sig"), newline=""), strict=True)
        columns = rows.fieldnames = [name.strip() for name in rows.fieldnames or ()]
        records = [c for c in columns if c not in ("scenario", "secret", "value", "probability")]
        once = len({*columns}) == len(columns) and not any(c == "" or "=" in c for c in columns)
        kinds = ("secret" in columns) + bool(records)
        if not once or kinds != 1 or not {"value", "probability"} <= {*columns}:
            raise DataError(
                "the columns must be value, probability and either secret or one for each record, "
                "each once; scenario is optional, and = is in no name"
            )
        scenarios: dict[str, dict[Any, Any]] = {}
        query: dict[tuple[str, ...], str] = {}
        for row in rows:
            if None in row or None in row.values():
                raise DataError("the line has not as many fields as the header; correct it")
            cells = {column: cell.strip() for column, cell in row.items()}
            if not all(cells.values()):
                raise DataError("a field is empty; fill it in")
            given = scenarios.setdefault(cells.get("scenario", "all"), {})
            key: Any = tuple(cells[record] for record in records)
            if not records:
                given, key = given.setdefault(cells["secret"], {}), cells["value"]
            elif query.setdefault(key, cells["value"]) != cells["value"]:
                raise DataError("another row has another value for this database; correct one")
            if key in given:
                raise DataError("another row has a probability of the same; give it once")
            given[key] = cells["probability"]
    except UnicodeDecodeError as error:
        raise DataError(f"{where} is not UTF-8 text (byte {error.start + 1}); save it so") from None
    except (csv.Error, DataError) as error:
        raise DataError(f"{where}, line {rows.line_num}: {error}") from None
    if not scenarios:
        raise DataError(f"{where} has no rows below the header; give probabilities")
    return scenarios, records, query
