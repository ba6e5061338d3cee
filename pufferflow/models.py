"""Model files: a family of chains as JSON.

Either ``{"chains": [{"transition_matrix": [[…]], "initial_distribution": …}, …]}``, the initial distribution a
list, ``"stationary"`` (also where it is left out) or ``"any"``; or ``{"binary_interval": [low, high]}``; or
``{"interval": {"low": [[…]], "high": [[…]]}}``, bounds of every transition probability. Beside it ``records`` may
say what the states are and how records become steps, see :mod:`pufferflow.records.format`.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pufferflow._files import write_atomic
from pufferflow._json import is_number, kind, only_keys, read_json
from pufferflow.errors import ChainError, ModelError
from pufferflow.interval_family import IntervalFamily
from pufferflow.markov import STATIONARY, BinaryInterval, ChainFamily, Family, MarkovChain, as_family
from pufferflow.records.format import RecordFormat, parse_records


@dataclass(frozen=True)
class PublicModel:
    """What a release may know besides the data: Θ, and how records become steps of its chains.

    Attributes
    ----------
    family : Family
    records : RecordFormat or None
        None where the model file does not say.
    """

    family: Family
    records: RecordFormat | None = None


def read_model(path: str | os.PathLike[str]) -> Family:
    """Read the family of a model file; ``"-"`` is standard input.

    Raises ModelError: the file cannot be read, is not JSON or does not describe a family of chains.
    """
    return read_public_model(path).family


def read_public_model(path: str | os.PathLike[str]) -> PublicModel:
    """Read a model file with what it says of records; otherwise as :func:`read_model`."""
    return read_json(
        path,
        parse_public_model,
        '{"chains": […]}, {"binary_interval": [low, high]} or {"interval": {"low": [[…]], "high": [[…]]}}',
    )


def parse_model(document: object) -> Family:
    """Return the family that a parsed model file describes.

    Raises ModelError: a key is unknown, missing or of the wrong type; ChainError: a chain or an interval is impossible.
    """
    return parse_public_model(document).family


def parse_public_model(document: object) -> PublicModel:
    """Return the family with the record format, None where there is none; raises as :func:`parse_model`."""
    records = None
    if isinstance(document, dict) and "records" in document:
        records = parse_records(document["records"])
        document = {key: value for key, value in document.items() if key != "records"}
    family = _family(document)
    if records is not None and records.states.count != number_of_states(family):
        raise ModelError(
            f"records describes {records.states.count} states, the chains have {number_of_states(family)}; "
            "give one name a state, or one edge less than states"
        )
    return PublicModel(family, records)


def number_of_states(family: Family) -> int:
    """Return the number of states k of the chains of a family.

    Raises ModelError: its chains differ in it.
    """
    if len(family.sizes) > 1:
        sizes = " and ".join(map(str, sorted(family.sizes)))
        raise ModelError(f"the chains have {sizes} states; records needs one number")
    return family.sizes[0]


def _family(document: object) -> Family:
    if not isinstance(document, dict):
        raise ModelError(f"a model is an object with the key chains, binary_interval or interval, not {kind(document)}")
    only_keys(document, ("chains", "binary_interval", "interval"), "the model")
    if len(document) != 1:
        given = " and ".join(document) if document else "none of them"
        raise ModelError(
            f"the model needs exactly one of the keys chains, binary_interval and interval; it has {given}"
        )
    if "chains" in document:
        chains = document["chains"]
        if not isinstance(chains, list):
            raise ModelError(f"chains must be a list of chains, not {kind(chains)}")
        return ChainFamily([_chain(entry, f"chain {i}") for i, entry in enumerate(chains, 1)])
    if "interval" in document:
        return _intervals(document["interval"])
    interval = document["binary_interval"]
    if not (isinstance(interval, list) and len(interval) == 2 and all(map(is_number, interval))):
        raise ModelError("binary_interval must be a list of two numbers, low and high")
    return BinaryInterval(*interval)


def model_document(family: Family | MarkovChain) -> dict[str, Any]:
    """Return the model of a family or a chain as plain JSON types; :func:`parse_model` gives it back exactly."""
    return as_family(family).document()


def write_model(
    path: str | os.PathLike[str],
    family: Family | MarkovChain,
    records: RecordFormat | None = None,
    *,
    private: bool = False,
) -> Path:
    """Write the model of a family or a chain, with what is known of its records, to ``path`` in one step.

    With ``private`` nobody but the owner of the file may read it.
    """
    return write_atomic(path, model_json(family, records), private=private)


def model_json(family: Family | MarkovChain, records: RecordFormat | None = None) -> str:
    """Return the text of the model file of a family or a chain, with what is known of its records."""
    document = model_document(family) | ({} if records is None else {"records": records.to_dict()})
    return json.dumps(document) + "\n"


def _chain(entry: object, where: str) -> MarkovChain:
    if not isinstance(entry, dict):
        raise ModelError(f"{where} must be an object with a transition_matrix, not {kind(entry)}")
    only_keys(entry, ("transition_matrix", "initial_distribution"), where)
    if "transition_matrix" not in entry:
        raise ModelError(f"{where} has no transition_matrix; give one row of probabilities a state")
    matrix = entry["transition_matrix"]
    if not _is_matrix(matrix):
        raise ModelError(f"{where}: transition_matrix must be a list of rows, each a list of numbers")
    start = entry.get("initial_distribution", STATIONARY)
    if not (isinstance(start, str) or (isinstance(start, list) and all(map(is_number, start)))):
        raise ModelError(f'{where}: initial_distribution must be a list of numbers, "stationary" or "any"')
    try:
        return MarkovChain(matrix, start)
    except ChainError as error:
        raise ChainError(f"{where}: {error}") from error


def _intervals(entry: object) -> IntervalFamily:
    if not isinstance(entry, dict):
        raise ModelError(f"interval must be an object with low and high, not {kind(entry)}")
    only_keys(entry, ("low", "high"), "interval")
    for side in ("low", "high"):
        if side not in entry:
            raise ModelError(f"interval has no {side}; give one row of bounds a state")
        if not _is_matrix(entry[side]):
            raise ModelError(f"interval: {side} must be a list of rows, each a list of numbers")
    try:
        return IntervalFamily(entry["low"], entry["high"])
    except ChainError as error:
        raise ChainError(f"interval: {error}") from error


def _is_matrix(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(row, list) and all(map(is_number, row)) for row in value)
