"""Which states the values of a table are to have."""

from __future__ import annotations

from dataclasses import dataclass

from pufferflow._checks import check_positive, check_whole
from pufferflow._display import displayed
from pufferflow.errors import ParameterError
from pufferflow.records.format import MOST_STATES, StateSpace


@displayed()
@dataclass(frozen=True)
class States:
    """How to make states; at most one of the first four is given, none guesses.

    Attributes
    ----------
    bins : int or None
        About so many numeric bins, of a width of 1, 2 or 5 times a power of ten, from a multiple of it.
    width : float or None
        Numeric bins of this width, from a multiple of it.
    edges : tuple of float or None
        Edges between numeric bins.
    names : tuple of str or None
        The categories.
    top : int or None
        Of the categories that occur keep this many, the most frequent; the others become "other".
    other : bool
        Give categories that are not listed the state "other".
    """

    bins: int | None = None
    width: float | None = None
    edges: tuple[float, ...] | None = None
    names: tuple[str, ...] | None = None
    top: int | None = None
    other: bool = False

    def __post_init__(self) -> None:
        given = [n for n in ("bins", "width", "edges", "names") if getattr(self, n) is not None]
        if len(given) > 1:
            raise ParameterError(f"{' and '.join(given)} say different things; give one of them")
        if self.numeric and (self.top is not None or self.other):
            raise ParameterError(f"top and other are for categories; leave {given[0]} out, or them")
        if self.bins is not None:
            check_whole(self.bins, "bins", 2, MOST_STATES)
        if self.width is not None:
            check_positive(self.width, "width")
        if self.top is not None:
            check_whole(self.top, "top", 1, MOST_STATES - 1)
        if self.edges is not None:
            StateSpace.numeric(self.edges)
        if self.names is not None:
            StateSpace.categories(self.names, other=self.other)

    @property
    def numeric(self) -> bool:
        """Whether bins of numbers are asked for."""
        return self.bins is not None or self.width is not None or self.edges is not None

    @property
    def categorical(self) -> bool:
        """Whether categories are asked for."""
        return self.names is not None or self.top is not None or self.other
