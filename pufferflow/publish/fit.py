"""From a table to a chain for releases of *other* data: a fit without noise, from public readings.

Each group's chain is the maximum likelihood estimate; if that is not ergodic, ½ is added to all
counts (Krichevsky and Trofimov). The fit contains confidential counts; for confidential readings
use :func:`pufferflow.fit_privately`.
"""

import math
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pufferflow._util.checks import check_choice, check_confidence
from pufferflow._util.files import PathLike
from pufferflow._util.types import Ints
from pufferflow.accounting.entries import Paid
from pufferflow.errors import DataError, ParameterError
from pufferflow.models.chain import ANY, STATIONARY, MarkovChain
from pufferflow.models.estimation import confidence_family
from pufferflow.models.families import ChainFamily, Family
from pufferflow.models.files import PublicModel, write_model
from pufferflow.models.mixing import mixing_from_counts, mixing_of
from pufferflow.publish.request import TableOptions
from pufferflow.records.counts import path_counts, spans
from pufferflow.records.options import made_from, shows, takes_options
from pufferflow.records.read import read, stamp
from pufferflow.records.schema import Fitted
from pufferflow.records.table import Source
from pufferflow.records.units import text_of

SMOOTHING = 0.5
"""Added to every transition count if the maximum likelihood estimate is not ergodic."""
CONFIDENCE = 0.95
"""Confidence with which the lower bounds of all overlaps hold simultaneously."""
STEPS = (1, 2, 5, 10, 20, 50, 100, 200)
TIMES = (60, 300, 600, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200, 86_400, 172_800, 604_800)
"""Steps and seconds for which the overlap is computed."""
MAX_STEPS, MAX_STATES, MIN_OVERLAP = 500, 200, 0.01
"""Limits of that computation: each step takes a product of matrices."""


@dataclass(frozen=True)
class FitOptions:
    """Assumptions of a fit."""

    start: str = shows(
        STATIONARY, "Whether the chain is stationary, or starts in any state.", "WHICH"
    )
    coverage: float | None = shows(
        None, "Assume all chains within confidence intervals of this coverage.", "P"
    )

    def __post_init__(self) -> None:
        check_choice(self.start, "start", (STATIONARY, ANY))
        if self.coverage is not None:
            check_confidence(self.coverage, "coverage")


@dataclass(frozen=True)
class Fit:
    """A fitted family; one without noise contains confidential counts.

    Attributes
    ----------
    model : PublicModel or None
        Θ and the schema of readings and states; None for a dry run.
    facts : dict of str
        The summary; that of a private fit is public, or computed from noisy counts.
    mixing : list of dict
        Mixing families that contain the chains, for a fit without noise: ``after``, ``steps``,
        ``overlap``, and the 95 % confidence ``bound`` of the overlap.
    warnings : tuple of str
        Remedies if the noise leaves the chain poorly determined.
    paid : Paid or None
        The entry of a private fit in the ledger.
    """

    model: PublicModel | None
    facts: dict[str, str]
    mixing: list[dict[str, Any]] = field(default_factory=list)
    warnings: tuple[str, ...] = ()
    paid: Paid | None = None

    @property
    def family(self) -> Family:
        """Θ of the model."""
        if self.model is None:
            raise ParameterError("this was a dry run, so there is no family; leave `dry_run` out")
        return self.model.family

    @property
    def is_private(self) -> bool:
        """Whether the fit is private."""
        records = None if self.model is None else self.model.records
        return records is None or records.fitted_privately is not None

    def __repr__(self) -> str:
        return f"Fit({self.facts if self.is_private else 'contains confidential counts'})"

    def save(self, path: PathLike) -> Path:
        """Write the model file; of a fit without noise only its owner may read it."""
        family, records = self.family, None if self.model is None else self.model.records
        return write_model(path, family, records, private=not self.is_private)

    def summary(self) -> str:
        """Return the facts as lines."""
        text = [f"{name:<13}{value}" for name, value in self.facts.items()]
        return "\n".join(text if self.is_private else [*text, "", *_mixing_lines(self.mixing)])


