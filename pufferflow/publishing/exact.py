"""Exact counts of the records: what nothing but the noise of a release may look at."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np

from pufferflow._checks import check_epsilon, check_type
from pufferflow._ledger_entries import Extent
from pufferflow.errors import DataError, ParameterError
from pufferflow.markov import Family, MarkovChain, as_family, simulate_chain
from pufferflow.markov.families import standing_chains
from pufferflow.models import PublicModel, number_of_states, read_public_model
from pufferflow.publishing.assumptions import IN_TURN, check_origin, check_pieces, doubts
from pufferflow.publishing.calibration import Calibration
from pufferflow.publishing.fitting import Fit
from pufferflow.publishing.histogram import PrivateHistogram
from pufferflow.publishing.noise import count_scale
from pufferflow.publishing.private_fit import PrivateFit
from pufferflow.publishing.released import NoisyTable, PrivateRelease, shares
from pufferflow.publishing.request import Model, ReleaseRequest
from pufferflow.publishing.statistics import Histogram
from pufferflow.publishing.statistics.base import Table
from pufferflow.records.format import RecordFormat, StateSpace
from pufferflow.records.reading import GUESSES, Reading
from pufferflow.records.rows import MISSING_TEXTS, Records, open_records, stamp
from pufferflow.records.tables import Source
from pufferflow.records.tally import Batch, Tally


@dataclass(frozen=True)
class ExactCounts:
    """Counts of the states with what is public about the records; its text shows none of it."""

    tables: tuple[Table, ...]
    """One a statistic."""
    records: int
    segments: int
    longest_segment: int
    longest_record: int
    """Steps of the participant with the most, in all segments together."""
    participants: int
    states: StateSpace
    model: PublicModel
    epsilon: float
    form: dict[str, Any] | None = None
    """How the records became steps, for the ledger."""
    unused_columns: int = 0
    warnings: tuple[str, ...] = ()
    extent: Extent | None = None
    """Which records, as far as that is public."""

    def __repr__(self) -> str:
        return "ExactCounts(…)"

    def noise_scales(self, scale: float) -> list[float]:
        """Scale of the noise on each table, where a 1-Lipschitz query gets ``scale``."""
        statistics = tuple(table.statistic for table in self.tables)
        parts = zip(statistics, shares(statistics), strict=True)
        return [count_scale(scale, statistic.lipschitz / share) for statistic, share in parts]

    def noisy(
        self, draw: Callable[[Sequence[int], float], list[int]], calibration: Calibration, request: ReleaseRequest
    ) -> PrivateRelease:
        """Return the release with the noise that ``draw`` adds to counts."""
        tables = tuple(
            NoisyTable(
                table.statistic,
                table.cells,
                table.columns,
                table.sizes,
                tuple(draw(table.counts.ravel().tolist(), scale)),
                scale,
            )
            for table, scale in zip(self.tables, self.noise_scales(calibration.scale), strict=True)
        )
        common: dict[str, Any] = {
            "tables": tables,
            "states": self.states.names,
            "records": self.records,
            "segments": self.segments,
            "longest_segment": self.longest_segment,
            "longest_record": self.longest_record,
            "participants": self.participants,
            "epsilon": self.epsilon,
            "calibration": calibration,
            "model": self.model,
            "chain_is_public": request.chain_is_public,
            "unused_columns": self.unused_columns,
            "warnings": self.said(calibration),
            "columns": self.columns,
        }
        if request.statistics == (Histogram(),) and not request.quantiles:
            return PrivateHistogram(**common, post_processing=request.post_processing)
        return PrivateRelease(**common, quantiles=tuple(request.quantiles))

    def said(self, calibration: Calibration) -> tuple[str, ...]:
        """What to warn of, with this noise."""
        return *self.warnings, *doubts(self.model.family, self.states.names, self.epsilon, calibration.scale)

    @property
    def columns(self) -> dict[str, str | None]:
        """Name of the column of each role; none of simulated records."""
        return self.form["columns"] if self.form else {}


def public_model(model: Model) -> PublicModel:
    """Return Θ and how records become its states, from whatever says so."""
    if isinstance(model, PublicModel):
        return model
    if isinstance(model, Fit | PrivateFit):
        return model.model
    if isinstance(model, str | os.PathLike):
        return read_public_model(model)
    return PublicModel(as_family(model))


def count_records(request: ReleaseRequest) -> ExactCounts:
    """Count the records of a table.

    Raises DataError: the table is malformed, its step is not the chain's, or the chain was fitted to its time; values
    are never shown; ParameterError: an option is out of range, or the states are not said, or twice.
    """
    epsilon, public = check_epsilon(request.epsilon), public_model(request.model)
    form, reading = request.form, request.reading
    if reading is not None:
        check_type(reading, "reading", Reading)
    if form is not None:
        check_type(form, "form", RecordFormat)
        if public.records is not None and _steps(form) != _steps(public.records):
            raise ParameterError("the model says what its states and steps are; leave form, states, edges and step out")
    form = public.records or form
    if form is None:
        raise ParameterError(
            "the model does not say what its states are; give their names or edges (form in Python: states or edges in "
            "the shell), or a chain that fit made"
        )
    _check_states(form, public.family)
    reading = Reading(**form.reading) if reading is None else reading  # type: ignore[arg-type]
    records = open_records(cast(Source, request.source), replace(reading, show_values=False))
    if form.step_seconds is not None and records.columns["time"] is None:
        raise DataError(
            f"{records.table.where}: the chain has steps of {form.step_seconds} s, so there must be times; name their "
            "column (time)"
        )
    if form.step_seconds is None and records.reading.time is not None:
        raise ParameterError("the chain was fitted to rows without times; leave time out, or fit it with times")
    if form.step_seconds is None and records.columns["time"] is not None:
        raise DataError(
            f"{records.table.where}: the chain was fitted to rows without times, but there is a column of times; "
            "say rows_are_steps if every row is one step, or fit the chain with times"
        )
    for statistic in request.statistics:
        statistic.check(form.states, records.columns["time"] is not None)
    counters = [statistic.counter(form.states) for statistic in request.statistics]
    tally = Tally(form, transitions=False, counters=counters)
    tally.read(records)
    observed = int(tally.state_counts.sum())
    if not observed:
        raise DataError(f"{records.table.where}: no value was recorded, so there is nothing to release")
    check_pieces(records, form, tally)
    warnings = check_origin(records, tally, form.fitted, request.fitted_to_others)
    if records.columns["time"] is not None and tally.are_in_turn():
        warnings.append(IN_TURN)
    _check_starts(public.family, tally, records.table.where)
    owners, lengths = tally.segments()
    return ExactCounts(
        tables=tuple(counter.finished() for counter in counters),
        records=observed,
        segments=len(lengths),
        longest_segment=int(lengths.max()),
        longest_record=int(np.add.reduceat(lengths, np.unique(owners, return_index=True)[1]).max()),
        participants=len(np.unique(owners)),
        states=form.states,
        model=PublicModel(public.family, form),
        epsilon=epsilon,
        form=_steps(form) | {"columns": records.columns} | _signs(records.reading) | _claims(form, public.family),
        unused_columns=len(records.unused),
        warnings=tuple(warnings),
        extent=_extent(records, tally, observed, form.step_seconds is not None),
    )


def _steps(form: RecordFormat) -> dict[str, Any]:
    """What of a format says which step of the chain a record is."""
    plain = ("states", "step_seconds", "split_after_seconds", "fitted")
    return {key: value for key, value in replace(form, fitted=None).to_dict().items() if key in plain}


def _claims(form: RecordFormat, family: Family) -> dict[str, list[str]]:
    """Which texts are a state and not missing: they make other steps of a Θ that says nothing of the states."""
    claimed = [text for text in MISSING_TEXTS if form.states.claims(text)]
    return {"not_missing": claimed} if claimed and number_of_states(family) is None else {}


def _extent(records: Records, tally: Tally, observed: int, timed: bool) -> Extent:
    """Without times the number of the last step would say no more than that of the records."""
    return Extent(observed, *((stamp(records, at) for at in (tally.first, tally.last)) if timed else ()))


def _check_states(form: RecordFormat, family: Family) -> None:
    if (k := number_of_states(family)) not in (None, form.states.count):
        raise ParameterError(f"{form.states.count} states are given, the chain has {k}; give one name a state")


def _signs(reading: Reading) -> dict[str, str | bool]:
    """Those options of reading, where they are not the default, with which the same rows become other steps."""
    same = (*GUESSES, "rows_are_steps", "separator")  # the columns that are read say it, or it does not matter
    return {name: value for name, value in reading.given().items() if name not in same}


def _check_starts(family: Family, tally: Tally, where: str) -> None:
    """Raise unless a given start, which is the law of a participant's first row, is that of every segment."""
    if not family.has_given_start:
        return
    why = "a first value is missing" if tally.late else "a segment begins after a pause" if tally.closed else ""
    if why:
        raise DataError(
            f'{where}: the chain has a given start, that of a participant\'s first row, but {why}; say "any" or '
            '"stationary" for initial_distribution in the model'
        )


