"""Is one homogeneous chain of order 1 believable? What richer models say of public records, and what it costs.

Only for records that are public: the answers are read from them and are not noised.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from pufferflow._checks import check_epsilon, check_type
from pufferflow._progress import progress
from pufferflow._types import Floats
from pufferflow._work import afford
from pufferflow.coupling.calibration import MOST_STATES
from pufferflow.errors import DataError, PufferflowError
from pufferflow.markov import Family, MarkovChain, PeriodicChain, as_family, fit_chain, fit_periodic_chain
from pufferflow.mechanisms import leakage, leakage_loss
from pufferflow.mechanisms.work import scale_work
from pufferflow.publishing.fitting import Fit
from pufferflow.records.reading import Reading
from pufferflow.records.rows import Records, open_records
from pufferflow.records.tables import Source

BLOCKS = 20
"""Pieces of the records in time: the models are fitted to every other one and tried on those between."""
SHRINKAGE = 10.0
"""Records with the shares of the simple chain that every row of a richer model is given."""
HOUR = 3600
HOURS = 24


class Steps(NamedTuple):
    """Records in turn, by participant and in time; all of shape (n,)."""

    person: NDArray[np.int64]
    time: NDArray[np.int64]  # in steps
    state: NDArray[np.int64]

    def sequences(self, order: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Where m + 1 records follow one another: index of the first, and the states, shape (n, m + 1)."""
        n = max(len(self.time) - order, 0)
        first = np.arange(n)
        together = (self.person[:n] == self.person[order:]) & (self.time[order:] - self.time[:n] == order)
        first = first[together]
        return first, self.state[first[:, None] + np.arange(order + 1)]


