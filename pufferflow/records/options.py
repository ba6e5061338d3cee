"""Options that are declared once, as fields of a frozen dataclass.

A public function takes the fields of such records as keywords, its docstring lists them, and the
command line generates its options from the same fields.
"""

import textwrap
from collections.abc import Callable
from dataclasses import MISSING, field, fields
from difflib import get_close_matches
from functools import partial, wraps
from inspect import Parameter, cleandoc, signature
from typing import Any, TypeVar

from pufferflow._util.checks import shown
from pufferflow.errors import ParameterError

Function = TypeVar("Function", bound=Callable[..., Any])

WHAT, GUARANTEE, ACCOUNT = "what to publish", "guarantee", "account"
TABLE, OUTPUT = "table", "output"
GROUPS = (WHAT, GUARANTEE, ACCOUNT, TABLE, OUTPUT)


def _option(
    group: str, default: Any, meaning: str, metavar: str | tuple[str, ...] | None = None
) -> Any:
    """Declare an option under a heading of ``--help``, as a field of a dataclass.

    Arguments are the default (MISSING for required options), the meaning in one sentence, and the
    placeholders of the value in the shell: a word, two words, or None for a switch.
    """
    described = {"meaning": meaning, "group": group, "metavar": metavar}
    return field(default=default, metadata=described)


shows, hides, pays, reads, writes = (partial(_option, group) for group in GROUPS)
"""Functions that declare an option under each of these headings."""


def made_from(options: dict[str, Any], *records: Any) -> list[Any]:
    """Return each of these records, made from the options that are its fields."""
    names = [{field.name for field in fields(record)} & options.keys() for record in records]
    return [r(**{key: options[key] for key in own}) for r, own in zip(records, names, strict=True)]


def takes_options(*records: type, only: str = "") -> Callable[[Function], Function]:
    """Return a decorator for functions with the fields of ``records`` as options.

    They replace ``{options}`` in its docstring; ``only`` names the options that it takes, if it
    does not take all. Other options raise an error.
    """
    every = [option for record in records for option in fields(record)]
    taken = [f for f in every if not only or f.name in only.split()]

    def with_options(function: Function) -> Function:
        own = signature(function)
        known = {n: p for n, p in own.parameters.items() if p.kind is not Parameter.VAR_KEYWORD}
        lines = []
        for one in (option for option in taken if option.name not in known):
            default = Parameter.empty if one.default is MISSING else one.default
            keyword = Parameter(one.name, Parameter.KEYWORD_ONLY, default=default)
            known[one.name] = keyword.replace(annotation=one.type)
            meaning = textwrap.fill(one.metadata["meaning"], 92, break_on_hyphens=False)
            kind = one.type.__name__ if isinstance(one.type, type) else one.type
            usual = "" if one.default in (MISSING, None) else f", default {one.default!r}"
            lines += [f"{one.name} : {kind}{usual}", textwrap.indent(meaning, "    ")]

        @wraps(function)
        def checked(*arguments: Any, **options: Any) -> Any:
            for name in options:
                if name not in known:
                    near = get_close_matches(name, known, 1, 0.5)
                    advice = f"{near[0]} may be meant" if near else f"there are {', '.join(known)}"
                    problem = f"unknown option {shown(name)} of {function.__name__}"
                    raise ParameterError(f"{problem}; {advice}")
            return function(*arguments, **options)

        described: Any = checked
        described.__signature__ = own.replace(parameters=[*known.values()])
        described.options = taken
        described.__doc__ = cleandoc(function.__doc__ or "").replace("{options}", "\n".join(lines))
        return described  # type: ignore[no-any-return]

    return with_options
