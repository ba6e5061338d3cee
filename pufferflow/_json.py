"""Reading model files: JSON in, one clear sentence where something is wrong with it."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import fields
from typing import Any, TypeVar

from pufferflow._checks import check_path, named_type
from pufferflow._files import read_bounded
from pufferflow.errors import ChainError, DataError, ModelError, NetworkError, ParameterError

_Model = TypeVar("_Model")


def read_json(
    path: str | os.PathLike[str],
    parse: Callable[[object], _Model],
    must_hold: str,
    number: Callable[[str], object] | None = None,
) -> _Model:
    """Read a JSON file and return what ``parse`` makes of it; ``"-"`` is standard input.

    ``must_hold`` says what an empty file should have held, ``number`` reads the text of a decimal number (default: as a
    float). Raises ModelError: the file cannot be read, is not JSON or is not what ``parse`` expects; ParameterError:
    ``path`` is no path.
    """
    check_path(path, "path")
    name = "standard input" if path == "-" else str(path)
    try:
        content = read_bounded(path)
    except DataError as error:
        raise ModelError(str(error)) from error
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ModelError(f"{name} is not UTF-8 text (byte {error.start + 1}); save it as UTF-8") from error
    if not text.strip():
        raise ModelError(f"{name} is empty; it must hold {must_hold}")
    try:
        return parse(parse_json(text, number))
    except json.JSONDecodeError as error:
        raise ModelError(f"{name} is not JSON: {error.msg} at line {error.lineno}, column {error.colno}") from error
    except RecursionError as error:
        raise ModelError(f"{name} is nested too deeply to be a model") from error
    except (ModelError, ChainError, NetworkError, ParameterError) as error:
        raise ModelError(f"{name}: {error}") from error
    except ValueError as error:  # an integer too long for Python to convert
        raise ModelError(f"{name} holds a number that cannot be read ({error})") from error


def parse_json(text: str, number: Callable[[str], object] | None = None) -> Any:
    """Return the document of a text; refuses NaN, infinities, keys given twice and half characters.

    Raises ModelError: one of them is there.
    """
    document = json.loads(text, parse_float=number, parse_constant=_no_constant, object_pairs_hook=_unique)
    if "\\ud" in text.lower() and _has_surrogate(document):
        raise ModelError("a text has half of a character (a lone surrogate such as \\ud800); write whole ones")
    return document


def kind(value: object) -> str:
    """Name the JSON type of a value, for messages."""
    if value is None or is_number(value):
        return "null" if value is None else "a number"
    kinds = {bool: "a truth value", str: "a string", list: "a list", dict: "an object"}
    return kinds.get(type(value)) or named_type(value)


def is_number(value: object) -> bool:
    """Say whether a JSON value is a number."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def only_keys(document: object, allowed: tuple[str, ...], where: str) -> dict[str, Any]:
    """Return an object; refuse anything else, and keys that mean nothing."""
    if not isinstance(document, dict):
        raise ModelError(f"{where} must be an object with the keys {', '.join(allowed)}")
    for key in document:
        if key not in allowed:
            raise ModelError(f"{where} has the unknown key {key!r}; allowed are {', '.join(allowed)}")
    return document


def record(kind: type[_Model], document: object, where: str, *beside: str) -> _Model:
    """Build a dataclass from an object that has all its fields, and nothing else but what is ``beside``.

    Raises ModelError: it has not; whatever the class itself raises where a value is wrong.
    """
    names = tuple(field.name for field in fields(kind))  # type: ignore[arg-type]
    found = only_keys(document, (*names, *beside), where)
    if missing := [name for name in names if name not in found]:
        raise ModelError(f"{where} has no {missing[0]}")
    return kind(**{name: found[name] for name in names})


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    document = dict(pairs)
    if len(document) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise ModelError(f"the key {twice!r} is given twice in one object")
    return document


def _has_surrogate(value: object) -> bool:
    """Whether a text of a document cannot be written as UTF-8."""
    if isinstance(value, dict):
        return any(map(_has_surrogate, (*value, *value.values())))
    if isinstance(value, list):
        return any(map(_has_surrogate, value))
    return isinstance(value, str) and any("\ud800" <= letter <= "\udfff" for letter in value)


def _no_constant(name: str) -> float:
    raise ModelError(f"{name} is not a JSON number; probabilities lie between 0 and 1")