def read_steps(source: Source, fit: Fit, reading: Reading | None = None) -> tuple[Steps, Records]:
    """Read the records of a table as the states of a fitted model; missing ones are left out.

    Raises DataError: the table is malformed.
    """
    form = fit.model.records
    assert form is not None
    records = open_records(source, reading or Reading())
    step = form.step_seconds or 1
    parts: list[tuple[NDArray[np.int64], ...]] = []
    for chunk in records.chunks("reading"):
        states = records.encode(chunk, form.states)
        seen = states >= 0
        parts.append((chunk.person[seen], chunk.seconds[seen] // step, states[seen]))
    person, at, state = (np.concatenate([part[i] for part in parts]).astype(np.int64) for i in range(3))
    order = np.lexsort((at, person))
    return Steps(person[order], at[order], state[order]), records


def count_sequences(steps: Steps, states: int, order: int = 1) -> NDArray[np.int64]:
    """How often each sequence of m + 1 records occurred, shape (k,) · (m + 1), for :func:`pufferflow.fit_chain`."""
    _, sequences = steps.sequences(order)
    return _histogram(sequences, (states,) * (order + 1))


def count_by_hour(steps: Steps, states: int, step_seconds: int) -> NDArray[np.int64]:
    """Steps between states in every hour of the day, shape (24, k, k), for :func:`pufferflow.fit_periodic_chain`.

    The hour is that of the first record, on the clock of the records.
    """
    first, pairs = steps.sequences(1)
    hours = steps.time[first] * step_seconds // HOUR % HOURS
    return _histogram(np.column_stack((hours, pairs)), (HOURS, states, states))


def diagnose(source: Source, fit: Fit, *, reading: Reading | None = None, epsilon: float = 1.0) -> pd.DataFrame:
    """Try models richer than one chain of order 1 on public records, and say what they would cost.

    The records are cut into 20 pieces in time; every model is fitted to every other piece and tried on those between.
    What counts is the last column: if it is about ε, the simple chain is good enough for the noise, however clearly a
    test tells the models apart.

    Parameters
    ----------
    source : path, Series or DataFrame
        The records that the model was fitted to. **They must be public**: this says things about them, without noise.
    fit : Fit
        Of :func:`pufferflow.fit_records`; its states and time step are used.
    reading : Reading, optional
        As for :func:`pufferflow.fit_records`.
    epsilon : float
        ε of the simple chain.

    Returns
    -------
    DataFrame
        A row a model: ``model``; ``parameters``, free ones that occur; ``held_out_nats``, log-likelihood of a held-out
        step, less that of order 1 (above 0: the richer model predicts better); ``scale``, of leakage at ε if the model
        is true; ``loss_nats``, what a record loses at the scale of order 1 if the model is true. The last two are
        missing, and ``reason`` says why, where no bound is computed.

    Raises
    ------
    ParameterError
        An argument is out of range.
    DataError
        The table is malformed, or holds too few records.
    """
    check_type(fit, "fit", Fit)
    epsilon = check_epsilon(epsilon)
    afford(
        _work(len(fit.sample.states), fit.sample.step_seconds),
        f"the richer models of {len(fit.sample.states)} states",
        "give fewer states, or leave the diagnosis out",
    )
    steps, records = read_steps(source, fit, reading)
    k, step = len(fit.sample.states), fit.sample.step_seconds
    length = max(n for participant in fit.sample.participants for n in participant.segment_lengths)
    pieces = np.arange(len(steps.time)) * BLOCKS // max(len(steps.time), 1)
    first, pairs = steps.sequences(1)
    train = pieces[first] % 2 == 0
    if not train.any() or train.all():
        raise DataError(f"{records.table.where}: too few records to hold some out; give longer records")
    simple = _shares(_histogram(pairs[train], (k, k)), np.full((k, k), 1 / k), 0.5)
    plain, _ = fit_chain(_histogram(pairs, (k, k)), smoothing=0.0 if _all_left(pairs, k) else 0.5)
    scale = leakage(plain, length, epsilon).scale
    assert scale is not None
    rows = [
        {
            "model": "order 1",
            "parameters": _parameters(_histogram(pairs, (k, k))),
            "held_out_nats": 0.0,
            "scale": scale,
            "loss_nats": leakage_loss(plain, length, scale),
            "reason": "",
        }
    ]
    for name, sequences, at, counts in progress(
        _richer(steps, k, step, records), desc="richer models", unit=" models", delay=1
    ):
        train = pieces[at] % 2 == 0
        rich = _shares(_histogram(sequences[train], counts.shape), simple, SHRINKAGE)
        tried = sequences[~train]
        gain = np.log(rich[tuple(tried.T)]) - np.log(simple[tuple(tried[:, -2:].T)])
        row = {
            "model": name,
            "parameters": _parameters(counts),
            "held_out_nats": float(gain.mean()) if len(gain) else math.nan,
            "scale": math.nan,
            "loss_nats": math.nan,
            "reason": "",
        }
        try:
            family = _family(name, counts, step)
            row |= {
                "scale": leakage(family, length, epsilon).scale,
                "loss_nats": leakage_loss(family, length, scale),
            }
        except PufferflowError as error:
            row["reason"] = str(error)
        rows.append(row)
    return pd.DataFrame(rows)


def _work(states: int, step_seconds: int) -> float:
    """Operations that scales and losses of all models take, about; a loss costs as much as a scale."""
    matrix = np.full((states, states), 1 / states)
    models: list[Family] = [as_family(MarkovChain(matrix))]
    if HOUR % step_seconds == 0:
        models.append(PeriodicChain([matrix] * HOURS))
    two = min(states**2, MOST_STATES)  # pairs of states, of which not all need occur
    models.append(as_family(MarkovChain(np.full((two, two), 1 / two))))
    return 2 * sum(scale_work("leakage", model, 1) for model in models)


def diagnosis_text(table: pd.DataFrame, epsilon: float) -> str:
    """Return the table of :func:`diagnose` for people."""
    lines = [
        "is one chain of order 1 believable? (held out: nats a step beyond it; loss: nats a record loses if the model",
        f"is true, with the noise for order 1 at epsilon = {epsilon:g})",
        f"  {'model':<20}{'parameters':>11}{'held out':>12}{'scale':>12}{'loss':>9}",
    ]
    for row in table.to_dict("records"):
        known = f"  {row['reason']}" if row["reason"] else f"{row['scale']:>12.6g}{row['loss_nats']:>9.4g}"
        lines.append(f"  {row['model']:<20}{row['parameters']:>11,}{row['held_out_nats']:>12.3g}{known}")
    worst = table["loss_nats"].max()
    if worst > 1.05 * epsilon:
        lines.append(f"the guarantee is {worst:.3g}, not {epsilon:g}, if the richest of these is true: calibrate to it")
    return "\n".join(lines)


_Model = tuple[str, NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]


def _richer(steps: Steps, k: int, step: int, records: Records) -> Iterator[_Model]:
    """Name, sequences of values, where each begins, and counts of every model with more parameters."""
    first, triples = steps.sequences(2)
    yield "order 2", triples, first, _histogram(triples, (k,) * 3)
    if records.columns["time"] is None or HOUR % step:
        return
    first, pairs = steps.sequences(1)
    hours = steps.time[first] * step // HOUR % HOURS
    yield "hour of the day", np.column_stack((hours, pairs)), first, count_by_hour(steps, k, step)


def _family(name: str, counts: NDArray[np.int64], step: int) -> Family:
    if name == "order 2":
        hidden = int(counts.any(axis=-1).sum())
        if hidden > MOST_STATES:
            raise DataError(
                f"{hidden} pairs of states occur, its loss is computed for {MOST_STATES} at most: merge states"
            )
        chain, _ = fit_chain(counts, order=2)
        return chain  # type: ignore[return-value]
    return fit_periodic_chain(counts, repeat=HOUR // step, smoothing=SHRINKAGE)[0]


def _histogram(values: NDArray[np.int64], shape: tuple[int, ...]) -> NDArray[np.int64]:
    places = np.ravel_multi_index(tuple(values.T), shape)
    return np.bincount(places, minlength=math.prod(shape)).reshape(shape)


def _shares(counts: NDArray[np.int64], prior: Floats, weight: float) -> Floats:
    shrunk = counts + weight * prior
    return np.asarray(shrunk / shrunk.sum(axis=-1, keepdims=True))


def _all_left(pairs: NDArray[np.int64], k: int) -> bool:
    used = np.unique(pairs)
    return bool(np.isin(used, pairs[:, 0]).all())


def _parameters(counts: NDArray[np.int64]) -> int:
    """Shares that are free, of the rows that occur."""
    return int((counts > 0).sum() - counts.any(axis=-1).sum())
