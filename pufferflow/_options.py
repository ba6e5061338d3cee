"""Options that are declared once, as fields of a frozen dataclass.

A public function takes the fields of such records as keywords, its docstring lists them, and the
command line generates its options from the same fields. Mechanisms use TypedDicts the same way.
"""

from __future__ import annotations

import dataclasses
import textwrap
from collections.abc import Callable
from difflib import get_close_matches
from functools import wraps
from inspect import Parameter, cleandoc, signature
from typing import Any, TypeVar, get_type_hints

from pufferflow._checks import shown
from pufferflow.errors import ParameterError

Function = TypeVar("Function", bound=Callable[..., Any])

PLACE = "{options}"
"""Where a docstring wants them."""

WIDTH = 96


def option(
    default: Any,
    meaning: str,
    group: str,
    metavar: str | tuple[str, ...] | None = None,
) -> Any:
    """Return a dataclass field that says what an option is.

    Parameters
    ----------
    default
        None where nothing is given; MISSING of one that must be given.
    meaning : str
        One sentence for docstring and ``--help``.
    group : str
        Under which heading ``--help`` lists it.
    metavar : str or tuple of str, optional
        What stands for its value in the shell; None makes a switch.
    """
    told = {"meaning": meaning, "group": group, "metavar": metavar}
    return dataclasses.field(default=default, metadata=told)


def options_under(group: str) -> Callable[..., Any]:
    """Return :func:`option` for one heading of ``--help``."""
    return lambda default, meaning, *more: option(default, meaning, group, *more)


def options_of(record: type) -> list[dataclasses.Field[Any]]:
    """Return the fields of a record that are options."""
    return [field for field in dataclasses.fields(record) if "meaning" in field.metadata]


def split_options(options: dict[str, Any], *records: type) -> list[dict[str, Any]]:
    """Return the options of each record."""
    names = [{field.name for field in options_of(record)} for record in records]
    return [{key: options[key] for key in options if key in own} for own in names]


def takes_options(*records: Any, defaults: object = None, only: str = "") -> Callable[[Function], Function]:
    """Let a function say which options it takes, and refuse others in one sentence.

    Parameters
    ----------
    records : dataclass or TypedDict
        Of the ``**options`` of the function.
    defaults : class, optional
        Whose attributes are the defaults of a TypedDict.
    only : str, optional
        Names of the fields that this function takes, if it does not take all.
    """
    words: dict[str, tuple[str, str]] = {}
    options: list[Parameter] = []
    declared: list[dataclasses.Field[Any]] = []
    for record in records:
        if dataclasses.is_dataclass(record):
            fields = [f for f in options_of(record) if not only or f.name in only.split()]  # type: ignore[arg-type]
            declared += fields
            hints = {f.name: f.type for f in fields}
            needed = dataclasses.MISSING
            values = {f.name: Parameter.empty if f.default is needed else f.default for f in fields}
            words |= {f.name: (_kind(f.type), f.metadata["meaning"]) for f in fields}
        else:
            hints = get_type_hints(record)
            values = {name: getattr(defaults, name, None) for name in hints}
            told = get_type_hints(record, include_extras=True)
            words |= {name: hint.__metadata__ for name, hint in told.items()}
        options += [
            Parameter(name, Parameter.KEYWORD_ONLY, default=values[name], annotation=hint)
            for name, hint in hints.items()
        ]

    def with_options(function: Function) -> Function:
        own = [p for p in signature(function).parameters.values() if p.kind is not Parameter.VAR_KEYWORD]
        more = [p for p in options if p.name not in {p.name for p in own}]
        known = [p.name for p in (*own, *more)]

        @wraps(function)
        def checked(*arguments: Any, **named: Any) -> Any:
            for name in named:
                if name not in known:
                    near = get_close_matches(name, known, 1, 0.5)
                    advice = f"{near[0]} may be meant" if near else f"there are {', '.join(known)}"
                    raise ParameterError(f"unknown option {shown(name)} of {function.__name__}; {advice}")
            return function(*arguments, **named)

        listed = signature(function).replace(parameters=[*own, *more])
        checked.__signature__ = listed  # type: ignore[attr-defined]
        checked.options = declared  # type: ignore[attr-defined]
        texts = [(p.name, *words[p.name]) for p in more]
        told = "\n".join(f"{name} : {kind}\n{_filled(text)}" for name, kind, text in texts)
        checked.__doc__ = cleandoc(function.__doc__ or "").replace(PLACE, told)
        return checked  # type: ignore[return-value]

    return with_options


def _filled(meaning: str) -> str:
    indent = " " * 4
    return textwrap.fill(meaning, WIDTH, initial_indent=indent, subsequent_indent=indent, break_on_hyphens=False)


def _kind(annotation: Any) -> str:
    """Return a type as docstrings write it: ``str or int, optional``."""
    parts = [part.strip() for part in str(annotation).split("|")]
    text = " or ".join(part for part in parts if part != "None")
    return f"{text}, optional" if "None" in parts else text
