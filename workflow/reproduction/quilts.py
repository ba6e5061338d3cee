"""Markov quilts of chains and of a network for Figures 2 and 3, found by the library."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, product
from typing import Any

import numpy as np
import pandas as pd

from pufferflow import networks
from pufferflow.mechanisms import mqm_exact
from reproduction import tidy
from reproduction.examples import EPSILON, LENGTH, THETA_1

Network = networks.BayesianNetwork
Positions = Mapping[str, tuple[float, float]]
SHOWN = 16  # records of the running example; the rest are remote


def quilts() -> pd.DataFrame:
    """Return the tidy table "quilts": a row for each variable of each quilt, with its role."""
    kinds = [("X2", "X6"), ("X2",), ("X6",), ()]
    noise = tidy.scale_row(mqm_exact(THETA_1, LENGTH, EPSILON, convention="published"))
    steps = (-noise["quilt_left"], noise["quilt_right"])
    active = tuple(f"X{noise['node'] + step}" for step in steps)
    text = f"σ = {noise['scale']:.4f}; X{SHOWN + 1} to X{LENGTH} are remote"
    running = f"active quilt of the running example θ1, T = {LENGTH}"
    of_4 = _of_a_chain("quilts of X4 in a chain of 7", 7, "X4", kinds)
    of_running = _of_a_chain(running, SHOWN, f"X{noise['node']}", [active], text)
    return tidy.frame(chain(of_4, of_running, _of_a_network(3, 5)), "quilts")


def _of_a_chain(
    panel: str, length: int, node: str, kinds: Sequence[tuple[str, ...]], text: str = ""
) -> Iterator[dict[str, Any]]:
    """Yield quilts of a node, one below the other; ``text`` replaces the description of one."""
    network = networks.chain_network(THETA_1, length)
    found = {quilt.quilt: quilt for quilt in networks.markov_quilts(network, node)}
    for y, kind in enumerate(kinds):
        name = "{" + ", ".join(kind) + "}" if kind else "∅"
        line = text or f"{name}: {len(found[kind].nearby)} nearby"
        positions = {name: (float(i), float(-y)) for i, name in enumerate(network.names, start=1)}
        yield from _rows(panel, line, network, found[kind], positions)


def _of_a_network(rows: int, columns: int) -> Iterator[dict[str, Any]]:
    """Yield the smallest quilt of B2 in a grid of records with any remote record."""
    grid = product(range(rows), range(columns))
    positions = {f"{'ABC'[r]}{c + 1}": (float(c), float(-r)) for r, c in grid}
    fair = []
    for name, (x, y) in positions.items():
        parents = [other for other, at in positions.items() if at in ((x - 1, y), (x, y + 1))]
        fair.append(networks.Variable(name, np.full((2,) * (len(parents) + 1), 0.5), parents))
    network = Network(fair)
    smallest = next(quilt for quilt in networks.markov_quilts(network, "B2") if quilt.remote)
    yield from _rows("a quilt in a network", "", network, smallest, positions)


def _rows(
    panel: str, line: str, network: Network, quilt: networks.MarkovQuilt, positions: Positions
) -> Iterator[dict[str, Any]]:
    roles = dict.fromkeys(quilt.nearby, "nearby") | dict.fromkeys(quilt.quilt, "quilt")
    roles[quilt.node] = "node"
    for name, parents in zip(network.names, network.parents, strict=True):
        x, y = positions[name]
        row = {"panel": panel, "line": line, "variable": name, "x": x, "y": y}
        row["role"] = roles.get(name, "remote")
        yield row | {"parents": " ".join(network.names[p] for p in parents)}
