"""Model files: a family of chains as JSON.

========================  =====================================================================================
key                       value
========================  =====================================================================================
``chains``                list of ``{"transition_matrix": [[…]], "initial_distribution": …}``; the initial
                          distribution is a list, ``"stationary"`` (also where it is left out) or ``"any"``
``binary_interval``       ``[low, high]``
``interval``              ``{"low": [[…]], "high": [[…]]}``, bounds of every transition probability
``total_variation``       ``{"transition_matrix": [[…]], "radius": [r, …]}``, rows within distances of those given
``mixing``                ``{"steps": 60, "overlap": 0.4}``, a mixing condition on any states
``hidden``                a chain with ``"observations": [0, 0, 1]``, one for each of its hidden states
``periodic``              ``{"transition_matrices": [[[…]], …], "repeat": 60, "initial_distribution":
                          "stationary"}``, matrices with a public period, from any phase
========================  =====================================================================================

``interval`` and ``total_variation`` may have ``backward``, an object like themselves about the distribution of a record
given the one after it. Beside the key, ``records`` may describe the states and how readings become steps, see
:mod:`pufferflow.records.schema`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pufferflow._util.checks import shown
from pufferflow._util.files import write_atomic
from pufferflow._util.json import is_number, kind, only_keys, read_json
from pufferflow.errors import ChainError, ModelError, ParameterError
from pufferflow.models.chain import MarkovChain
from pufferflow.models.families import BinaryInterval, ChainFamily, Family, as_family
from pufferflow.models.hidden import HiddenChain
from pufferflow.models.intervals import IntervalFamily
from pufferflow.models.mixing import MixingFamily
from pufferflow.models.periodic import PeriodicChain
from pufferflow.models.total_variation import TotalVariationFamily
from pufferflow.records.schema import Schema, parse_schema


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
    """Return the family of a model file; ``"-"`` is standard input.

    Raises ModelError: the file cannot be read, is not JSON or does not describe a family of chains.
    """
    return read_public_model(path).family


def read_public_model(path: str | os.PathLike[str]) -> PublicModel:
    """Return a model file with its description of records; raises as :func:`read_model`."""
    return read_json(path, parse_public_model, f"an object with one of the keys {', '.join(_KINDS)}")


def parse_model(document: object) -> Family:
    """Return the family that a parsed model file describes.

    Raises ModelError: a key is unknown, missing or of the wrong type; ChainError: a chain or an interval is impossible.
    """
    return parse_public_model(document).family


def parse_public_model(document: object) -> PublicModel:
    """Return the family with the record format, None where there is none; raises as :func:`parse_model`."""
    if not isinstance(document, dict):
        raise ModelError(f"a model is an object with one of the keys {', '.join(_KINDS)}, not {kind(document)}")
    only_keys(document, (*_KINDS, "records"), "the model")
    records = parse_schema(document["records"]) if "records" in document else None
    found = [key for key in document if key != "records"]
    if len(found) != 1:
        given = " and ".join(found) or "none of them"
        raise ModelError(f"the model needs exactly one of the keys {', '.join(_KINDS)}; it has {given}")
    family = _KINDS[found[0]](document[found[0]], found[0])
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


def model_document(family: Family | MarkovChain) -> dict[str, Any]:
    """Return the model of a family or a chain as plain JSON types; :func:`parse_model` returns it exactly."""
    return as_family(family).document()


def write_model(
    path: str | os.PathLike[str],
    family: Family | MarkovChain,
    records: Schema | None = None,
    *,
    private: bool = False,
) -> Path:
    """Write the model of a family or a chain, with what is known of its records, to ``path`` in one step.

    With ``private`` only the owner of the file may read it.
    """
    document = model_document(family) | ({} if records is None else {"records": records.to_dict()})
    return write_atomic(path, json.dumps(document) + "\n", private=private)


# -- one table a kind: its fields, what each must be, and whether it may be left out ---------------------


def _is_matrix(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(row, list) and all(map(is_number, row)) for row in value)


def _is_start(value: object) -> bool:
    return isinstance(value, str) or (isinstance(value, list) and all(map(is_number, value)))


_Check = tuple[Callable[[Any], bool], str]
_ANYTHING: _Check = (lambda _: True, "")  # the class checks it
_MATRIX: _Check = (_is_matrix, "a list of rows, each a list of numbers")
_MATRICES: _Check = (
    lambda value: isinstance(value, list) and all(map(_is_matrix, value)),
    "a list of matrices, each a list of rows of numbers",
)
_NUMBER: _Check = (is_number, "a number")
_NUMBERS: _Check = (
    lambda value: is_number(value) or (isinstance(value, list) and all(map(is_number, value))),
    "a number, or a list of one for each state",
)
_START: _Check = (_is_start, 'a list of numbers, "stationary" or "any"')
_CHAIN = {"transition_matrix": _MATRIX, "initial_distribution?": _START}


def _fields(entry: object, where: str, checks: dict[str, _Check]) -> dict[str, Any]:
    """Return an object all of whose fields are known and of the right type; one with ``?`` may be left out."""
    names = tuple(key.rstrip("?") for key in checks)
    if not isinstance(entry, dict):
        needed = " and ".join(key for key in checks if key in names)
        raise ModelError(f"{where} must be an object with {needed}, not {kind(entry)}")
    only_keys(entry, names, where)
    for key, (is_right, wanted) in checks.items():
        name = key.rstrip("?")
        if name not in entry and name == key:
            raise ModelError(f"{where} has no {name}; give its fields {', '.join(names)}")
        if name in entry and not is_right(entry[name]):
            raise ModelError(f"{where}: {name} must be {wanted}")
    return entry


def _built(where: str, make: Callable[..., Any], *given: Any, **options: Any) -> Any:
    try:
        return make(*given, **options)
    except (ChainError, ParameterError) as error:
        raise ChainError(f"{where}: {error}") from error


def _chain(entry: object, where: str) -> MarkovChain:
    chain: MarkovChain = _built(where, MarkovChain, **_fields(entry, where, _CHAIN))
    return chain


def _chains(entry: object, where: str) -> ChainFamily:
    if not isinstance(entry, list):
        raise ModelError(f"chains must be a list of chains, not {kind(entry)}")
    return ChainFamily([_chain(each, f"chain {i}") for i, each in enumerate(entry, 1)])


def _binary_interval(entry: object, where: str) -> BinaryInterval:
    if not (isinstance(entry, list) and len(entry) == 2 and all(map(is_number, entry))):
        raise ModelError("binary_interval must be a list of two numbers, low and high")
    return BinaryInterval(*entry)


def _hidden(entry: object, where: str) -> HiddenChain:
    fields = _fields(entry, where, _CHAIN | {"observations": _ANYTHING})
    chain = _chain({key: value for key, value in fields.items() if key != "observations"}, where)
    hidden: HiddenChain = _built(where, HiddenChain, chain, fields["observations"])
    return hidden


def _periodic(entry: object, where: str) -> PeriodicChain:
    checks = {"transition_matrices": _MATRICES, "repeat?": _ANYTHING, "initial_distribution?": _START}
    fields = dict(_fields(entry, where, checks | {"first_phase?": _ANYTHING}))
    if (first := fields.pop("first_phase", None)) is not None:
        raise ModelError(
            f"periodic: first_phase is {shown(first)}, but a participant who begins at another phase would get "
            "too little noise, so any phase is assumed; leave it out"
        )
    chain: PeriodicChain = _built(where, PeriodicChain, fields.pop("transition_matrices"), **fields)
    return chain


def _of(make: Callable[..., Family], **checks: _Check) -> Callable[[object, str], Family]:
    """Return a parser of a kind whose fields are its parameters, ``backward`` one of the same kind."""

    def parse(entry: object, where: str) -> Family:
        fields = _fields(entry, where, checks | {"backward?": _ANYTHING} if make is not MixingFamily else checks)
        if "backward" in fields:
            fields = fields | {"backward": parse(fields["backward"], f"{where}, backward")}
        family: Family = _built(where, make, **fields)
        return family

    return parse


_KINDS: dict[str, Callable[[object, str], Family]] = {
    "chains": _chains,
    "binary_interval": _binary_interval,
    "interval": _of(IntervalFamily, low=_MATRIX, high=_MATRIX),
    "total_variation": _of(TotalVariationFamily, transition_matrix=_MATRIX, radius=_NUMBERS),
    "mixing": _of(MixingFamily, steps=_NUMBER, overlap=_NUMBER),
    "hidden": _hidden,
    "periodic": _periodic,
}
