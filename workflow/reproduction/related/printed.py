"""The printed table of what one related system states, beside what is computed here."""

import pandas as pd

from reproduction.comparison import SOURCES, WORKED, reported_values
from reproduction.tables import UNDEFINED, Table, shortest


def values_table(values: pd.DataFrame, name: str) -> Table:
    """Return all values of a system, those too that no source states.

    ``values`` has the schema ``values``; ``name`` is a key of
    :data:`reproduction.comparison.SOURCES`.
    """
    reported: dict[str, str] = {}
    for row in reported_values(name).to_dict("records"):
        keys, parts = row["key"].split(), row["value"].split(", ")
        of_each = parts if len(parts) == len(keys) else [row["value"]] * len(keys)
        reported |= zip(keys, of_each, strict=True)
    data = values.assign(reported=values["key"].map(reported).fillna(""))
    numbers = pd.to_numeric(values["computed"], errors="coerce")
    display = data[["example", "quantity"]].assign(
        computed=numbers.map(shortest).where(numbers.notna(), values["computed"]),
        published=data["reported"].replace("", UNDEFINED),
    )
    note = f"{UNDEFINED}: the source states no value."
    caption = f"{SOURCES[name]}: values."
    return Table(f"{name}_values", caption, WORKED, data, display, note=note)
