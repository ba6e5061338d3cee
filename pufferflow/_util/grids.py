"""Functions of one ε as functions of a grid of them, which shares what they compute."""

import threading
from collections.abc import Callable, Sequence
from functools import lru_cache, wraps
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar, overload

from pufferflow._util.checks import Lengths, several_epsilons
from pufferflow._util.types import Floats

_Family = TypeVar("_Family", contravariant=True)
_Result = TypeVar("_Result")
_Options = ParamSpec("_Options")


class OfEpsilons(Protocol[_Family, _Options, _Result]):
    """A function of a family, a length and ε, or of several ε with a result for each."""

    @overload
    def __call__(
        self,
        family: _Family,
        length: Lengths,
        epsilon: float,
        *others: _Options.args,
        **options: _Options.kwargs,
    ) -> _Result: ...
    @overload
    def __call__(
        self,
        family: _Family,
        length: Lengths,
        epsilon: Sequence[float] | Floats,
        *others: _Options.args,
        **options: _Options.kwargs,
    ) -> list[_Result]: ...


def of_epsilons(
    function: Callable[Concatenate[_Family, Lengths, float, _Options], _Result],
) -> OfEpsilons[_Family, _Options, _Result]:
    """Return a function that for a list, tuple or array of ε returns a list of results."""

    @wraps(function)
    def each(family: Any, length: Lengths, epsilon: Any, *others: Any, **options: Any) -> Any:
        if isinstance(epsilon, list | tuple) or getattr(epsilon, "ndim", 0) == 1:
            grid = several_epsilons(epsilon)
            return [function(family, length, one, *others, **options) for one in grid]
        return function(family, length, epsilon, *others, **options)

    return each


def shared(function: Callable[_Options, _Result]) -> Callable[_Options, _Result]:
    """Return a function whose results are shared by all calls of a thread with equal arguments.

    A grid of ε costs little more than one ε: tables and couplings of one serve the next one.
    """

    @lru_cache(16)
    def of_thread(_: int, *arguments: Any, **options: Any) -> _Result:
        return function(*arguments, **options)

    @wraps(function)
    def each(*arguments: Any, **options: Any) -> _Result:
        return of_thread(threading.get_ident(), *arguments, **options)

    return each
