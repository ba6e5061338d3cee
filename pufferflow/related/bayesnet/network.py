"""Discrete Bayesian networks: a directed acyclic graph with one conditional probability table a variable."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pufferflow._checks import check_list, check_type, shown, shown_name
from pufferflow._display import displayed
from pufferflow._rounding import SUM_TOLERANCE, UNIT_ROUNDOFF, total
from pufferflow._types import Floats
from pufferflow.errors import NetworkError, ParameterError

MOST_VARIABLES = 1_000
"""Variables of a network at most: their separations are looked at in pairs."""


@displayed()
@dataclass(frozen=True, eq=False)
class Variable:
    """One variable with its law given its parents; checked when it joins a network.

    Attributes
    ----------
    name : str
    table : array_like, shape (states of parent 1, …, states of parent m, own states)
        P(variable | parents): one axis a parent, in the order of ``parents``, and last one entry a state. Rows
        within 1e-9 of 1 are divided by their sum.
    parents : sequence of str
    states : sequence of str, optional
        Names of the states (default "0", "1", …).
    """

    name: str
    table: ArrayLike
    parents: Sequence[str] = ()
    states: Sequence[str] | None = None


@displayed("names")
class BayesianNetwork:
    """A discrete Bayesian network θ, immutable.

    Parameters
    ----------
    variables : iterable of Variable
        In any order; parents may come after their children.

    Attributes
    ----------
    names : tuple of str
        Names of the variables in the order given. Everywhere else a variable is its index here.
    states : tuple of tuple of str
    parents, children : tuple of tuple of int
    tables : tuple of float arrays
        As in :class:`Variable`, normalised and read-only.

    Raises
    ------
    NetworkError
        There are more than ``MOST_VARIABLES`` variables,
        a name is used twice, a parent is unknown or repeated, the graph has a cycle, a table has the wrong
        shape, an entry that is no probability or a row that does not sum to 1.

    Examples
    --------
    >>> network = BayesianNetwork([
    ...     Variable("Ann", [0.9, 0.1]),
    ...     Variable("Bob", [[0.95, 0.05], [0.4, 0.6]], parents=["Ann"]),
    ... ])
    >>> network
    BayesianNetwork(2 variables, 1 edges)
    """

    def __init__(self, variables: Iterable[Variable]) -> None:
        given = tuple(check_list(variables, "variables"))
        if not given:
            raise NetworkError("the network has no variables; give at least one")
        if len(given) > MOST_VARIABLES:
            raise NetworkError(f"the network has {len(given)} variables; at most {MOST_VARIABLES} can be handled")
        for variable in given:
            check_type(variable, "a variable", Variable)
            if not (isinstance(variable.name, str) and variable.name):
                raise NetworkError(f"a variable has the name {shown(variable.name)}; a name is a non-empty string")
        self.names: tuple[str, ...] = tuple(variable.name for variable in given)
        twice = _repeated(self.names)
        if twice is not None:
            raise NetworkError(f"the variable {twice!r} is given twice; give every variable once")
        self._index = {name: i for i, name in enumerate(self.names)}
        self.parents = tuple(self._parents_of(variable) for variable in given)
        self.children = tuple(
            tuple(c for c, parents in enumerate(self.parents) if v in parents) for v in range(len(given))
        )
        self._require_acyclic()
        shapes = [_shape(variable) for variable in given]
        self.states = tuple(_states(v, shape[-1]) for v, shape in zip(given, shapes, strict=True))
        self.tables = tuple(self._table_of(i, variable) for i, variable in enumerate(given))

    def __repr__(self) -> str:
        return f"BayesianNetwork({len(self)} variables, {sum(map(len, self.parents))} edges)"

    def __len__(self) -> int:
        return len(self.names)

    @property
    def variables(self) -> Iterator[Variable]:
        """The variables, complete and normalised; a network made of them is the same network."""
        for name, table, parents, states in zip(self.names, self.tables, self.parents, self.states, strict=True):
            yield Variable(name, table, tuple(self.names[p] for p in parents), states)

    def index(self, name: str) -> int:
        """Index of the variable called ``name``.

        Raises
        ------
        NetworkError
            There is none.
        """
        try:
            return self._index[name]
        except (KeyError, TypeError):
            raise NetworkError(f"the network has no variable {shown_name(name)}; it has {_some(self.names)}") from None

    @cached_property
    def ancestors(self) -> tuple[int, ...]:
        """For every variable the set of its ancestors and itself, as a bit mask."""
        masks = [0] * len(self)
        for v in self._topological_order:
            masks[v] = 1 << v
            for p in self.parents[v]:
                masks[v] |= masks[p]
        return tuple(masks)

    # -- validation ------------------------------------------------------------------------------

    def _parents_of(self, variable: Variable) -> tuple[int, ...]:
        parents = _listed(variable.parents, f"variable {shown(variable.name)}: parents")
        for parent in parents:
            if not isinstance(parent, str) or parent not in self._index:
                raise NetworkError(
                    f"variable {shown(variable.name)} has the unknown parent {shown_name(parent)}; add it"
                )
        twice = _repeated(parents)
        if twice is not None:
            raise NetworkError(f"variable {shown(variable.name)} has the parent {twice!r} twice; name it once")
        return tuple(self._index[parent] for parent in parents)

    @cached_property
    def _topological_order(self) -> tuple[int, ...]:
        """Parents before children; variables on or below a cycle are missing."""
        waiting = [len(parents) for parents in self.parents]
        order = [v for v, count in enumerate(waiting) if not count]
        for v in order:
            for child in self.children[v]:
                waiting[child] -= 1
                if not waiting[child]:
                    order.append(child)
        return tuple(order)

    def _require_acyclic(self) -> None:
        left = set(range(len(self))).difference(self._topological_order)
        if not left:
            return
        path = [min(left)]  # upwards: each of them has a parent among them, so this comes round
        while (above := next(p for p in self.parents[path[-1]] if p in left)) not in path:
            path.append(above)
        cycle = [above, *reversed(path[path.index(above) :])]
        named = " → ".join(self.names[v] for v in cycle)
        raise NetworkError(f"the graph has the cycle {named}; remove one of its edges")

    def _table_of(self, i: int, variable: Variable) -> Floats:
        table = np.array(variable.table, dtype=np.float64)
        parents = self.parents[i]
        expected = (*(len(self.states[p]) for p in parents), len(self.states[i]))
        if table.shape != expected:
            axes = [f"{len(self.states[p])} for {self.names[p]!r}" for p in parents]
            layout = f" ({', '.join(axes)}, then its own states)" if axes else ", as it has no parents"
            raise NetworkError(f"the table of {shown(variable.name)} has shape {table.shape}, not {expected}{layout}")
        for bad in np.argwhere(~(np.isfinite(table) & (table >= 0))).tolist():
            raise NetworkError(
                f"the table of {shown(variable.name)} has {table[tuple(bad)]} for {self._cell(i, bad)}; "
                "probabilities must lie between 0 and 1"
            )
        for at in np.ndindex(table.shape[:-1]):
            mass = total(table[at])
            if not abs(mass - 1) <= SUM_TOLERANCE:
                given = f" given {self._given(i, at)}" if at else ""
                raise NetworkError(
                    f"the probabilities of {shown(variable.name)}{given} sum to {mass:.12g}, not to 1; "
                    "divide them by their sum or mend an entry"
                )
            # what one division leaves of rounding stays, so that a network read back is the same network
            if abs(mass - 1) > 4 * UNIT_ROUNDOFF:
                table[at] /= mass
        table.flags.writeable = False
        return table

    def _given(self, i: int, at: Sequence[int]) -> str:
        pairs = zip(self.parents[i], at, strict=False)
        return ", ".join(f"{self.names[p]} = {self.states[p][x]}" for p, x in pairs)

    def _cell(self, i: int, at: Sequence[int]) -> str:
        given = self._given(i, at)
        return f"state {self.states[i][at[-1]]!r}" + (f" given {given}" if given else "")


def _shape(variable: Variable) -> tuple[int, ...]:
    try:
        shape = np.array(variable.table, dtype=np.float64).shape
    except (TypeError, ValueError, OverflowError):
        raise NetworkError(
            f"the table of {shown(variable.name)} must be numbers in nested lists of equal lengths, one level a parent"
        ) from None
    if not shape or 0 in shape:
        raise NetworkError(f"the table of {shown(variable.name)} is empty; give one probability a state")
    return shape


def _states(variable: Variable, count: int) -> tuple[str, ...]:
    if variable.states is None:
        return tuple(map(str, range(count)))
    states = _listed(variable.states, f"variable {shown(variable.name)}: states")
    if not all(isinstance(s, str) for s in states):
        raise NetworkError(f"variable {shown(variable.name)}: states must be a list of names")
    twice = _repeated(states)
    if twice is not None:
        raise NetworkError(f"variable {shown(variable.name)} has the state {twice!r} twice; name every state once")
    if len(states) != count:
        raise NetworkError(
            f"variable {shown(variable.name)} has {len(states)} states, but rows of {count} entries in its table; "
            "give one probability a state"
        )
    return states


def _listed(values: Iterable[Any], what: str) -> tuple[Any, ...]:
    try:
        return tuple(check_list(values, what))
    except ParameterError as error:  # a malformed file, maybe
        raise NetworkError(str(error)) from None


def _repeated(names: Sequence[Any]) -> Any:
    return next((name for i, name in enumerate(names) if name in names[:i]), None)


def _some(names: Sequence[str], most: int = 8) -> str:
    return ", ".join(names[:most]) + (", …" if len(names) > most else "")
