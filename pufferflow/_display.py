"""How results show themselves: one line in a terminal, a small table in a notebook."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sized
from fractions import Fraction
from html import escape
from typing import Any, TypeVar

T = TypeVar("T")

LONGEST = 60
"""Characters of one value; a longer one is cut, or only its size is said."""


def displayed(*names: str) -> Callable[[type[T]], type[T]]:
    """Show the attributes ``names`` of the objects of a class, those that are None or empty left out.

    Below ``@dataclass`` it gives the line, too, and above it only the table. A ``__repr__`` that the class has already
    stays as it is and is the title of the table: it says what must not be overlooked, and no more than may be seen.
    """

    def decorate(cls: type[T]) -> type[T]:
        own = cls.__repr__ is not object.__repr__

        def line(self: Any) -> str:
            said = ", ".join(f"{name}={_text(value)}" for name, value in _facts(self, names))
            return f"{type(self).__name__}({said})"

        def table(self: Any) -> str:
            title = escape(repr(self) if own else type(self).__name__)
            if not names:
                return f"<code>{title}</code>"
            rows = (
                f"<tr><th>{name}</th><td>{escape(value if isinstance(value, str) else _text(value))}</td></tr>"
                for name, value in _facts(self, names)
            )
            return f"<table><caption>{title}</caption>{''.join(rows)}</table>"

        if not own:
            cls.__repr__ = line  # type: ignore[method-assign]
        cls._repr_html_ = table  # type: ignore[attr-defined]
        return cls

    return decorate


def _facts(thing: Any, names: tuple[str, ...]) -> Iterator[tuple[str, Any]]:
    for name in names:
        value = getattr(thing, name)
        if value is not None and not (isinstance(value, Sized) and len(value) == 0):
            yield name, value


def _text(value: Any) -> str:
    if isinstance(value, float):
        return repr(float(value))  # all digits: a scale cut short could be too small
    if getattr(value, "shape", ()):
        return f"<{type(value).__name__} of shape {value.shape}>"
    text = str(value) if isinstance(value, Fraction) else " ".join(repr(value).split())
    if len(text) <= LONGEST:
        return text
    return (
        f"<{len(value)} entries>" if isinstance(value, Sized) and not isinstance(value, str) else f"{text[:LONGEST]}…"
    )
