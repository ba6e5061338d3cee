"""A cohort: participants with a chain each, taken one at a time, in chunks that separate machines can work on.

An index says where the participants are; each chunk streams its range of them to rows on disk; gathering streams
the chunks to one table and to counts on a fixed grid. So no job's memory grows with the number of participants.
All random numbers are keyed by the participant: the number of chunks changes no byte of the gathered files.
"""

from __future__ import annotations

import csv
import io
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, TypeAlias
from zlib import crc32

import numpy as np
import pandas as pd
from tqdm import tqdm

from pufferflow._files import open_atomic, sha256
from pufferflow.coupling import lower_bound
from pufferflow.errors import ChainError, DataError
from pufferflow.markov import MarkovChain, fit_chain
from pufferflow.mechanisms import compute_scale
from pufferflow.records.sample import Participant, Sample, load_sample
from pufferflow.studies.scaling import RESULT_COLUMNS, scale_row
from pufferflow.studies.tidy import frame, write_table

INDEX_COLUMNS = ["sample", "dataset", "label", "bins", "participants", "sha256"]
KEYS = ["dataset", "label", "mechanism", "epsilon"]
COLUMNS = [
    "dataset",
    "label",
    "group",
    "participant",
    "mechanism",
    "epsilon",
    "bins",
    "observations",
    "lipschitz",
    "length",
    *RESULT_COLUMNS,
    "expected_error",
    "released_error",
    "lower_bound",
    "least_error",
]
SUMMARY_COLUMNS = [
    *KEYS,
    "participants",
    "applicable",
    "mean_error",
    "mean_released_error",
    "standard_error",
    "error_q05",
    "error_q50",
    "error_q95",
    "largest_error",
    "gap_q50",
    "gap_q95",
]
DISTRIBUTION_COLUMNS = [*KEYS, "quantity", "value", "participants"]

_Key: TypeAlias = tuple[str, str, str, float]
"""Values of :data:`KEYS`."""

LOWER_BOUND = "lower-bound"
"""Stands where a mechanism's name does, for the least error any Laplace noise could have."""

PER_DECADE = 200
"""Grid points in a factor of ten: a quantile is rounded up by less than 1.2 %."""


@dataclass(frozen=True)
class Member:
    """One participant of a cohort; ``chain`` is None where none can be fitted, and ``reason`` says why."""

    name: str
    group: str
    bins: int
    lengths: tuple[int, ...]
    observations: int
    chain: MarkovChain | None
    reason: str = ""


# --- where the participants are ------------------------------------------------------------------


def index_cohort(samples: Sequence[str | Path], simulated: Mapping[str, Any], path: str | Path) -> None:
    """Write the index of a cohort: one row a sample file, or one for all simulated participants.

    Parameters
    ----------
    samples : sequence of path
        Sample files, in the order of the participants; none means a simulated cohort.
    simulated : mapping
        Settings of a simulated cohort; ``participants`` and ``states`` are used.
    path : path
        The index.

    Raises
    ------
    DataError
        A file is not a sample, or the samples are not of one data set.
    """
    if not samples:
        write_rows(
            [["", "synthetic", "synthetic", simulated["states"], simulated["participants"], ""]], INDEX_COLUMNS, path
        )
        return

    def rows() -> Iterator[list[Any]]:
        first: Sample | None = None
        for file in samples:
            sample = load_sample(file)
            first = first or sample
            for what in ("dataset", "label", "states"):
                if getattr(sample, what) != getattr(first, what):
                    raise DataError(
                        f"sample {file} has {what} {getattr(sample, what)!r}, but {samples[0]} has "
                        f"{getattr(first, what)!r}; a cohort is of one data set, so give each its own folder"
                    )
            yield [str(file), sample.dataset, sample.label, len(sample.states), len(sample.participants), _digest(file)]

    write_rows(rows(), INDEX_COLUMNS, path)


def _digest(sample: str | Path) -> str:
    return sha256(Path(sample).read_bytes())


def chunk_range(participants: int, chunk: int, chunks: int) -> tuple[int, int]:
    """First participant of a chunk (from 1 to ``chunks``) and the one after its last, counted from 0."""
    return participants * (chunk - 1) // chunks, participants * chunk // chunks


