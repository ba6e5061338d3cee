"""Network files: Bayesian networks as JSON.

One network is ``{"variables": [{"name": "Ann", "table": [0.9, 0.1]}, {"name": "Bob", "parents": ["Ann"],
"states": ["well", "ill"], "table": [[0.95, 0.05], [0.4, 0.6]]}, …]}``: the table of a variable has one level of lists
a parent, in the order of ``parents``, and innermost one probability a state; ``parents`` and ``states`` may be
left out. Several networks are ``{"networks": [{"variables": […]}, …]}``.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from pufferflow._files import write_atomic
from pufferflow._json import is_number, kind, only_keys, read_json
from pufferflow.errors import ModelError, NetworkError
from pufferflow.related.bayesnet.network import BayesianNetwork, Variable


def read_networks(path: str | os.PathLike[str]) -> tuple[BayesianNetwork, ...]:
    """Read the networks of a file; ``"-"`` is standard input.

    Raises
    ------
    ModelError
        The file cannot be read, is not JSON or does not describe networks.
    """
    return read_json(path, parse_networks, '{"variables": […]} or {"networks": [{"variables": […]}, …]}')


def parse_networks(document: object) -> tuple[BayesianNetwork, ...]:
    """Return the networks that a parsed network file describes.

    Raises
    ------
    ModelError
        A key is unknown, missing or of the wrong type.
    NetworkError
        A network is impossible.
    """
    if not isinstance(document, dict):
        raise ModelError(f"networks are an object with the key variables or networks, not {kind(document)}")
    only_keys(document, ("variables", "networks"), "the file")
    if len(document) != 1:
        given = "both" if document else "neither"
        raise ModelError(f"the file needs exactly one of the keys variables and networks; it has {given}")
    if "variables" in document:
        return (_network(document, ""),)
    entries = document["networks"]
    if not isinstance(entries, list):
        raise ModelError(f"networks must be a list of networks, not {kind(entries)}")
    return tuple(_network(entry, f"network {i}: ") for i, entry in enumerate(entries, 1))


def network_document(networks: BayesianNetwork | Iterable[BayesianNetwork]) -> dict[str, Any]:
    """Return networks as plain JSON types; :func:`parse_networks` gives them back exactly."""
    if not isinstance(networks, BayesianNetwork):
        return {"networks": [network_document(network) for network in networks]}
    return {
        "variables": [
            {
                "name": v.name,
                "states": list(v.states or ()),
                "parents": list(v.parents),
                "table": np.asarray(v.table).tolist(),
            }
            for v in networks.variables
        ]
    }


def write_networks(path: str | os.PathLike[str], networks: BayesianNetwork | Iterable[BayesianNetwork]) -> Path:
    """Write networks to ``path`` in one step."""
    return write_atomic(path, json.dumps(network_document(networks)) + "\n")


def _network(entry: object, where: str) -> BayesianNetwork:
    if not isinstance(entry, dict):
        raise ModelError(f"{where}a network is an object with the key variables, not {kind(entry)}")
    only_keys(entry, ("variables",), f"{where}the network")
    variables = entry.get("variables")
    if not isinstance(variables, list):
        raise ModelError(f"{where}variables must be a list of objects with name and table")
    try:
        return BayesianNetwork([_variable(v, f"{where}variable {i}") for i, v in enumerate(variables, 1)])
    except NetworkError as error:
        raise NetworkError(f"{where}{error}") from error


def _variable(entry: object, where: str) -> Variable:
    if not isinstance(entry, dict):
        raise ModelError(f"{where} must be an object with name and table, not {kind(entry)}")
    only_keys(entry, ("name", "states", "parents", "table"), where)
    for key in ("name", "table"):
        if key not in entry:
            raise ModelError(f"{where} has no {key}")
    if not isinstance(entry["name"], str):
        raise ModelError(f"{where}: name must be a string, not {kind(entry['name'])}")
    where = f"{where} ({entry['name']!r})"
    for key in ("states", "parents"):
        if key in entry and not (isinstance(entry[key], list) and all(isinstance(n, str) for n in entry[key])):
            raise ModelError(f"{where}: {key} must be a list of names")
    if not (isinstance(entry["table"], list) and _is_table(entry["table"])):
        raise ModelError(f"{where}: table must be numbers in nested lists, one level a parent and one for the states")
    return Variable(entry["name"], entry["table"], entry.get("parents", ()), entry.get("states"))


def _is_table(value: object) -> bool:
    return all(map(_is_table, value)) if isinstance(value, list) else is_number(value)
