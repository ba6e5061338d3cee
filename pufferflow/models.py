"""Model files: a family of chains as JSON.

Either ``{"chains": [{"transition_matrix": [[…]], "initial_distribution": …}, …]}``, the initial distribution a
list, ``"stationary"`` (also where it is left out) or ``"any"``; or ``{"binary_interval": [low, high]}``; or
``{"interval": {"low": [[…]], "high": [[…]]}}``, bounds of every transition probability; or
``{"total_variation": {"transition_matrix": [[…]], "radius": [r, …]}}``, rows within distances of those given (these two
may have ``"backward"``, an object like themselves about the law of a record given the one after it); or
``{"forgetting": {"steps": 60, "overlap": 0.4}}``, how soon chains forget, on any states; or
``{"labelled": {"transition_matrix": [[…]], "initial_distribution": …, "labels": [0, 0, 1]}}``, a chain of which only
labels are recorded; or ``{"periodic": {"transition_matrices": [[[…]]], "repeat": 60, "initial_distribution":
"stationary"}}``, matrices that follow a public clock, from any phase of it (a ``"first_phase"`` of older files must be
null). Beside it ``records`` may say what the states are and how readings become steps, see
:mod:`pufferflow.records.schema`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from pufferflow._checks import shown
from pufferflow._files import write_atomic
from pufferflow._json import is_number, kind, only_keys, read_json
from pufferflow.errors import ChainError, ModelError, ParameterError
from pufferflow.interval_family import IntervalFamily
from pufferflow.markov import (
    STATIONARY,
    BinaryInterval,
    ChainFamily,
    Family,
    LabelledChain,
    MarkovChain,
    PeriodicChain,
    as_family,
)
from pufferflow.mixing_family import MixingFamily
from pufferflow.records.schema import Schema, parse_schema
from pufferflow.total_variation_family import TotalVariationFamily

_KINDS = ("chains", "binary_interval", "interval", "total_variation", "forgetting", "labelled", "periodic")


@dataclass(frozen=True)
class PublicModel:
    """What a release may know besides the data: Θ, and how records become steps of its chains.

    Attributes
    ----------
    family : Family
    records : Schema or None
        None where the model file does not say; its states are given.
    """

    family: Family
    records: Schema | None = None


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
        '{"chains": […]}, {"binary_interval": [low, high]}, {"interval": {"low": [[…]], "high": [[…]]}}, '
        '{"total_variation": {"transition_matrix": [[…]], "radius": [r, …]}}, '
        '{"forgetting": {"steps": m, "overlap": a}}, {"labelled": {"transition_matrix": […], "labels": […]}}, '
        '{"periodic": {"transition_matrices": […], "repeat": 60}}',
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
        records = parse_schema(document["records"])
        document = {key: value for key, value in document.items() if key != "records"}
    family = _family(document)
    described = records and records.states and records.states.count
    if described and number_of_states(family) not in (None, described):
        raise ModelError(
            f"records describes {described} states, the chains have {number_of_states(family)}; "
            "give one name a state, or one edge less than states"
        )
    return PublicModel(family, records)


def number_of_states(family: Family) -> int | None:
    """Return the number of states k of the chains of a family, None where they may have any number.

    Raises ModelError: its chains differ in it.
    """
    if len(family.sizes) > 1:
        sizes = " and ".join(map(str, sorted(family.sizes)))
        raise ModelError(f"the chains have {sizes} states; records needs one number")
    return next(iter(family.sizes), None)


def _family(document: object) -> Family:
    if not isinstance(document, dict):
        raise ModelError(f"a model is an object with one of the keys {', '.join(_KINDS)}, not {kind(document)}")
    only_keys(document, _KINDS, "the model")
    if len(document) != 1:
        given = " and ".join(document) if document else "none of them"
        raise ModelError(f"the model needs exactly one of the keys {', '.join(_KINDS)}; it has {given}")
    if "chains" in document:
        chains = document["chains"]
        if not isinstance(chains, list):
            raise ModelError(f"chains must be a list of chains, not {kind(chains)}")
        return ChainFamily([_chain(entry, f"chain {i}") for i, entry in enumerate(chains, 1)])
    if "interval" in document:
        return _both_ways(document["interval"], "interval", _intervals)
    if "total_variation" in document:
        return _both_ways(document["total_variation"], "total_variation", _balls)
    if "periodic" in document:
        return _periodic(document["periodic"])
    if "labelled" in document:
        return _labelled(document["labelled"])
    if "forgetting" in document:
        return _forgetting(document["forgetting"])
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
    records: Schema | None = None,
    *,
    private: bool = False,
) -> Path:
    """Write the model of a family or a chain, with what is known of its records, to ``path`` in one step.

    With ``private`` nobody but the owner of the file may read it.
    """
    return write_atomic(path, model_json(family, records), private=private)


def model_json(family: Family | MarkovChain, records: Schema | None = None) -> str:
    """Return the text of the model file of a family or a chain, with what is known of its records."""
    document = model_document(family) | ({} if records is None else {"records": records.to_dict()})
    return json.dumps(document) + "\n"


def _periodic(entry: object) -> PeriodicChain:
    keys = ("transition_matrices", "repeat", "first_phase", "initial_distribution")
    if not (isinstance(entry, dict) and isinstance(entry.get("transition_matrices"), list)):
        raise ModelError("periodic must be an object with transition_matrices, a list of matrices")
    only_keys(entry, keys, "periodic")
    if entry.get("first_phase") is not None:
        raise ModelError(
            f"periodic: first_phase is {shown(entry['first_phase'])}, but whoever begins at another phase would be "
            "given too little noise, so any phase is meant; leave it out"
        )
    for i, matrix in enumerate(entry["transition_matrices"], 1):
        if not _is_matrix(matrix):
            raise ModelError(f"periodic: matrix {i} must be a list of rows, each a list of numbers")
    options = {key: value for key, value in entry.items() if key not in ("transition_matrices", "first_phase")}
    try:
        return PeriodicChain(entry["transition_matrices"], **options)
    except (ChainError, ParameterError) as error:
        raise ChainError(f"periodic: {error}") from error


def _labelled(entry: object) -> LabelledChain:
    if not (isinstance(entry, dict) and isinstance(entry.get("labels"), list)):
        raise ModelError("labelled must be an object with a transition_matrix and labels, a list of integers")
    chain = _chain({key: value for key, value in entry.items() if key != "labels"}, "labelled")
    try:
        return LabelledChain(chain, entry["labels"])
    except (ChainError, ParameterError) as error:
        raise ChainError(f"labelled: {error}") from error


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


_Bounded = TypeVar("_Bounded", IntervalFamily, TotalVariationFamily)


def _both_ways(entry: object, where: str, parse: Callable[[object, str, _Bounded | None], _Bounded]) -> _Bounded:
    """A family between bounds, with those of the reversed chain where there are some."""
    if not isinstance(entry, dict) or "backward" not in entry:
        return parse(entry, where, None)
    forward = {key: value for key, value in entry.items() if key != "backward"}
    return parse(forward, where, parse(entry["backward"], f"{where}, backward", None))


def _intervals(entry: object, where: str, backward: IntervalFamily | None) -> IntervalFamily:
    if not isinstance(entry, dict):
        raise ModelError(f"{where} must be an object with low and high, not {kind(entry)}")
    only_keys(entry, ("low", "high"), where)
    for side in ("low", "high"):
        if side not in entry:
            raise ModelError(f"{where} has no {side}; give one row of bounds a state")
        if not _is_matrix(entry[side]):
            raise ModelError(f"{where}: {side} must be a list of rows, each a list of numbers")
    try:
        return IntervalFamily(entry["low"], entry["high"], backward=backward)
    except ChainError as error:
        raise ChainError(f"{where}: {error}") from error


def _balls(entry: object, where: str, backward: TotalVariationFamily | None) -> TotalVariationFamily:
    if not isinstance(entry, dict):
        raise ModelError(f"{where} must be an object with transition_matrix and radius, not {kind(entry)}")
    only_keys(entry, ("transition_matrix", "radius"), where)
    for key in ("transition_matrix", "radius"):
        if key not in entry:
            raise ModelError(f"{where} has no {key}; give rows of probabilities, and the distances of rows from them")
    matrix, radius = entry["transition_matrix"], entry["radius"]
    if not _is_matrix(matrix):
        raise ModelError(f"{where}: transition_matrix must be a list of rows, each a list of numbers")
    if not (is_number(radius) or (isinstance(radius, list) and all(map(is_number, radius)))):
        raise ModelError(f"{where}: radius must be a number, or a list of one for each state")
    try:
        return TotalVariationFamily(matrix, radius, backward=backward)
    except ChainError as error:
        raise ChainError(f"{where}: {error}") from error


def _forgetting(entry: object) -> MixingFamily:
    if not isinstance(entry, dict):
        raise ModelError(f"forgetting must be an object with steps and overlap, not {kind(entry)}")
    only_keys(entry, ("steps", "overlap"), "forgetting")
    for key in ("steps", "overlap"):
        if key not in entry:
            raise ModelError(f"forgetting has no {key}; give steps, such as 60, and overlap, such as 0.4")
        if not is_number(entry[key]):
            raise ModelError(f"forgetting: {key} must be a number, not {kind(entry[key])}")
    try:
        return MixingFamily(**entry)
    except (ChainError, ParameterError) as error:
        raise ChainError(f"forgetting: {error}") from error


def _is_matrix(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(row, list) and all(map(is_number, row)) for row in value)