def members(
    index: str | Path, chunk: int, chunks: int, simulated: Mapping[str, Any], fit: Mapping[str, Any], seed: int
) -> Iterator[Member]:
    """Yield the participants of a chunk, one at a time.

    Parameters
    ----------
    index : path
        File written by :func:`index_cohort`.
    chunk, chunks : int
        Which part of how many, from 1.
    simulated : mapping
        How chains are drawn, see :func:`simulated_member`.
    fit : mapping
        ``smoothing`` and ``initial_distribution`` of fitted chains.
    seed : int

    Raises
    ------
    DataError
        The index is not one, or a sample has changed since it was written.
    """
    total = sum(int(row["participants"]) for row in read_rows(index, INDEX_COLUMNS))
    first, last = chunk_range(total, chunk, chunks)
    before = 0
    for row in read_rows(index, INDEX_COLUMNS):
        count = int(row["participants"])
        inside = range(max(first - before, 0), min(last - before, count))
        if inside and row["sample"]:
            sample = load_sample(row["sample"])
            if _digest(row["sample"]) != row["sha256"]:
                raise DataError(f"sample {row['sample']} has changed since {index} was made; run snakemake again")
            for participant in islice(sample.participants, inside.start, inside.stop):
                yield sample_member(participant, len(sample.states), fit)
        elif inside:
            for number in inside:
                yield simulated_member(number + 1, simulated, fit["initial_distribution"], seed)
        before += count


def sample_member(participant: Participant, bins: int, fit: Mapping[str, Any]) -> Member:
    """Return a participant of a sample with the chain of their own record."""
    chain, reason = None, ""
    try:
        chain = fit_chain(participant.transition_counts, **fit)[0]
    except (DataError, ChainError) as error:
        reason = str(error)
    return Member(
        participant.name,
        participant.group,
        bins,
        participant.segment_lengths,
        participant.observations,
        chain,
        reason,
    )


def simulated_member(number: int, settings: Mapping[str, Any], initial_distribution: str, seed: int) -> Member:
    """Draw the chain and the length of the record of participant ``number``.

    The transition matrix is s·I + (1 − s)·D: the rows of D are uniform on the simplex of ``states`` states, s is
    uniform from 0 to ``persistence``. The length is log-uniform from ``shortest`` to ``longest``. The chain is taken
    as known: Θ holds it alone.
    """
    states = settings["states"]
    rng = _generator(seed, "cohort/chains", str(number))
    stay = settings["persistence"] * rng.random()
    matrix = stay * np.eye(states) + (1 - stay) * rng.dirichlet(np.ones(states), size=states)
    low, high = math.log(settings["shortest"]), math.log(settings["longest"] + 1)
    length = min(int(math.exp(low + (high - low) * rng.random())), settings["longest"])
    length = max(length, settings["shortest"])
    return Member(str(number), "", states, (length,), length, MarkovChain(matrix, initial_distribution))


def _generator(seed: int, purpose: str, name: str) -> np.random.Generator:
    """Random stream of one participant; the whole name is the key, so that no two of millions share one."""
    return np.random.default_rng([seed, crc32(purpose.encode()), *name.encode()])


# --- one chunk -----------------------------------------------------------------------------------


