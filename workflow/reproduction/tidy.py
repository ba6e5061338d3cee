"""The tidy tables between the stages: one schema per stage, one row per setting."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zlib import crc32

import numpy as np
import pandas as pd

from pufferflow._util.files import write_atomic
from pufferflow.errors import DataError

if TYPE_CHECKING:  # a figure does not depend on mechanisms
    from pufferflow.mechanisms import NoiseScale

TEXT, WHOLE, NUMBER, TRUTH = "string", "Int64", "float64", "boolean"

TEXTS = """
    dataset label group task participant mechanism status reason state machine example quantity key
    computed panel line variable role parents script chain verdict model data bound side_information
    counted secret database relation counts neighbour exact outcome
"""
WHOLES = """
    observations segments longest_segment transitions participants states period length node
    quilt_left quilt_right bins repetitions release families applicable repeats window step_seconds
    records releases top count draws outcomes utility_range precision_bits
    views
"""
KINDS = dict.fromkeys(TEXTS.split(), TEXT) | dict.fromkeys(WHOLES.split(), WHOLE)
KINDS |= dict.fromkeys(("irreducible", "reversible", "certified"), TRUTH)
"""Types of columns, the same in all tables; other columns are numbers."""

DATA = "dataset label group"
KEYS = f"{DATA} task participant alpha mechanism epsilon"
SCALE = "scale status reason node quilt_left quilt_right influence"
"""Columns that :func:`scale_row` fills."""

COLUMNS = {
    "samples": f"{DATA} participant observations segments longest_segment transitions",
    "chains": f"""{DATA} participants observations segments longest_segment states transitions
        smallest_stationary_probability irreducible period reversible eigengap_general""",
    "scales": f"{KEYS} length lipschitz {SCALE}",
    "errors": f"""{KEYS} length status reason participants bins
        expected_error mean_error standard_error repetitions""",
    "releases": f"{KEYS} release state exact_frequency released_frequency",
    "timings": f"""{DATA} mechanism epsilon status families applicable
        median_seconds least_seconds most_seconds repeats machine""",
    # computed values; `key` finds the reported ones
    "values": "example quantity key computed",
    "growth": f"{KEYS} length lipschitz {SCALE} expected_error",
    "gk16_limits": "dataset label quantity alpha",
    "quilts": "panel line variable x y role parents",
    "authors_code": "script chain mechanism epsilon theirs ours verdict reason",
    "cohort_summary": "mechanism epsilon quantity count mean std 5% 50% 95% max",
    # The two tables below hold several studies: a file has only the columns that it fills.
    "beyond": f"""{DATA} participant task model data mechanism bound side_information epsilon window
        states bins step_seconds participants observations records releases length lipschitz {SCALE}
        expected_error released_error relative_noise lower_bound least_error gap counted actual_loss
        paper_scale paper_loss total_epsilon loss certainty smallest_epsilon certified
        top hit_rate right_rate""",
    "related": """panel mechanism secret database relation counts neighbour exact outcome
        p1 p2 output epsilon factor queries probability largest_ratio lowest_p2 highest_p2
        frequency total_variation loss_nats certainty sensitivity loss_bits published_bits
        proved_bits chi_square_p share bits expected_bits granularity draws outcomes utility_range
        precision_bits prior_factor_k rows_n domain_tuples_m gamma prior_bound_d query_share
        rho_expected rho_measured rho_standard_error rho_source impossible_from_k
        statistical_difference difference_bound views posterior_same posterior_together
        expected_error mean_error standard_error bound repetitions""",
}
SCHEMAS = {
    stage: {name: KINDS.get(name, NUMBER) for name in names.split()}
    for stage, names in COLUMNS.items()
}
SCHEMAS["related"]["bound"] = NUMBER  # there it bounds an error; elsewhere it is a name
"""The columns of each stage's table and their types."""

SPARSE = ("beyond", "related")


def frame(rows: Iterable[Mapping[str, Any]], stage: str) -> pd.DataFrame:
    """Return the table of a stage; columns that a row lacks stay empty.

    Raises KeyError: a row has a column that the schema does not.
    """
    schema, listed = SCHEMAS[stage], list(rows)
    if unknown := {name for row in listed for name in row} - set(schema):
        raise KeyError(f"the schema of {stage} has no column {min(unknown)!r}")
    return _filled(pd.DataFrame(listed, columns=list(schema), dtype=object), schema)


def _filled(table: pd.DataFrame, schema: Mapping[str, str]) -> pd.DataFrame:
    """Return the table in the types of its schema; missing strings are empty."""
    texts = [name for name, kind in schema.items() if kind == TEXT]
    return table.astype(schema).fillna(dict.fromkeys(texts, ""))


def write(table: pd.DataFrame, path: str | Path, stage: str) -> None:
    """Write the table of a stage atomically, with all digits of floats."""
    columns = list(SCHEMAS[stage])
    if stage in SPARSE and len(table):
        columns = [name for name in columns if (table[name].notna() & (table[name] != "")).any()]
    write_atomic(path, table[columns].to_csv(index=False, lineterminator="\n"))


def read(path: str | Path, stage: str) -> pd.DataFrame:
    """Read a table that :func:`write` wrote; a participant ``021067`` stays a string.

    Raises DataError: the file is missing or is not a table of the stage.
    """
    schema = SCHEMAS[stage]
    try:
        table = pd.read_csv(path, keep_default_na=False, na_values=[""], dtype=schema)
        if stage in SPARSE and set(table) <= set(schema):
            table = table.reindex(columns=list(schema))
        if list(table) != list(schema):
            raise ValueError("its columns differ")
    except (OSError, ValueError) as error:
        sentence = f"{path} is not a table of {stage} ({error}); delete it and rerun"
        raise DataError(sentence) from error
    return _filled(table, schema)


def read_all(paths: Iterable[str | Path], stage: str) -> pd.DataFrame:
    """Read several tables of a stage as one, in their order."""
    return pd.concat([read(path, stage) for path in paths], ignore_index=True)


def scale_row(scale: NoiseScale) -> dict[str, Any]:
    """Return the columns of a noise scale."""
    names = "mechanism epsilon length scale status reason node influence"
    quilt = {f"quilt_{side}": getattr(scale.quilt, side, None) for side in ("left", "right")}
    return {name: getattr(scale, name) for name in names.split()} | quilt


def without_proofs(options: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return the mechanisms' options without certified scales, which take more time."""
    return {
        name: {key: value for key, value in own.items() if key != "certified"}
        for name, own in options.items()
    }


def named_generator(seed: int, name: str) -> np.random.Generator:
    """Return the generator of one purpose, so that adding a setting changes no other result."""
    return np.random.default_rng([seed, crc32(name.encode())])


def mean_and_error(values: np.ndarray[Any, np.dtype[np.float64]]) -> tuple[float, float]:
    """Return the mean of at least two values, and its standard error."""
    return float(values.mean()), float(values.std(ddof=1) / np.sqrt(values.size))
