"""From a table to a sample and a chain that a later release may use."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pufferflow._checks import check_confidence, check_epsilon, check_positive, check_type, check_whole
from pufferflow._numbers import shortest
from pufferflow._texts import as_unicode
from pufferflow.errors import ChainError, DataError, ParameterError
from pufferflow.interval_family import confidence_family
from pufferflow.markov import STATIONARY, ChainFamily, Family, MarkovChain
from pufferflow.mechanisms import find_mechanism
from pufferflow.models import PublicModel, write_model
from pufferflow.publishing.calibration import all_scales
from pufferflow.publishing.noise import DiscreteLaplace, count_scale
from pufferflow.records.format import MOST_SECONDS, MOST_STATES, Fitted, RecordFormat, StateSpace, check_split
from pufferflow.records.reading import Reading
from pufferflow.records.rows import Chunk, Records, missing_texts, open_records, stamp
from pufferflow.records.sample import Participant, Sample
from pufferflow.records.tables import Source
from pufferflow.records.tally import Tally, add_waits, common_step

DEFAULT_BINS = 20
FEW_NUMBERS = 12
"""A column of so few different numbers counts as categories, unless bins are asked for."""
MOST_NAMES = 200
SMOOTHING = 0.5
"""Added to every transition count where maximum likelihood gives no ergodic chain (Krichevsky and Trofimov)."""


@dataclass(frozen=True)
class States:
    """How to make states; at most one of the first four is given, none guesses.

    Attributes
    ----------
    bins : int or None
        Numeric bins of equal width between the smallest and the largest value.
    width : float or None
        Numeric bins of this width, from a multiple of it.
    edges : tuple of float or None
        Edges between numeric bins.
    names : tuple of str or None
        The categories.
    top : int or None
        Of the categories that occur keep this many, the most frequent; the others become "other".
    other : bool
        Give categories that are not listed the state "other".
    """

    bins: int | None = None
    width: float | None = None
    edges: tuple[float, ...] | None = None
    names: tuple[str, ...] | None = None
    top: int | None = None
    other: bool = False

    def __post_init__(self) -> None:
        given = [n for n in ("bins", "width", "edges", "names") if getattr(self, n) is not None]
        if len(given) > 1:
            raise ParameterError(f"{' and '.join(given)} say different things; give one of them")
        if self.numeric and (self.top is not None or self.other):
            raise ParameterError(f"top and other are for categories; leave {given[0]} out, or them")
        if self.bins is not None:
            check_whole(self.bins, "bins", 2, MOST_STATES)
        if self.width is not None:
            check_positive(self.width, "width")
        if self.top is not None:
            check_whole(self.top, "top", 1, MOST_STATES - 1)
        if self.edges is not None:
            StateSpace.numeric(self.edges)
        if self.names is not None:
            StateSpace.categories(self.names, other=self.other)

    @property
    def numeric(self) -> bool:
        """Whether bins of numbers are asked for."""
        return self.bins is not None or self.width is not None or self.edges is not None

    @property
    def categorical(self) -> bool:
        """Whether categories are asked for."""
        return self.names is not None or self.top is not None or self.other


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
            ("states", f"{f['states']}: {f['state_names']}"),
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
        return "\n".join(text)


@dataclass(repr=False)
class _Scan:
    """What a first look at all rows tells."""

    rows: int = 0
    first: int = 0
    last: int = 0
    low: float = math.inf
    high: float = -math.inf
    stray: tuple[int, object] | None = None
    """Row and value of the first that is no number."""
    missing: int = 0

    def __post_init__(self) -> None:
        self.missing_texts: Counter[str] = Counter()
        self.names: Counter[str] = Counter()
        self.waits: Counter[int] = Counter()
        self.late: list[tuple[int, Chunk]] = []


def fit_records(
    source: Source,
    *,
    reading: Reading | None = None,
    states: States | None = None,
    step_seconds: int | None = None,
    split_after_seconds: int | None = None,
    split_because: str | None = None,
    smoothing: float | None = None,
    initial_distribution: str = STATIONARY,
    coverage: float | None = None,
    epsilon: float = 1.0,
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
        into 20 bins. Bins without a transition are joined to a neighbour.
    step_seconds : int, optional
        Time step; by default the most common difference of times.
    split_after_seconds : int, optional
        A longer pause starts a new, independent segment; by default none does.
    split_because : str, optional
        Why what comes after such a pause is independent of what came before, which a release states.
    smoothing : float, optional
        Added to every transition count; by default 0 where that makes an ergodic chain and ½ elsewhere.
    initial_distribution : {"stationary", "any"}
    coverage : float, optional
        Θ is all chains within simultaneous confidence intervals of this coverage, not one chain a group.
    epsilon : float
        For the summary.

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
    scan = _scan(records, states)
    step, step_text = _step(records, scan, step_seconds)
    space = _space(records, scan, states)
    form = RecordFormat(space, step, split_after_seconds, split_because=split_because)
    tally = Tally(form, transitions=True)
    tally.read(records)
    participants = tally.participants(records)
    transitions = np.sum([p.transition_counts for p in participants], axis=0)
    where = records.table.where
    if not transitions.any():
        raise DataError(
            f"{where}: {scan.rows:,} records, but no two that are one step ({step or 1} s) apart, so no transition to "
            "count; give longer records or another step"
        )
    if space.edges is not None:
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
    by_group = [np.sum([p.transition_counts for p in participants if p.group == g], axis=0) for g in groups]
    chains, smoothed = _chains(where, by_group, smoothing, initial_distribution)
    family: Family = ChainFamily(chains)
    if coverage is not None:
        if len(groups) > 1:
            raise ParameterError("coverage is for one group; fit each group's records alone")
        family = confidence_family(transitions, coverage)
    longest = max(length for p in participants for length in p.segment_lengths)
    facts = {
        "records": observed,
        "participants": len(participants),
        "groups": groups,
        "first": first,
        "last": last,
        "columns": records.columns,
        "unused_columns": records.unused,
        "step": step_text,
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
        "transitions": int(transitions.sum()),
        "transition_kinds": int((transitions > 0).sum()),
        "chain": _describe(chains, groups, smoothed, coverage),
        "mixing": _mixing(chains),
        "epsilon": epsilon,
        "noise": _noise(family, longest, epsilon, observed),
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


def _scan(records: Records, states: States) -> _Scan:
    scan = _Scan()
    declared = None if states.names is None else StateSpace.categories(states.names, other=states.other)
    for chunk in records.chunks("looking"):
        add_waits(scan.waits, chunk, records)
        low, high = int(chunk.seconds.min()), int(chunk.seconds.max())
        scan.first, scan.last = (min(scan.first, low), max(scan.last, high)) if scan.rows else (low, high)
        scan.rows += len(chunk.rows)
        if states.numeric:
            numbers, _ = records.numbers(chunk, finite=True)
            _miss(scan, chunk, np.isnan(numbers))
            _range(scan, numbers)
            continue
        codes, names = records.names(chunk, declared)
        _miss(scan, chunk, codes < 0)
        if not states.categorical:
            numbers, bad = records.numbers(chunk, strict=False, finite=True)
            _range(scan, numbers)
            if bad.any() and scan.stray is None:
                at = int(bad.argmax())
                scan.stray = int(chunk.rows[at]), chunk.value.iloc[at]
        if len(scan.names) <= max(MOST_STATES, MOST_NAMES):
            seen = np.bincount(codes[codes >= 0], minlength=len(names))
            scan.names.update({name: int(n) for name, n in zip(names, seen, strict=True) if n})
    if not scan.rows:
        raise DataError(f"{records.table.where}: a header and no data; check that its download or export finished")
    if scan.missing == scan.rows:
        raise DataError(f"{records.table.where}: all {scan.rows:,} values are missing; check the column of the values")
    return scan


def _miss(scan: _Scan, chunk: Chunk, missing: NDArray[np.bool_]) -> None:
    scan.missing += int(missing.sum())
    if len(scan.missing_texts) <= MOST_NAMES:
        scan.missing_texts.update(missing_texts(chunk.value[missing]))


def _range(scan: _Scan, numbers: NDArray[np.float64]) -> None:
    finite = numbers[np.isfinite(numbers)]
    if finite.size:
        scan.low, scan.high = min(scan.low, float(finite.min())), max(scan.high, float(finite.max()))


def _step(records: Records, scan: _Scan, asked: int | None) -> tuple[int | None, str]:
    if records.columns["time"] is None:
        if asked is not None:
            raise ParameterError("step is for records with times; name their column (time)")
        return None, "no column of times: every row is one step after the row before"
    if asked is not None:
        return asked, f"{asked} s, as asked for"
    step = common_step(scan.waits, records)
    share = scan.waits[step] / scan.waits.total()
    return step, f"{step} s ({share:.1%} of the steps)"


def _space(records: Records, scan: _Scan, states: States) -> StateSpace:
    where = records.table.where
    if states.edges is not None:
        return StateSpace.numeric(states.edges)
    if states.names is not None:
        return StateSpace.categories(states.names, other=states.other)
    names, numbers = scan.names, not states.categorical and scan.stray is None
    short = {name: shortest(name) for name in names}
    if None not in short.values():
        names = Counter[str]()
        for name, count in scan.names.items():
            names[short[name] or name] += count
    few = len(names) <= (MOST_STATES if states.categorical else MOST_NAMES)
    if states.numeric or (numbers and len(names) > FEW_NUMBERS):
        return StateSpace.numeric(_edges(where, scan, states))
    if states.top is not None:
        kept = [name for name, _ in sorted(names.items(), key=lambda item: (-item[1], item[0]))[: states.top]]
        return StateSpace.categories(_sorted(kept), other=states.other or len(names) > states.top)
    if not states.categorical and scan.stray is not None:
        row, value = scan.stray
        if 2 * sum(text is not None for text in short.values()) > len(short):
            what = "is no number as most others are; mend it, leave it empty if missing, or name the states if they are"
            raise records.fail(row, "value", value, f"{what} categories (states, top or other)")
        if not few:
            raise records.fail(row, "value", value, "is neither a number nor one of few categories")
    if not few:
        raise DataError(
            f"{where}: more than {MOST_STATES} different categories; keep the most frequent ones only (top)"
        )
    return StateSpace.categories(_sorted(names), other=states.other)


def _sorted(names: Any) -> list[str]:
    """Numbers by value, other names by letter."""
    try:
        return sorted(names, key=float)
    except ValueError:
        return sorted(names)


def _edges(where: str, scan: _Scan, states: States) -> list[float]:
    low, high = scan.low, scan.high
    if not low < high:
        raise DataError(f"{where}: all values are the same, so there is one state and nothing to release")
    if states.width is not None:
        width = states.width
        start, stop = math.floor(low / width) + 1, math.floor(high / width)
        if stop - start + 2 > MOST_STATES:
            raise ParameterError(f"width {width:g} makes {stop - start + 2} bins; choose a larger one")
        edges = [round(j * width, 12) for j in range(start, stop + 1)]
        if not edges:
            raise DataError(f"{where}: all values lie in one bin of width {width:g}; choose a smaller width")
        return edges
    bins = states.bins or DEFAULT_BINS
    width = (high - low) / bins
    if not (math.isfinite(width) and width > 0):
        raise DataError(f"{where}: the values reach from {low:g} to {high:g}, too far for equal bins; give edges")
    digits = 2 - math.floor(math.log10(width))
    edges = [round(low + j * width, digits) for j in range(1, bins)]
    if any(b <= a for a, b in pairwise(edges)):
        raise DataError(f"{where}: the values differ too little for {bins} bins; give fewer bins")
    return edges


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


# -- the summary -----------------------------------------------------------------------------------------


def _taken(facts: dict[str, Any]) -> str:
    texts = [repr(text) for text in facts["missing_texts"]]
    if not texts:
        return " empty"
    return f" ({' and '.join(texts)} were taken for missing: name them as states if they are some)"


def _listed(names: tuple[str, ...]) -> str:
    return ", ".join(names if len(names) <= 8 else (*names[:4], "…", *names[-2:]))


def _describe(chains: list[MarkovChain], groups: list[str], smoothing: float, coverage: float | None) -> str:
    if coverage is not None:
        return f"all chains within {coverage:.0%} simultaneous confidence intervals, any start"
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