def measure(
    index: str | Path,
    people: Iterable[Member],
    epsilons: Sequence[float],
    mechanisms: Sequence[str],
    options: Mapping[str, Mapping[str, Any]],
    least: bool,
    seed: int,
) -> Iterator[list[Any]]:
    """Yield one row of :data:`COLUMNS` for each participant, mechanism and ε.

    The query is the histogram of relative frequencies of the participant's record, 2/n-Lipschitz.
    ``expected_error`` is its mean L1 error, ``released_error`` that of one release, ``lower_bound`` the scale below
    which no Laplace noise is private (where ``least``) and ``least_error`` the mean error at it.
    """
    head = next(iter(read_rows(index, INDEX_COLUMNS)))
    for person in tqdm(people, desc="cohort", unit="participant", disable=None, leave=False):
        place: dict[str, Any] = {
            "dataset": head["dataset"],
            "label": head["label"],
            "group": person.group,
            "participant": person.name,
            "bins": person.bins,
            "observations": person.observations,
            "lipschitz": 2 / person.observations if person.observations else None,
            "length": max(person.lengths, default=None),
        }
        bounds = {epsilon: _lower_bound(person, epsilon) if least else None for epsilon in epsilons}
        for mechanism in mechanisms:
            who = f"{head['dataset']}/{person.group}/{person.name}"
            # the same unit noise for every ε, as everywhere
            unit = float(np.abs(_generator(seed, f"cohort/{mechanism}", who).laplace(size=person.bins)).sum())
            for epsilon in epsilons:
                row = (
                    place
                    | {"mechanism": mechanism, "epsilon": float(epsilon)}
                    | _scale(person, mechanism, epsilon, options)
                )
                if row["scale"] is not None:
                    row["expected_error"] = person.bins * row["scale"] * row["lipschitz"]
                    row["released_error"] = unit * row["scale"] * row["lipschitz"]
                bound = bounds[epsilon]
                if bound is not None:
                    row["lower_bound"] = bound
                    row["least_error"] = person.bins * bound * row["lipschitz"]
                yield [row.get(name) for name in COLUMNS]


def measure_chunk(index: str, path: str, chunk: str, chunks: int, **settings: Any) -> None:
    """Write the rows of :func:`measure` for the participants of a chunk; ``settings`` as its study gives them."""
    fit, seed, simulated = settings["fit"], settings["seed"], settings["simulated"]
    people = members(index, int(chunk), chunks, simulated, fit, seed)
    epsilons, mechanisms, options = settings["epsilons"], settings["mechanisms"], settings["options"]
    rows = measure(index, people, epsilons, mechanisms, options, settings["lower_bound"], seed)
    write_rows(rows, COLUMNS, path)


