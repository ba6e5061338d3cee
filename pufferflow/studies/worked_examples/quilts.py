"""Markov quilts to draw, as the library finds them: of chains and of a network (Figures 1 to 3)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd

from pufferflow.chain_networks import chain_network
from pufferflow.mechanisms import mqm_exact
from pufferflow.related.bayesnet import BayesianNetwork, MarkovQuilt, Variable, markov_quilts
from pufferflow.studies.tidy import frame
from pufferflow.studies.worked_examples.measure import THETA_1

CHAIN = (7, "X4")
"""Length of a chain whose quilts are drawn, and the node they are of."""
KINDS: tuple[tuple[str, ...], ...] = (("X2", "X6"), ("X2",), ("X6",), ())
GRID = (3, 5)
"""Rows and columns of the network: each variable depends on those above it and to its left."""
SHOWN = 16
"""Records of the running example that are drawn; the rest are remote."""


def quilts() -> pd.DataFrame:
    """One row a variable of each quilt: panel, line, variable, x, y, role (node, quilt, nearby, remote) and parents."""
    return frame([*_all_of_a_chain(), *_running_example(), *_network()])


def _rows(
    panel: str, line: str, quilt: MarkovQuilt, places: Mapping[str, tuple[float, float]], parents: Mapping[str, str]
) -> Iterator[dict[str, Any]]:
    roles = dict.fromkeys(quilt.nearby, "nearby") | dict.fromkeys(quilt.quilt, "quilt")
    roles[quilt.node] = "node"
    for name, (x, y) in places.items():
        place = {"panel": panel, "line": line, "variable": name, "x": x, "y": y}
        yield place | {"role": roles.get(name, "remote"), "parents": parents.get(name, "")}


def _all_of_a_chain() -> Iterator[dict[str, Any]]:
    """One quilt of each kind that Lemma 4.6 knows."""
    length, node = CHAIN
    quilts = {quilt.quilt: quilt for quilt in markov_quilts(chain_network(THETA_1, length), node)}
    for line, kind in enumerate(KINDS):
        quilt = quilts[kind]
        names = ", ".join(quilt.quilt)
        places = {f"X{i}": (float(i), -float(line)) for i in range(1, length + 1)}
        text = f"{{{names}}}: {len(quilt.nearby)} nearby" if names else f"∅: {length} nearby"
        yield from _rows("quilts of X4 in a chain of 7", text, quilt, places, _before(places))


def _running_example() -> Iterator[dict[str, Any]]:
    noise = mqm_exact(THETA_1, 100, 1.0, convention="published")
    assert noise.quilt is not None
    assert noise.node is not None
    low = noise.node - (noise.quilt.left or noise.node)
    high = noise.node + (noise.quilt.right or 100)
    nearby = tuple(f"X{i}" for i in range(low + 1, high))
    sides = tuple(f"X{i}" for i in (low, high) if 1 <= i <= 100)
    quilt = MarkovQuilt(f"X{noise.node}", sides, nearby, ())
    places = {f"X{i}": (float(i), 0.0) for i in range(1, SHOWN + 1)}
    text = f"σ = {noise.scale:.4f}; X{SHOWN + 1} to X100 are remote"
    yield from _rows("active quilt of the running example θ1, T = 100", text, quilt, places, _before(places))


def _network() -> Iterator[dict[str, Any]]:
    """The quilt with the fewest nearby variables that leaves any remote."""
    rows, columns = GRID
    places = {f"{'ABC'[r]}{c + 1}": (float(c), -float(r)) for r in range(rows) for c in range(columns)}
    parents = {
        name: [other for other, at in places.items() if at in ((x - 1, y), (x, y + 1))]
        for name, (x, y) in places.items()
    }
    fair = [Variable(name, np.full((2,) * (len(parents[name]) + 1), 0.5), parents=parents[name]) for name in places]
    best = next(quilt for quilt in markov_quilts(BayesianNetwork(fair), "B2") if quilt.remote)
    joined = {name: " ".join(own) for name, own in parents.items()}
    yield from _rows("a quilt in a network", "", best, places, joined)


def _before(places: Mapping[str, tuple[float, float]]) -> dict[str, str]:
    names = list(places)
    return dict(zip(names[1:], names, strict=False))
