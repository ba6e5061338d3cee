"""Options that several functions share: each is named, typed and explained once, in a TypedDict.

A function takes them as ``**options: Unpack[Record]``, which type checkers read; what it does with them has their
defaults. Every entry of a record is ``Annotated[type, type in words, meaning]``, and records extend one another.
"""

from __future__ import annotations

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

WIDTH = 110


def takes_options(record: Any, defaults: object = None) -> Callable[[Function], Function]:
    """Let a function say in its signature and its docstring which options it takes, and refuse others in one sentence.

    Parameters
    ----------
    record : TypedDict
        Of the ``**options`` of the function.
    defaults : class, optional
        Whose attributes are their defaults; those that it lacks are None.
    """
    required = record.__required_keys__
    words = {name: hint.__metadata__ for name, hint in get_type_hints(record, include_extras=True).items()}
    told = "\n".join(f"{name} : {kind}\n{_filled(meaning)}" for name, (kind, meaning) in words.items())
    options = [
        Parameter(
            name,
            Parameter.KEYWORD_ONLY,
            default=Parameter.empty if name in required else getattr(defaults, name, None),
            annotation=hint,
        )
        for name, hint in get_type_hints(record).items()
    ]

    def with_options(function: Function) -> Function:
        own = [p for p in signature(function).parameters.values() if p.kind is not Parameter.VAR_KEYWORD]
        known = [p.name for p in (*own, *options)]

        @wraps(function)
        def checked(*arguments: Any, **named: Any) -> Any:
            for name in named:
                if name not in known:
                    near = get_close_matches(name, known, 1, 0.5)
                    advice = f"{near[0]} may be meant" if near else f"there are {', '.join(known)}"
                    raise ParameterError(f"unknown option {shown(name)} of {function.__name__}; {advice}")
            for name in required:
                if name not in named:
                    raise ParameterError(f"{function.__name__} needs {name}; give it ({words[name][0]})")
            return function(*arguments, **named)

        checked.__signature__ = signature(function).replace(parameters=[*own, *options])  # type: ignore[attr-defined]
        checked.__doc__ = cleandoc(function.__doc__ or "").replace(PLACE, told)
        return checked  # type: ignore[return-value]

    return with_options


def _filled(meaning: str) -> str:
    return textwrap.fill(
        meaning,
        WIDTH,
        initial_indent=" " * 4,
        subsequent_indent=" " * 4,
        break_on_hyphens=False,
        break_long_words=False,
    )
