"""Functions of one ε as functions of a grid of them, which shares what they compute."""

import threading
from collections.abc import Callable, Sequence
from functools import lru_cache, wraps
from typing import Any, Concatenate, ParamSpec, Protocol, TypeAlias, TypeVar, overload

from pufferflow._util.checks import Lengths, several_epsilons
from pufferflow._util.types import Floats

F = TypeVar("F", contravariant=True)
P = ParamSpec("P")
R = TypeVar("R")
Grid: TypeAlias = Sequence[float] | Floats


class OfEpsilons(Protocol[F, P, R]):
    """A function of a family, a length and ε, or of several ε with a result for each."""

    @overload
    def __call__(
        self, family: F, length: Lengths, epsilon: float, *others: P.args, **options: P.kwargs
    ) -> R: ...
    @overload
    def __call__(
        self, family: F, length: Lengths, epsilon: Grid, *others: P.args, **options: P.kwargs
    ) -> list[R]: ...


def of_epsilons(function: Callable[Concatenate[F, Lengths, float, P], R]) -> OfEpsilons[F, P, R]:
    """Return a function that for a list, tuple or array of ε returns a list of results."""

    @wraps(function)
    def each(family: Any, length: Lengths, epsilon: Any, *others: Any, **options: Any) -> Any:
        if isinstance(epsilon, list | tuple) or getattr(epsilon, "ndim", 0) == 1:
            grid = several_epsilons(epsilon)
            return [function(family, length, one, *others, **options) for one in grid]
        return function(family, length, epsilon, *others, **options)

    return each


def shared(function: Callable[P, R]) -> Callable[P, R]:
    """Return a function whose results are shared by all calls of a thread with equal arguments.

    A grid of ε costs little more than one ε: tables and couplings of one serve the next one.
    """

    @lru_cache(16)
    def of_thread(_: int, *arguments: Any, **options: Any) -> R:
        return function(*arguments, **options)

    @wraps(function)
    def each(*arguments: Any, **options: Any) -> R:
        return of_thread(threading.get_ident(), *arguments, **options)

    return each
