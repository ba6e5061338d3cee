"""JSON files of models, with one sentence per fault."""

import json
from collections.abc import Callable, Collection
from dataclasses import fields
from typing import Any, TypeVar

from pufferflow._util.checks import named_type
from pufferflow._util.files import PathLike, read_bounded
from pufferflow.errors import ModelError, PufferflowError

_Model = TypeVar("_Model")


def read_json(
    path: PathLike,
    parse: Callable[[object], _Model],
    must_hold: str,
    number: Callable[[str], object] | None = None,
) -> _Model:
    """Return ``parse`` of the content of a JSON file; ``"-"`` is standard input.

    ``must_hold`` describes the content for messages, ``number`` reads a decimal number (default: as
    a float). Raises DataError: the file cannot be read; ModelError: it is not JSON, or ``parse``
    refuses it; ParameterError: ``path`` is not a path.
    """
    name, content = "standard input" if path == "-" else str(path), read_bounded(path)
    try:
        text = content.decode("utf-8-sig")
        if text.strip():
            return parse(parse_json(text, number))
        wrong = f"is empty; it must hold {must_hold}"
    except UnicodeDecodeError as error:
        wrong = f"is not UTF-8 text (byte {error.start + 1}); save it as UTF-8"
    except json.JSONDecodeError as error:
        wrong = f"is not JSON: {error.msg} at line {error.lineno}, column {error.colno}"
    except RecursionError:
        wrong = f"is nested too deeply; it must hold {must_hold}"
    except PufferflowError as error:
        raise ModelError(f"{name}: {error}") from error
    except ValueError as error:  # an integer too long for Python to convert
        wrong = f"holds a number that cannot be read ({error})"
    raise ModelError(f"{name} {wrong}")


def parse_json(text: str, number: Callable[[str], object] | None = None) -> Any:
    """Return the document of a string.

    Raises ModelError: it has NaN, an infinity, a key twice in one object, or half of a character.
    """
    document = json.loads(
        text, parse_float=number, parse_constant=_no_constant, object_pairs_hook=_unique
    )
    if "\\ud" in text.lower():
        try:
            json.dumps(document, ensure_ascii=False, default=str).encode()
        except UnicodeEncodeError:
            half = "half of a character (a lone surrogate such as \\ud800)"
            raise ModelError(f"a string has {half}; write whole ones") from None
    return document


def only_keys(
    document: object, allowed: tuple[str, ...], where: str, needed: Collection[str] = ()
) -> dict[str, Any]:
    """Return an object; raise ModelError for anything else, and for unknown or missing keys."""
    known = ", ".join(allowed)
    if not isinstance(document, dict):
        problem = named_type(document)
        raise ModelError(f"{where} must be an object with the keys {known}, not {problem}")
    for key in document:
        if key not in allowed:
            raise ModelError(f"{where} has the unknown key {key!r}; allowed are {known}")
    for key in needed:
        if key not in document:
            raise ModelError(f"{where} has no {key}; it needs {', '.join(needed)}")
    return document


def record(kind: type[_Model], document: object, where: str, *others: str) -> _Model:
    """Return a dataclass from an object with exactly its fields, and perhaps ``others``.

    Raises ModelError for other keys, and the errors of the class for wrong values.
    """
    names = tuple(field.name for field in fields(kind))  # type: ignore[arg-type]
    found = only_keys(document, (*names, *others), where, names)
    return kind(**{name: found[name] for name in names})


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    document: dict[str, Any] = {}
    for key, value in pairs:
        if key in document:
            raise ModelError(f"the key {key!r} is given twice in one object")
        document[key] = value
    return document


def _no_constant(name: str) -> float:
    raise ModelError(f"{name} is not a JSON number; probabilities lie between 0 and 1")