def _scale(person: Member, mechanism: str, epsilon: float, options: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    if person.chain is None:
        return {"scale": None, "status": "not applicable", "reason": person.reason}
    return scale_row(compute_scale(mechanism, person.chain, person.lengths, epsilon, **options.get(mechanism, {})))


def _lower_bound(person: Member, epsilon: float) -> float | None:
    if person.chain is None:
        return None
    try:
        return lower_bound(person.chain, max(person.lengths), epsilon).scale
    except ChainError:
        return None


# --- all chunks ----------------------------------------------------------------------------------


@dataclass
class _Distribution:
    """What is kept of a stream of numbers: how many, mean, variance, extremes, and counts on a logarithmic grid."""

    size: int = 0
    mean: float = 0.0
    squares: float = 0.0
    largest: float = 0.0
    counts: Counter[float] = field(default_factory=Counter)

    def add(self, value: float) -> None:
        self.size += 1
        step = value - self.mean
        self.mean += step / self.size
        self.squares += step * (value - self.mean)
        self.largest = max(self.largest, value)
        self.counts[grid_point(value)] += 1

    def standard_error(self) -> float | None:
        return math.sqrt(self.squares / (self.size - 1) / self.size) if self.size > 1 else None

    def quantile(self, share: float) -> float | None:
        """Smallest grid point that at least this share of the numbers does not exceed; never above the largest."""
        below = 0
        for point in sorted(self.counts):
            below += self.counts[point]
            if below >= share * self.size:
                return min(point, self.largest)
        return None


def grid_point(value: float) -> float:
    """Smallest 10^(i / :data:`PER_DECADE`) that is not below ``value``; 0 for 0."""
    if value <= 0:
        return 0.0
    exponent = math.ceil(PER_DECADE * math.log10(value)) - 1
    while 10 ** (exponent / PER_DECADE) < value:
        exponent += 1
    return float(10 ** (exponent / PER_DECADE))


def gather(chunks: Sequence[str | Path], table: str | Path, summary: str | Path, distribution: str | Path) -> None:
    """Join the chunks to one table, in the order of the participants, and count what they hold.

    Parameters
    ----------
    chunks : sequence of path
        Files of rows of :data:`COLUMNS`, first chunk first.
    table : path
        All rows.
    summary : path
        One row a mechanism and ε: participants, mean errors, quantiles (rounded up to the grid). The rows of
        :data:`LOWER_BOUND` are of ``least_error``.
    distribution : path
        The counts behind the quantiles of ``expected_error`` and of ``gap``, scale / lower bound.

    Raises
    ------
    DataError
        A chunk is not one, or there is no participant.
    """
    distributions: dict[_Key, dict[str, _Distribution]] = {}
    people: Counter[_Key] = Counter()

    def counted() -> Iterator[list[str]]:
        first = None
        for path in chunks:
            for row in read_rows(path, COLUMNS):
                place, epsilon = (row["dataset"], row["label"]), float(row["epsilon"])
                key = (*place, row["mechanism"], epsilon)
                people[key] += 1
                _count(distributions.setdefault(key, {}), row)
                # the bound is in the row of every mechanism: count it once
                first = first or row["mechanism"]
                if row["lower_bound"] and row["mechanism"] == first:
                    least = distributions.setdefault((*place, LOWER_BOUND, epsilon), {})
                    least.setdefault("expected_error", _Distribution()).add(float(row["least_error"]))
                yield list(row.values())

    write_rows(counted(), COLUMNS, table)
    if not people:
        raise DataError("the cohort has no participant; check experiments.cohort in the settings")
    order = sorted(distributions, key=lambda key: key[3])
    write_table(frame((_summary(key, distributions[key], people) for key in order), SUMMARY_COLUMNS), summary)
    counts = [
        [*key, quantity, point, kept.counts[point]]
        for key in order
        for quantity, kept in distributions[key].items()
        if quantity in ("expected_error", "gap")
        for point in sorted(kept.counts)
    ]
    write_table(pd.DataFrame(counts, columns=DISTRIBUTION_COLUMNS), distribution)


def _count(kept: dict[str, _Distribution], row: Mapping[str, str]) -> None:
    if not row["scale"]:
        return
    for quantity in ("expected_error", "released_error"):
        kept.setdefault(quantity, _Distribution()).add(float(row[quantity]))
    if row["lower_bound"] and float(row["lower_bound"]) > 0:
        kept.setdefault("gap", _Distribution()).add(float(row["scale"]) / float(row["lower_bound"]))


def _summary(key: _Key, kept: Mapping[str, _Distribution], people: Mapping[_Key, int]) -> dict[str, Any]:
    empty = _Distribution()
    error, released, gap = (kept.get(name, empty) for name in ("expected_error", "released_error", "gap"))
    return dict(zip(KEYS, key, strict=True)) | {
        "participants": people.get(key, error.size),
        "applicable": error.size,
        "mean_error": error.mean if error.size else None,
        "mean_released_error": released.mean if released.size else None,
        "standard_error": released.standard_error(),
        "error_q05": error.quantile(0.05),
        "error_q50": error.quantile(0.5),
        "error_q95": error.quantile(0.95),
        "largest_error": error.largest if error.size else None,
        "gap_q50": gap.quantile(0.5),
        "gap_q95": gap.quantile(0.95),
    }


# --- rows on disk --------------------------------------------------------------------------------


def write_rows(rows: Iterable[Sequence[Any]], columns: Sequence[str], path: str | Path) -> None:
    """Write rows as they come, in one step, in the format of ``tidy.write_table``."""
    with open_atomic(path) as stream:
        text = io.TextIOWrapper(stream, encoding="utf-8", newline="")
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(rows)
        text.flush()
        text.detach()


def read_rows(path: str | Path, columns: Sequence[str]) -> Iterator[dict[str, str]]:
    """Yield the rows of such a file, one at a time.

    Raises
    ------
    DataError
        The file is missing or has other columns.
    """
    try:
        with open(path, encoding="utf-8", newline="") as stream:
            reader = csv.DictReader(stream)
            if reader.fieldnames != list(columns):
                raise DataError(f"{path} is not a table of a cohort; run the rule that makes it")
            yield from reader
    except OSError as error:
        raise DataError(f"{path}: {error.strerror or error}; run the rule that makes it") from error