def simulated_counts(request: ReleaseRequest, length: int, rng: np.random.Generator) -> ExactCounts:
    """Count the states of a simulated record of ``length`` steps.

    Raises ParameterError: Θ has no chain to simulate, or a statistic needs times or values.
    """
    model, form, epsilon = public_model(request.model), request.form, check_epsilon(request.epsilon)
    chains = standing_chains(model.family)
    if not chains:
        raise ParameterError("the family has no chain to simulate; give a table, or a model of one chain")
    chain = chains[0]
    if chain.start == "any":
        chain = MarkovChain(chain.transition_matrix)
    form = model.records if form is None else form
    if form is not None:
        check_type(form, "form", RecordFormat)
        _check_states(form, model.family)
    space = form.states if form is not None else StateSpace.categories([f"state {j + 1}" for j in range(chain.states)])
    path = simulate_chain(chain, length, rng)
    batch = Batch(
        person=np.zeros(length, dtype=np.int64),
        seconds=np.arange(length),
        state=path,
        came_from=np.concatenate(([0], path[:-1])),
        near=np.arange(length) > 0,
    )
    tables = []
    for statistic in request.statistics:
        if statistic.numeric or statistic.by != "all":
            raise ParameterError(f"{statistic.full_name} needs times or values, and simulated steps have none")
        statistic.check(space, False)
        counter = statistic.counter(space)
        counter.add(batch)
        tables.append(counter.finished())
    public = PublicModel(model.family, form)
    return ExactCounts(tuple(tables), length, 1, length, length, 1, space, public, epsilon)
