"""Shared by all experiments: rows, tables on disk, and random streams keyed by name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
import pandas as pd

from pufferflow._files import write_atomic
from pufferflow.errors import DataError

INTEGERS = ("length", "node", "quilt_left", "quilt_right", "repetitions", "release", "participants", "observations")


def write_table(table: pd.DataFrame, path: str | Path) -> None:
    """Write a tidy table as CSV in one step; floats keep all their digits."""
    whole = table.astype({name: "Int64" for name in INTEGERS if name in table})
    write_atomic(path, whole.to_csv(index=False, lineterminator="\n"))


def read_table(path: str | Path) -> pd.DataFrame:
    """Read a table written by :func:`write_table`; empty texts stay empty texts.

    Raises
    ------
    DataError
        The file is missing or is not such a table.
    """
    try:
        table = pd.read_csv(path, keep_default_na=False, na_values=[""])
    except (OSError, ValueError) as error:
        raise DataError(f"table {path} cannot be read ({error}); run the rule that makes it") from error
    for name in ("reason", "group", "participant", "label"):
        if name in table:
            table[name] = table[name].astype("object").where(table[name].notna(), "").astype(str)
    return table


def named_generator(seed: int, name: str) -> np.random.Generator:
    """Random stream of one named purpose: adding a setting elsewhere changes no number here."""
    return np.random.default_rng([seed, crc32(name.encode())])


def mean_and_error(values: np.ndarray[Any, np.dtype[np.float64]]) -> tuple[float, float]:
    """Mean and its standard error (NaN for fewer than two values)."""
    if values.size < 2:
        return float(values.mean()), float("nan")
    return float(values.mean()), float(values.std(ddof=1) / np.sqrt(values.size))


def frame(rows: Iterable[Mapping[str, Any]], columns: list[str] | None = None) -> pd.DataFrame:
    """Table of ``rows``; with exactly ``columns``, in that order, where not every row has them all so."""
    return pd.DataFrame(list(rows), columns=columns)
