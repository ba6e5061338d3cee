"""Queries whose exact loss can be computed: a count of states and a histogram."""

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TypeAlias

from pufferflow._util.checks import check_list, check_whole
from pufferflow.errors import ParameterError
from pufferflow.models.chain import MarkovChain


@dataclass(frozen=True)
class CountQuery:
    """Number of records in a set of states, plus Laplace noise.

    Parameters
    ----------
    states : iterable of int
        The counted states: rows of the transition matrix, from 0.

    Raises
    ------
    ParameterError
        It is empty or has an element that is not a state.
    """

    states: frozenset[int]
    lipschitz = 1
    """Largest change of the count when one record changes."""

    def __init__(self, states: Iterable[int]) -> None:
        object.__setattr__(self, "states", _states(states, "states"))
        if not self.states:
            raise ParameterError(
                "a count needs at least one state; give, for example, CountQuery({1})"
            )

    def bin_of_states(self, chain: MarkovChain) -> list[int]:
        """Return 0 for the counted states and 1 for all others of ``chain``."""
        return _bins(chain, [self.states, {*range(chain.states)} - self.states])

    def __str__(self) -> str:
        return f"count of {_listed(self.states)}"


@dataclass(frozen=True)
class HistogramQuery:
    """Histogram of counts, plus independent Laplace noise of twice the scale on every bin.

    Parameters
    ----------
    bins : sequence of iterables of int, optional
        The states of every bin, rows of the transition matrix from 0; every state is in exactly one
        bin. By default every state is a bin.

    Raises
    ------
    ParameterError
        A bin is empty, or a state is in two bins.
    """

    bins: tuple[frozenset[int], ...] | None = None
    lipschitz = 2
    """Largest change of the histogram in L1 norm when one record changes."""

    def __init__(self, bins: Sequence[Iterable[int]] | None = None) -> None:
        parts = None
        if bins is not None:
            parts = tuple(_states(part, "the states of a bin") for part in check_list(bins, "bins"))
            if not parts or not all(parts):
                raise ParameterError(
                    "a histogram needs at least one bin, and every bin at least one state"
                )
            if len(frozenset().union(*parts)) < sum(map(len, parts)):
                raise ParameterError(
                    "a state is in two bins of the histogram; put every state in exactly one"
                )
        object.__setattr__(self, "bins", parts)

    def bin_of_states(self, chain: MarkovChain) -> list[int]:
        """Return the bin of every state of ``chain``, from 0."""
        return _bins(chain, self.bins or [{x} for x in range(chain.states)])

    def __str__(self) -> str:
        return f"histogram{' of ' * bool(self.bins)}{', '.join(map(_listed, self.bins or ()))}"


Query: TypeAlias = CountQuery | HistogramQuery


def _states(states: Iterable[int], name: str) -> frozenset[int]:
    with suppress(ParameterError, TypeError):  # messages show no entry, as it may be a record
        return frozenset(check_whole(state, name, 0) for state in states)
    raise ParameterError(f"{name} must be integers from 0; give a set of them, for example {{1}}")


def _bins(chain: MarkovChain, parts: Sequence[Iterable[int]]) -> list[int]:
    """Return the bin of every state of a chain; raises ParameterError."""
    bin_of = {state: j for j, part in enumerate(parts) for state in part}
    k = chain.states
    if beyond := [state for state in bin_of if state >= k]:
        raise ParameterError(
            f"state {min(beyond)} is requested, but the chain has the states 0 to {k - 1}"
        )
    if lacking := {*range(k)} - bin_of.keys():
        raise ParameterError(
            f"state {min(lacking)} is in no bin of the histogram; put every one in exactly one"
        )
    return [bin_of[state] for state in range(k)]


def _listed(states: Iterable[int]) -> str:
    return f"{{{', '.join(map(str, sorted(states)))}}}"
