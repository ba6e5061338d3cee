"""Model files: a family of chains as JSON.

An object has one of these keys, and ``records`` if it has the schema of readings and states
(:mod:`pufferflow.records.schema`)::

    {"chains": [{"transition_matrix": [[…], …], "initial_distribution": …}, …]}
    {"binary_interval": [low, high]}
    {"interval": {"low": [[…], …], "high": [[…], …], "backward": {…}}}
    {"total_variation": {"transition_matrix": [[…], …], "radius": [r, …], "backward": {…}}}
    {"mixing": {"steps": 60, "overlap": 0.4}}
    {"hidden": {"transition_matrix": …, "initial_distribution": …, "observations": [0, 0, 1]}}
    {"periodic": {"transition_matrices": [[[…], …], …], "repeat": 60, "initial_distribution": …}}

Initial distributions are a list, ``"stationary"`` (the default) or ``"any"``. ``backward``, which
is optional, has bounds of the distributions of a record given the next one.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pufferflow._util.checks import named_type
from pufferflow._util.files import PathLike, write_atomic
from pufferflow._util.json import only_keys, read_json
from pufferflow.errors import ChainError, ModelError, ParameterError
from pufferflow.models.bounded import IntervalFamily, TotalVariationFamily
from pufferflow.models.chain import MarkovChain
from pufferflow.models.families import BinaryInterval, ChainFamily, Family, as_family
from pufferflow.models.mixing import MixingFamily
from pufferflow.models.processes import HiddenChain, PeriodicChain
from pufferflow.records.schema import Schema, parse_schema

_SETS = ChainFamily, BinaryInterval, IntervalFamily, TotalVariationFamily
_KINDS: Any = {f.kind: f for f in (*_SETS, MixingFamily, HiddenChain, PeriodicChain)}
"""The classes of families by their keys."""


@dataclass(frozen=True)
class PublicModel:
    """Public inputs of a release besides the data: Θ, and the schema of its records."""

    family: Family
    records: Schema | None = None
    """None if the model file has none; its states are given."""


def read_public_model(path: PathLike) -> PublicModel:
    """Return the family of a model file and its schema of records; ``"-"`` is standard input."""
    return read_json(path, parse_model, f"an object with one of the keys {', '.join(_KINDS)}")


def parse_model(document: object) -> PublicModel:
    """Return the model of a parsed file."""
    given = only_keys(document, (*_KINDS, "records"), "the model")
    records = parse_schema(given["records"]) if "records" in given else None
    found = [key for key in given if key != "records"]
    if len(found) != 1:
        keys, has = ", ".join(_KINDS), " and ".join(found) or "none of them"
        raise ModelError(f"the model needs exactly one of the keys {keys}; it has {has}")
    family = _family(found[0], given[found[0]])
    described = records and records.states and records.states.count
    if described and family.states not in (None, described):
        raise ModelError(
            f"records describes {described} states, the chains have {family.states}; "
            "give one name per state, or one edge less than states"
        )
    return PublicModel(family, records)


def write_model(
    path: PathLike,
    family: Family | MarkovChain,
    records: Schema | None = None,
    *,
    private: bool = False,
) -> Path:
    """Write the model of a family, with the schema of its records, atomically to ``path``.

    :func:`read_public_model` returns it exactly. With ``private`` only the owner may read it.
    """
    described = {} if records is None else {"records": records.to_dict()}
    document = as_family(family).document() | described
    return write_atomic(path, json.dumps(document) + "\n", private=private)


def _family(key: str, value: object) -> Family:
    """Return the family of a key; the values of two keys are lists."""
    if key == "chains":
        if not isinstance(value, list):
            raise ModelError(f"chains must be a list of chains, not {named_type(value)}")
        return ChainFamily(
            [_made(MarkovChain, one, f"chain {i}") for i, one in enumerate(value, 1)]
        )
    if key == "binary_interval":
        if not (isinstance(value, list) and len(value) == 2):
            raise ModelError("binary_interval must be a list of two numbers, low and high")
        return BinaryInterval(*value)
    family: Family = _made(_KINDS[key], value, key)
    return family


def _made(kind: Any, value: object, where: str) -> Any:
    """Return a chain or a family made from the fields of an object; its class checks them."""
    names = tuple(field.rstrip("?") for field in kind.fields)
    given = dict(only_keys(value, names, where, [name for name in names if name in kind.fields]))
    if "backward" in given:
        given["backward"] = _made(kind, given["backward"], f"{where}, backward")
    try:
        if kind is HiddenChain:
            observations = given.pop("observations")
            return HiddenChain(MarkovChain(**given), observations)
        return kind(**given)
    except (ChainError, ParameterError) as error:
        raise ChainError(f"{where}: {error}") from error
