"""Scales for wider secrets, richer models and informed adversaries, and what the paper's scale gives away there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pandas as pd
from tqdm import tqdm

from pufferflow._types import Floats, Ints
from pufferflow.errors import ParameterError
from pufferflow.forgetting_family import ForgettingFamily
from pufferflow.interval_family import confidence_family
from pufferflow.markov import Family, MarkovChain, PeriodicChain, as_family, fit_chain
from pufferflow.mechanisms import certify, compute_scale, leakage_loss
from pufferflow.records.rows import HOUR
from pufferflow.records.runs import Runs
from pufferflow.records.sample import Sample, pooled_segment_lengths
from pufferflow.studies.scaling import RESULT_COLUMNS, scale_row
from pufferflow.studies.tidy import frame
from pufferflow.studies.wider_guarantees.runs import of_table
from pufferflow.verify import verify_certificate

KNOWLEDGE = ("nothing", "any records")
COLUMNS = [
    *("dataset", "label", "group", "model", "states", "step_seconds", "window", "knows"),
    *("mechanism", "epsilon", "length"),
    *RESULT_COLUMNS,
    *("relative_noise", "paper_scale", "paper_loss", "certified"),
]
BORROWED = 30
"""Steps that the hours of the day borrow from the whole day, a state: an hour may hardly see it."""


def wider_guarantees(
    sample: Sample,
    runs: pd.DataFrame,
    states: int | None,
    epsilons: Sequence[float],
    windows: Sequence[int],
    coverage: float,
    forgetting: Mapping[str, Any],
    certified_epsilons: Sequence[float],
) -> pd.DataFrame:
    """Leakage scales of every model, window and knowledge, and the loss at the scale of MQMExact.

    Parameters
    ----------
    sample : Sample
        For segment lengths and labels.
    runs : DataFrame
        Of :mod:`pufferflow.studies.wider_guarantees.runs`.
    states : int or None
        Number of states of the runs; None for those of the sample.
    epsilons, windows : sequence
        ε, and numbers of records hidden together.
    coverage : float
        Confidence of the intervals.
    forgetting : mapping
        Parameters of the forgetting family.
    certified_epsilons : sequence of float
        At these ε every scale gets a certificate, which is verified; ``certified`` says whether there is one.

    Returns
    -------
    DataFrame
        ``relative_noise`` is scale / scale of MQMExact for one record of the fitted chain, ``paper_loss`` what that
        scale, ``paper_scale``, gives away if the model is true.
    """
    rows: list[dict[str, Any]] = []
    for group, of in of_table(runs, len(sample.states) if states is None else states).items():
        length = max(pooled_segment_lengths(sample.group(group)))
        families = models(of, sample.step_seconds, coverage, forgetting)
        for epsilon in epsilons:
            paper = compute_scale("mqm-exact", families["fitted"], length, epsilon).scale
            assert paper is not None  # mqm-exact always applies to a chain
            cells = [(name, window, knows) for name in families for window in windows for knows in KNOWLEDGE]
            for name, window, knows in tqdm(cells, desc=f"{group}, ε = {epsilon:g}", disable=None, leave=False):
                family = families[name]
                protection: dict[str, Any] = {"window": window, "knows": knows}
                result = compute_scale("leakage", family, length, epsilon, **protection)
                proved = None
                if epsilon in certified_epsilons:
                    proved = _certified(family, length, epsilon, protection)
                rows.append(
                    {
                        "dataset": sample.dataset,
                        "label": sample.label,
                        "group": group,
                        "model": name,
                        "states": of.triples.shape[0],
                        "step_seconds": sample.step_seconds,
                        **protection,
                        **scale_row(result),
                        "relative_noise": None if result.scale is None else result.scale / paper,
                        "paper_scale": paper,
                        "paper_loss": leakage_loss(family, length, paper, **protection),
                        "certified": proved,
                    }
                )
    return frame(rows, COLUMNS)


def models(runs: Runs, step_seconds: int, coverage: float, forgetting: Mapping[str, Any]) -> dict[str, Family]:
    """What may be believed of records with these runs, from the narrowest belief to the widest.

    A chain for every hour is left out where the steps do not fill hours.
    """
    counts = runs.hourly.sum(axis=0)
    fitted, _ = fit_chain(counts)
    second, _ = fit_chain(runs.triples, order=2)
    models: dict[str, Family] = {"fitted": as_family(fitted), "order 2": as_family(second)}
    if HOUR % step_seconds == 0:
        models["hourly"] = PeriodicChain(list(_by_the_hour(runs.hourly, fitted)), repeat=HOUR // step_seconds)
    models["intervals"] = confidence_family(counts, coverage, backward=True)
    models["forgetting"] = ForgettingFamily(**forgetting)
    return models


def _by_the_hour(hourly: Ints, whole: MarkovChain) -> Iterator[Floats]:
    """Transition matrix of every hour, its rows drawn a little towards those of the whole day."""
    for counts in hourly:
        rows = counts + BORROWED * whole.transition_matrix
        yield rows / rows.sum(axis=1, keepdims=True)


def _certified(family: Family, length: int, epsilon: float, protection: Mapping[str, Any]) -> bool:
    try:
        document = certify(family, length, epsilon, mechanism="leakage", **protection)
    except ParameterError:
        return False
    verify_certificate(document)
    return True
