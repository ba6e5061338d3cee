"""Discrete Bayesian networks: an acyclic graph, and one conditional probability table per variable.

A network file is ``{"variables": [{"name": "Ann", "table": [0.9, 0.1]}, {"name": "Bob", "parents":
["Ann"], "table": [[0.95, 0.05], [0.4, 0.6]]}]}`` in JSON; ``parents`` are optional. Several
networks are ``{"networks": [{"variables": […]}, …]}``.
"""

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter

from numpy.typing import ArrayLike

from pufferflow._util.checks import check_list, check_numbers, check_type, check_whole, shown_name
from pufferflow._util.json import only_keys, read_json, record
from pufferflow._util.types import Floats
from pufferflow.errors import ChainError, NetworkError
from pufferflow.models.chain import MarkovChain, checked_distributions

MAX_VARIABLES = 1_000


@dataclass(frozen=True, eq=False)
class Variable:
    """A variable with its distribution given its parents; a network checks it.

    The table P(variable | parents) has one axis per parent, in the order of ``parents``, and a last
    one for its own states. Rows that sum to 1 within 1e-9 are divided by their sum.
    """

    name: str
    table: ArrayLike = field(repr=False)
    parents: Sequence[str] = ()


class BayesianNetwork:
    """A discrete Bayesian network θ, immutable.

    Parameters
    ----------
    variables : iterable of Variable
        At most :data:`MAX_VARIABLES`, in any order; parents may come after their children.

    Attributes
    ----------
    names : tuple of str
        Names in the given order. Elsewhere a variable is its index in this tuple.
    parents, children : tuple of tuple of int
    ancestors : tuple of int
        The ancestors of each variable and itself, as a bit mask.
    tables : tuple of float arrays
        As in :class:`Variable`, normalised and read-only.

    Raises NetworkError: a name is repeated, a parent unknown, the graph has a cycle, or a table is
    impossible.
    """

    def __init__(self, variables: Iterable[Variable]) -> None:
        given = check_list(variables, "variables")
        if not 0 < len(given) <= MAX_VARIABLES:
            raise NetworkError(f"the network has {len(given)} variables; give 1 to {MAX_VARIABLES}")
        for variable in given:
            check_type(variable, "a variable", Variable)
        self.names = _distinct([variable.name for variable in given], "the names of the variables")
        self._index = {name: i for i, name in enumerate(self.names)}
        parents = (_distinct(v.parents, f"parents of {v.name!r}") for v in given)
        self.parents = tuple(tuple(map(self.index, names)) for names in parents)
        graph = dict(enumerate(self.parents))
        self.children = tuple(tuple(c for c in graph if v in graph[c]) for v in graph)
        masks = [1 << v for v in graph]
        try:
            for v in TopologicalSorter(graph).static_order():
                for p in graph[v]:
                    masks[v] |= masks[p]
        except CycleError as error:
            cycle = " → ".join(self.names[v] for v in error.args[1])
            raise NetworkError(f"the graph has the cycle {cycle}; remove an edge") from None
        self.ancestors = tuple(masks)
        self.tables = tuple(map(_distributions, given))
        for v, table in enumerate(self.tables):
            shape = tuple(self.tables[u].shape[-1] for u in (*graph[v], v))
            if table.shape != shape:
                what = f"the table of {self.names[v]!r} has shape {table.shape}, not {shape}"
                raise NetworkError(f"{what}: one axis per parent, and one for its own states")

    def __repr__(self) -> str:
        return f"BayesianNetwork({len(self)} variables, {sum(map(len, self.parents))} edges)"

    def __len__(self) -> int:
        return len(self.names)

    def index(self, name: str) -> int:
        """Return the index of a variable; raises NetworkError if there is none of this name."""
        if not (isinstance(name, str) and name in self._index):
            some = ", ".join(self.names[:8]) + ", …" * (len(self) > 8)
            raise NetworkError(f"there is no variable {shown_name(name)}; the network has {some}")
        return self._index[name]


def _distinct(names: Iterable[str], what: str) -> tuple[str, ...]:
    """Return a list of names; raise NetworkError if one is repeated or not a name."""
    listed = check_list(names, what)
    for i, name in enumerate(listed):
        if not (isinstance(name, str) and name) or name in listed[:i]:
            raise NetworkError(f"{what}: {shown_name(name)} is given twice or is not a name")
    return tuple(listed)


def _distributions(variable: Variable) -> Floats:
    """Return a table whose rows are distributions, or raise NetworkError."""
    what = f"table of {variable.name!r}"
    table = check_numbers(variable.table, f"the {what}", NetworkError)
    if not (table.ndim and table.size):
        levels = "one level per parent and one for the states"
        raise NetworkError(f"the {what} must be numbers in nested lists, {levels}")
    try:
        states = table.shape[-1]
        rows = checked_distributions(table.reshape(-1, states), what, table.size // states)
    except ChainError as error:
        raise NetworkError(str(error)) from None
    return rows.reshape(table.shape)


def read_networks(path: str | os.PathLike[str]) -> tuple[BayesianNetwork, ...]:
    """Return the networks of a file; ``"-"`` is standard input.

    Raises ModelError: the file cannot be read, is not JSON or does not describe networks.
    """
    return read_json(path, _parse, '{"variables": […]} or {"networks": [{"variables": […]}]}')


def _parse(document: object) -> tuple[BayesianNetwork, ...]:
    networks = [document]
    if isinstance(document, dict) and "networks" in document:
        several = only_keys(document, ("networks",), "a file of several networks")
        networks = check_list(several["networks"], "networks")
    found = []
    for i, network in enumerate(networks, 1):
        described = only_keys(network, ("variables",), f"network {i}").get("variables")
        variables = [
            record(Variable, {"parents": []} | v if isinstance(v, dict) else v, f"variable {j}")
            for j, v in enumerate(check_list(described, f"variables of network {i}"), 1)
        ]
        found.append(BayesianNetwork(variables))
    return tuple(found)


def chain_network(chain: MarkovChain, length: int) -> BayesianNetwork:
    """Return the first ``length`` records of a Markov chain as a network X1 → X2 → … → XT.

    Raises NetworkError or ParameterError: the initial distribution is "any", which is not one
    network, or ``length`` is not from 1 to :data:`MAX_VARIABLES`.
    """
    check_type(chain, "chain", MarkovChain)
    length, first = check_whole(length, "length", most=MAX_VARIABLES), chain.initial_distribution
    if first is None:
        raise NetworkError('a chain with initial_distribution "any" is not one network; give one')
    matrix = chain.transition_matrix
    later = (Variable(f"X{i}", matrix, [f"X{i - 1}"]) for i in range(2, length + 1))
    return BayesianNetwork([Variable("X1", first), *later])
