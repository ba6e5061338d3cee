"""Is a noisy histogram worst in its tails? The largest loss over all outputs beside that of the tails alone.

The answer is no: docs/histograms.md explains the exact counterexample of the tests. Two tables say by how much: one
for random chains, one for a family of counts whose excess grows without bound.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import comb
from typing import Any

import numpy as np
import pandas as pd

from pufferflow._types import Floats
from pufferflow.audit import CountQuery, HistogramQuery, PrivacyLoss, privacy_loss, smallest_scale
from pufferflow.errors import ParameterError
from pufferflow.markov import MarkovChain
from pufferflow.studies.tidy import frame, named_generator
from pufferflow.studies.values import Value, values_table

KINDS = ("dense", "sticky", "cyclic", "moving")
"""Rows drawn uniformly; mostly staying; mostly going on to the next state; never staying."""

COLUMNS = [
    "kind",
    "number",
    "states",
    "length",
    "epsilon",
    "scale",
    "loss",
    "tail",
    "loss_over_tail",
    "node",
    "output",
    "output_kind",
]

GROWTH_COLUMNS = ["length", "scale", "loss", "tail", "loss_over_tail", "limit"]


@dataclass(frozen=True)
class StudySettings:
    """What to draw: chains of every kind, their states and records, the values of ε, and the seed."""

    chains: int = 20
    states: int = 3
    length: int = 8
    epsilons: Sequence[float] = (0.2, 1.0, 5.0)
    seed: int = 2017

    def __post_init__(self) -> None:
        if self.chains < 1 or self.states < 2:
            raise ParameterError(
                f"the study has {self.chains} chains of {self.states} states; it needs at least 1 chain and 2 states"
            )


def random_matrix(kind: str, states: int, rng: np.random.Generator) -> Floats:
    """Transition matrix of one of the ``KINDS``, irreducible for 3 states or more."""
    rows: Floats = rng.dirichlet(np.ones(states), states)
    if kind == "dense":
        return rows
    if kind == "moving":
        np.fill_diagonal(rows, 0.0)
        return np.asarray(rows / rows.sum(axis=1, keepdims=True))
    weight = rng.uniform(0.5, 0.98)
    image = np.eye(states) if kind == "sticky" else np.roll(np.eye(states), 1, axis=1)
    return np.asarray(weight * image + (1 - weight) * rows)


def study_histograms(settings: StudySettings = StudySettings()) -> pd.DataFrame:
    """Loss of the smallest valid scale at each ε, and what of it the tails show; one row a chain and ε.

    ``loss`` is ε up to the tolerance of the root search (1e-6); ``tail`` the loss over outputs beyond the range of the
    data, that is over the counts of all sets of states; ``output_kind`` says whether the worst output is a tail.
    """
    rows = []
    for kind in KINDS:
        for number in range(1, settings.chains + 1):
            rng = named_generator(settings.seed, f"{kind}/{number}")
            chain = MarkovChain(random_matrix(kind, settings.states, rng))
            for epsilon in settings.epsilons:
                worst = smallest_scale(chain, settings.length, epsilon, HistogramQuery(), relative=1e-6)
                rows.append(
                    {
                        "kind": kind,
                        "number": number,
                        "states": settings.states,
                        "epsilon": epsilon,
                        "node": worst.node,
                        "output": "" if worst.output is None else str(worst.output),
                        "output_kind": _output_kind(worst),
                        **_values(worst),
                    }
                )
    return frame(rows, COLUMNS)


def two_regimes() -> MarkovChain:
    """Return a chain that alternates for ever (states 0 and 1) or tosses a coin for ever (2 and 3), equal chances."""
    alternating, tossing = [[0.0, 1.0], [1.0, 0.0]], [[0.5, 0.5], [0.5, 0.5]]
    nothing = np.zeros((2, 2))
    return MarkovChain(np.block([[np.array(alternating), nothing], [nothing, np.array(tossing)]]), [0.25] * 4)


def study_growth(lengths: Sequence[int] = (4, 8, 16, 32, 64, 128, 256)) -> pd.DataFrame:
    """Count of states 1 and 3 of :func:`two_regimes` with noise of scale T: loss over tail grows like √(T/2π).

    One row a length, even ones. ``limit`` is what the ratio tends to as the scale grows: E|B − T/2| for B binomial with
    T − 1 tosses (docs/histograms.md has the proof).
    """
    rows = []
    for length in lengths:
        if length < 4 or length % 2:
            raise ParameterError(f"length is {length}; the two regimes are compared at even lengths from 4")
        limit = (length - 1) * comb(length - 2, length // 2 - 1) / 2 ** (length - 1)
        worst = privacy_loss(two_regimes(), length, float(length), CountQuery({1, 3}))
        rows.append({"limit": limit, **_values(worst)})
    return frame(rows, GROWTH_COLUMNS)


def _values(worst: PrivacyLoss) -> dict[str, float]:
    return {
        "length": worst.length,
        "scale": worst.scale,
        "loss": worst.loss,
        "tail": worst.tail,
        "loss_over_tail": worst.loss / worst.tail,
    }


def _output_kind(worst: PrivacyLoss) -> str:
    output = worst.output if isinstance(worst.output, tuple) else (worst.output,)
    return "tail" if set(output) <= {0, worst.length, None} else "inside"


def measure(settings: Mapping[str, Any], seed: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Both tables under each other, told apart by ``panel``, and what they say in numbers.

    Returns
    -------
    curves : DataFrame
        Rows of :func:`study_histograms` (panel "random chains") and :func:`study_growth` ("two regimes").
    values : DataFrame
        As :func:`~pufferflow.studies.values.values_table` makes it.
    """
    random = study_histograms(
        StudySettings(settings["chains"], settings["states"], settings["length"], settings["epsilons"], seed)
    )
    growth = study_growth(settings["growth_lengths"])
    curves = pd.concat([random.assign(panel="random chains"), growth.assign(panel="two regimes")], ignore_index=True)
    exceeding = random["loss_over_tail"] > 1 + 1e-6  # beyond the tolerance of the root search
    three = privacy_loss(
        MarkovChain([[0.0, 1.0, 0.0], [0.5, 0.0, 0.5], [0.5, 0.5, 0.0]]), 3, 0.5 / np.log(2), HistogramQuery()
    )
    values = [
        ("three states, three records", "e^loss over all outputs", "histograms/three/loss", float(np.exp(three.loss))),
        ("three states, three records", "e^loss in the tails", "histograms/three/tail", float(np.exp(three.tail))),
        ("random chains", "settings", "histograms/random/settings", len(random)),
        ("random chains", "settings whose tails show less", "histograms/random/exceeding", int(exceeding.sum())),
        ("random chains", "largest loss over tail", "histograms/random/largest", float(random["loss_over_tail"].max())),
        ("two regimes", "largest loss over tail", "histograms/growth/largest", float(growth["loss_over_tail"].max())),
    ]
    return curves[["panel", *curves.columns.drop("panel")]], values_table(map(Value._make, values))
