"""From a table to a sample and a chain that a later release may use."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

from pufferflow._checks import check_confidence, check_epsilon, check_positive, check_type, check_whole
from pufferflow._display import displayed
from pufferflow._options import takes_options
from pufferflow._texts import as_unicode
from pufferflow._work import afford
from pufferflow.errors import ChainError, DataError, ParameterError
from pufferflow.interval_family import confidence_family
from pufferflow.markov import ANY, STATIONARY, ChainFamily, Family, MarkovChain
from pufferflow.mechanisms import compute_scale, find_mechanism
from pufferflow.mechanisms.work import scale_work
from pufferflow.models import PublicModel, write_model
from pufferflow.overlaps import forgetting, overlaps_from_counts
from pufferflow.publishing.calibration import all_scales, histogram_mechanisms
from pufferflow.publishing.noise import LARGEST, DiscreteLaplace, count_scale
from pufferflow.records.counting import count_records
from pufferflow.records.format import MOST_SECONDS, Fitted, RecordFormat, StateSpace, StepOptions, check_split
from pufferflow.records.reading import Reading
from pufferflow.records.rows import open_records, stamp
from pufferflow.records.sample import Participant, Sample, pooled_transition_counts
from pufferflow.records.scan import Scan
from pufferflow.records.states import States
from pufferflow.records.tables import Source

SMOOTHING = 0.5
"""Added to every transition count where maximum likelihood gives no ergodic chain (Krichevsky and Trofimov)."""

STEPS = (1, 2, 5, 10, 20, 30, 60, 120, 240, 480)
"""Numbers of steps for which it is said how much a chain forgets."""

CONFIDENCE = 0.95
"""With which the overlaps of all of them hold."""


@displayed()
@dataclass(frozen=True)
class Fit:
    """What was found in a table.

    Attributes
    ----------
    sample : Sample
        Exact counts: **as private as the data**.
    model : PublicModel
        Θ and how records become states, for releases of *other* data; fitted, so **as private as the data**.
    facts : dict
        What the summary says, as plain JSON types.
    """

    sample: Sample
    model: PublicModel
    facts: dict[str, Any]

    @property
    def family(self) -> Family:
        """Θ of the model."""
        return self.model.family

    def __repr__(self) -> str:
        return f"Fit({len(self.sample.states)} states, as private as the data)"

    def save_chain(self, path: str | Path) -> Path:
        """Write the model file, for its owner alone: the counts of the sample can be found again from it."""
        return write_model(path, self.model.family, self.model.records, private=True)

    def summary(self) -> str:
        """Return the facts for people, one a line."""
        f = self.facts
        lines = [
            ("records", f"{f['records']:,} of {f['participants']:,} participant(s), {f['first']} to {f['last']}"),
            ("columns", ", ".join(f"{role} {name!r}" for role, name in f["columns"].items() if name is not None)),
            *([("not used", ", ".join(map(repr, f["unused_columns"])))] if f["unused_columns"] else []),
            ("time step", f["step"]),
            ("missing", f"{f['missing_values']:,} values{_taken(f)}; {f['missing_steps']:,} steps without a record"),
            ("segments", f"{f['segments']:,}, the longest of {f['longest_segment']:,} steps; {f['split']}"),
            ("states", f"{f['states']}: {f['state_names']}{_read_from(f)}"),
            ("transitions", f"{f['transitions']:,}, {f['transition_kinds']:,} different of {f['states'] ** 2:,}"),
            ("chain", f["chain"]),
            ("mixing", f["mixing"]),
        ]
        text = [f"{name:<12}{value}" for name, value in lines]
        text += [
            "",
            f"noise at epsilon = {f['epsilon']:g} for data like these (scale on a count; 95 % error of a frequency):",
        ]
        for row in f["noise"]:
            if row["scale"] is None:
                text.append(f"  {row['mechanism']:<12}not applicable: {row['reason']}")
            else:
                note = "" if find_mechanism(row["mechanism"]).private else "  NOT PRIVATE for correlated records"
                text.append(f"  {row['mechanism']:<12}{row['scale']:<14.6g}{row['error']:.3g}{note}")
        return "\n".join([*text, "", *_forgetting_lines(f)])


@takes_options(StepOptions)
def fit_records(
    source: Source,
    *,
    reading: Reading | None = None,
    states: States | None = None,
    smoothing: float | None = None,
    initial_distribution: str = STATIONARY,
    coverage: float | None = None,
    epsilon: float = 1.0,
    **steps: Unpack[StepOptions],
) -> Fit:
    """Count the transitions of a table and fit a chain to each group.

    Parameters
    ----------
    source : path, Series or DataFrame
        CSV or Parquet file, or a pandas object (a DatetimeIndex gives the times).
    reading : Reading, optional
        Columns and clock; the model keeps what is given here for releases that say nothing of it.
    states : States, optional
        How values become states; by default few different numbers and texts are categories, and other numbers are put
        into about 20 bins of a width of 1, 2 or 5 times a power of ten, of which those without a transition are joined
        to a neighbour. Edges that are given stay, whatever occurs between them.
    smoothing : float, optional
        Added to every transition count; by default 0 where that makes an ergodic chain and ½ elsewhere.
    initial_distribution : {"stationary", "any"}
    coverage : float, optional
        Θ is all chains within simultaneous confidence intervals of this coverage, not one chain a group; unless
        ``initial_distribution`` is "any", of the steps backwards as well, of one coverage together.
    epsilon : float
        For the summary.
    {options}

    Returns
    -------
    Fit

    Raises
    ------
    DataError
        The table is malformed, or too short to fit a chain to; the message names the line.
    ParameterError
        An option is out of range.
    """
    reading, states, epsilon = reading or Reading(), states or States(), check_epsilon(epsilon)
    check_type(reading, "reading", Reading)
    check_type(states, "states", States)
    step_seconds, split_after_seconds = steps.get("step_seconds"), steps.get("split_after_seconds")
    split_because = steps.get("split_because")
    if step_seconds is not None:
        step_seconds = check_whole(step_seconds, "step_seconds", 1, MOST_SECONDS)
    if split_after_seconds is not None:
        split_after_seconds = check_whole(split_after_seconds, "split_after_seconds", 0, MOST_SECONDS)
    check_split(split_after_seconds, split_because)
    if smoothing is not None:
        smoothing = check_positive(smoothing, "smoothing", or_zero=True)
    if coverage is not None:
        coverage = check_confidence(coverage, "coverage")
    records = open_records(source, reading)
    counted = count_records(records, states, step_seconds, split_after_seconds, split_because)
    scan, space, participants = counted.scan, counted.form.states, counted.participants
    step = counted.form.step_seconds
    transitions = pooled_transition_counts(participants)
    where = records.table.where
    if space.edges is not None and states.edges is None:  # given edges tell nothing of records, and so they stay
        space, participants, transitions = _join_empty(space, participants, transitions)
    if space.count < 2:
        raise DataError(
            f"{where}: all values are in one state, so there is nothing to release; choose narrower bins "
            "or another column"
        )
    observed = int(sum(p.observations for p in participants))
    first, last = stamp(records, scan.first), stamp(records, scan.last)
    form = RecordFormat(space, step, split_after_seconds, Fitted(first, last, observed), reading.given(), split_because)
    groups = list(dict.fromkeys(p.group for p in participants))
    by_group = [pooled_transition_counts(p for p in participants if p.group == g) for g in groups]
    chains, smoothed = _chains(where, by_group, smoothing, initial_distribution)
    family: Family = ChainFamily(chains)
    if coverage is not None:
        if len(groups) > 1:
            raise ParameterError("coverage is for one group; fit each group's records alone")
        family = confidence_family(transitions, coverage, backward=initial_distribution == STATIONARY)
    longest = max(length for p in participants for length in p.segment_lengths)
    facts = {
        "records": observed,
        "participants": len(participants),
        "groups": groups,
        "first": first,
        "last": last,
        "columns": records.columns,
        "unused_columns": records.unused,
        "step": _step_text(scan, step, step_seconds),
        "step_seconds": step,
        "missing_values": scan.missing,
        "missing_texts": dict(sorted(scan.missing_texts.items())),
        "missing_steps": sum(sum(p.segment_lengths) for p in participants) - observed,
        "segments": sum(len(p.segment_lengths) for p in participants),
        "longest_segment": longest,
        "split": "pauses do not split them"
        if split_after_seconds is None
        else f"a pause of more than {split_after_seconds} s starts another, taken to be independent: {split_because}",
        "states": space.count,
        "state_names": _listed(space.names),
        "states_from_data": states.edges is None and states.names is None,
        "transitions": int(transitions.sum()),
        "transition_kinds": int((transitions > 0).sum()),
        "chain": _describe(chains, groups, smoothed, coverage, initial_distribution),
        "mixing": _mixing(chains),
        "epsilon": epsilon,
        "noise": _noise(family, longest, epsilon, observed),
        "forgetting": _forgetting(chains, by_group, longest, epsilon),
    }
    sample = Sample(
        dataset=as_unicode(Path(where).stem) if where != "the table" else "table",
        label="file",
        description=f"{observed:,} records from {first} to {last}",
        step_seconds=step or 1,
        states=space.names,
        participants=participants,
        settings=form.to_dict(),
    )
    return Fit(sample, PublicModel(family, form), facts)


def _step_text(scan: Scan, step: int | None, asked: int | None) -> str:
    if step is None:
        return "no column of times: every row is one step after the row before"
    if asked is not None:
        return f"{asked} s, as asked for"
    return f"{step} s ({scan.waits[step] / scan.waits.total():.1%} of the steps)"


def _join_empty(
    space: StateSpace, participants: tuple[Participant, ...], transitions: NDArray[np.int64]
) -> tuple[StateSpace, tuple[Participant, ...], NDArray[np.int64]]:
    """Join bins that no transition enters or leaves to the bin below them (the first ones to the one above)."""
    assert space.edges is not None
    used = np.flatnonzero(transitions.sum(axis=0) + transitions.sum(axis=1))
    if len(used) == space.count or len(used) < 2:
        return space, participants, transitions
    home = np.maximum(np.searchsorted(used, np.arange(space.count), side="right") - 1, 0)
    k = len(used)
    joined = tuple(
        Participant(
            p.name,
            p.group,
            p.segment_lengths,
            np.bincount(home, weights=p.state_counts, minlength=k).astype(np.int64),
            p.transition_counts[np.ix_(used, used)],
        )
        for p in participants
    )
    return StateSpace.numeric([space.edges[j - 1] for j in used[1:]]), joined, transitions[np.ix_(used, used)]


def _chains(
    where: str, counts: list[NDArray[np.int64]], smoothing: float | None, start: str
) -> tuple[list[MarkovChain], float]:
    """One chain a group, and the smoothing that was used."""
    if smoothing is None:
        if all(c.sum(axis=1).all() for c in counts):
            chains = [_chain(where, c, 0.0, start) for c in counts if _irreducible(c)]
            if len(chains) == len(counts) and all(chain.is_aperiodic for chain in chains):
                return chains, 0.0
        smoothing = SMOOTHING
    return [_chain(where, c, smoothing, start) for c in counts], smoothing


def _irreducible(counts: NDArray[np.int64]) -> bool:
    return MarkovChain(counts / counts.sum(axis=1, keepdims=True), "any").is_irreducible


def _chain(where: str, counts: NDArray[np.int64], smoothing: float, start: str) -> MarkovChain:
    smoothed = counts + smoothing
    totals = smoothed.sum(axis=1, keepdims=True)
    if not totals.all():
        raise DataError(
            f"{where}: state {int(np.flatnonzero(totals == 0)[0]) + 1} is never left, so its row cannot be fitted; "
            "leave smoothing out or set it above 0"
        )
    try:
        return MarkovChain(smoothed / totals, start)
    except ChainError as error:
        raise DataError(f"{where}: {error}; leave smoothing out or set it above 0") from error


# -- how much it forgets ---------------------------------------------------------------------------------


def _forgetting(
    chains: list[MarkovChain], counts: list[NDArray[np.int64]], length: int, epsilon: float
) -> list[dict[str, Any]]:
    """Forgetting families that the chains lie in, as fitted and with confidence, and their noise on a count."""
    steps = [m for m in STEPS if m < length]
    each = 1 - (1 - CONFIDENCE) / len(counts)
    sure = [overlaps_from_counts(c, steps, each) for c in counts] if steps else []
    rows = []
    for i, m in enumerate(steps):
        fitted = forgetting(ChainFamily(chains), m)
        scale = None
        if fitted.overlap > 0:
            needed = compute_scale("leakage", fitted.family(), length, epsilon).noise_scale(1.0)
            scale = count_scale(needed) if needed < LARGEST / 4 else None
        rows.append({"steps": m, "overlap": fitted.overlap, "sure": min(s[i].overlap for s in sure), "scale": scale})
    return rows


def _forgetting_lines(facts: dict[str, Any]) -> list[str]:
    """Which forgetting families to choose from, for people."""
    rows = [row for row in facts["forgetting"] if row["scale"] is not None and row["overlap"] >= 0.001]
    if not rows:
        return ["forgetting  no number of steps looked at makes the laws given any two states overlap"]
    text = [
        "forgetting: overlap of the laws so many steps from any two states, ahead and behind; choose one, less a",
        f"margin, for releases of other data (forgets); scale on a count at epsilon = {facts['epsilon']:g}:",
        f"  {'steps':<8}{'overlap':<10}{f'{CONFIDENCE:.0%} sure':<10}scale",
    ]
    text += [f"  {r['steps']:<8}{_three(r['overlap']):<10}{_three(r['sure']):<10}{r['scale']:.6g}" for r in rows]
    if not any(row["sure"] for row in rows):
        text.append("  none is sure: a state that is rarely left may last for all the counts say; merge such states")
    return text


def _three(overlap: float) -> str:
    """Three digits, rounded down."""
    return f"{math.floor(overlap * 1000) / 1000:.3f}"


# -- the summary -----------------------------------------------------------------------------------------


def _taken(facts: dict[str, Any]) -> str:
    texts = [repr(text) for text in facts["missing_texts"]]
    if not texts:
        return " empty"
    return f" ({' and '.join(texts)} were taken for missing: name them as states if they are some)"


def _read_from(facts: dict[str, Any]) -> str:
    if not facts["states_from_data"]:
        return ""
    return " (read from the data; give states or edges where a release must not tell of them)"


def _listed(names: tuple[str, ...]) -> str:
    return ", ".join(names if len(names) <= 8 else (*names[:4], "…", *names[-2:]))


def _describe(
    chains: list[MarkovChain], groups: list[str], smoothing: float, coverage: float | None, start: str
) -> str:
    if coverage is not None:
        ways = "any start" if start == ANY else "forwards and backwards, if they are stationary"
        return f"all chains within {coverage:.0%} simultaneous confidence intervals, {ways}"
    ergodic = all(chain.is_aperiodic for chain in chains)
    fitted = "maximum likelihood" if not smoothing else f"counts + {smoothing:g} (maximum likelihood is not ergodic)"
    many = "" if len(chains) == 1 else f"one a group ({', '.join(groups)}), "
    return f"{many}{fitted}; {'ergodic' if ergodic else 'NOT ERGODIC: set smoothing to 0.5'}"


def _mixing(chains: list[MarkovChain]) -> str:
    if not all(chain.is_aperiodic for chain in chains):
        return "no eigengap, for the chain is not ergodic"
    gap = min(chain.eigengap("general") for chain in chains)
    least = min(float(chain.stationary_distribution.min()) for chain in chains)
    return f"eigengap {gap:.4g}, smallest stationary probability {least:.3g}"


def _noise(family: Family, length: int, epsilon: float, records: int) -> list[dict[str, Any]]:
    rows = []
    afford(
        sum(scale_work(name, family, length) for name in histogram_mechanisms()),
        "to say how much noise the chain needs",
        "give fewer states",
    )
    for needed in all_scales(family, length, epsilon):
        row: dict[str, Any] = {"mechanism": needed.mechanism, "scale": None, "error": None, "reason": needed.reason}
        if needed.scale is not None:
            try:
                scale = count_scale(needed.scale)
                row |= {"scale": scale, "error": DiscreteLaplace(scale).quantile(0.95) / records}
            except ParameterError as error:
                row["reason"] = str(error)
        rows.append(row)
    return rows