@takes_options(FitOptions, TableOptions)
def fit(source: Source, **options: Any) -> Fit:
    """Return the chain of each group of public readings, for releases of other data.

    Parameters
    ----------
    source : path, Series or DataFrame
    {options}

    Raises DataError: the table is malformed, or has no transition; the message names the line;
    ParameterError: an option is out of range, or the states are not given.

    Examples
    --------
    >>> import pandas as pd
    >>> import pufferflow as pf
    >>> found = pf.fit(pd.Series(list("aabbbabbaabab")), states=["a", "b"])
    >>> found.family.chains[0].transition_matrix.round(2).tolist()
    [[0.33, 0.67], [0.5, 0.5]]
    """
    how, table = made_from(options, FitOptions, TableOptions)
    schema = table.schema()
    if how.coverage is not None and schema.group is not None:
        raise ParameterError("coverage is for one group; fit the readings of each group alone")
    space = schema.states
    if space is None or space.count < 2:
        raise ParameterError("give at least two `states`, or `edges` between them such as 0.5,1")
    steps = read(source, schema)
    counts = path_counts(steps)
    if not counts.any():
        raise DataError(
            f"{steps.where}: no two readings of a participant are one step apart, so there is no "
            "transition to count; give longer records or another step"
        )
    # Θ
    chains, smoothing = _chains(counts, how.start)
    family: Family = ChainFamily(chains)
    if how.coverage is not None:
        both = how.start == STATIONARY
        family = confidence_family(counts.sum(axis=0), how.coverage, backward=both)
        described = f"all chains within {how.coverage:.0%} simultaneous confidence intervals"
    else:
        gap = min(chain.eigengap("general") for chain in chains)
        least = min(float(chain.stationary_distribution.min()) for chain in chains)
        added = f"counts + {smoothing:g}, as not ergodic" if smoothing else "maximum likelihood"
        described = f"{added}; eigengap {gap:.3g}, smallest stationary probability {least:.3g}"
    # facts
    _, lengths = spans(steps)
    extent = steps.extent or (0, int(steps.seconds.max()))
    first, last = (stamp(steps, time) for time in extent)
    columns = (f"{role} {name!r}" for role, name in steps.columns.items() if name is not None)
    names = space.names if space.count <= 8 else (*space.names[:4], "…", *space.names[-2:])
    n, people, k = len(steps.person), len(steps.people), space.count
    facts = {
        "readings": f"{n:,} of {people:,} participant(s), {first} to {last}",
        "columns": ", ".join(columns),
        "step": "each row" if steps.step_seconds is None else text_of(steps.step_seconds),
        "missing": f"{steps.rows - n:,} values; {lengths.sum() - n:,} steps between readings",
        "states": f"{k}: {', '.join(names)}",
        "transitions": f"{counts.sum():,}",
        "chain": described,
    }
    mixing = _mixing(chains, counts, int(lengths.max()), steps.step_seconds)
    fitted = Fitted(first, last, n)
    schema = replace(schema, step_seconds=steps.step_seconds, fitted=fitted)
    return Fit(PublicModel(family, schema), facts, mixing)


def _chains(counts: Ints, start: str) -> tuple[list[MarkovChain], float]:
    """Return one chain per group, and the addition to every count."""
    totals, added = counts.sum(axis=2, keepdims=True), SMOOTHING
    if totals.all():
        free = [MarkovChain(matrix, ANY) for matrix in counts / totals]
        added = 0.0 if all(c.is_aperiodic for c in free) else SMOOTHING
    rows = counts + added
    rows /= rows.sum(axis=2, keepdims=True)
    return [MarkovChain(matrix, start) for matrix in rows], added


def _mixing(
    chains: list[MarkovChain], counts: Ints, longest: int, step_seconds: int | None
) -> list[dict[str, Any]]:
    """Return mixing families that contain all chains: as fitted, and by a confidence bound."""
    if counts.shape[-1] > MAX_STATES:
        return []
    steps = list(STEPS)
    if step_seconds is not None:
        steps = sorted({1, *(t // step_seconds for t in TIMES if t % step_seconds == 0)})
    steps = [m for m in steps if m <= MAX_STEPS and m < longest]
    each = 1 - (1 - CONFIDENCE) / len(counts)
    bounds = [mixing_from_counts(group, steps, each) for group in counts]
    rows = []
    for i, m in enumerate(steps):
        overlap = mixing_of(ChainFamily(chains), m).overlap
        bound = min(group[i].overlap for group in bounds)
        if overlap >= MIN_OVERLAP:
            after = str(m) if step_seconds is None else text_of(m * step_seconds)
            rows.append({"after": after, "steps": m, "overlap": overlap, "bound": bound})
    return rows


def _mixing_lines(mixing: list[dict[str, Any]]) -> list[str]:
    """Return the mixing conditions that a release of other data may assume, as lines."""
    if not mixing:
        return [f"mixing: none after the times tried, or more than {MAX_STATES} states"]
    text = [
        "mixing: given any two states at one time, the distributions so much later (and earlier)",
        "overlap by at least this much. For releases of other data choose one, less a margin:",
    ]
    for row in mixing:
        overlap, bound = (math.floor(100 * row[key]) / 100 for key in ("overlap", "bound"))
        choice = f"--mixing {row['after']} {overlap:.2f}"
        text.append(f"  {choice:<24}{CONFIDENCE:.0%} confidence bound {bound:.2f}")
    return text
