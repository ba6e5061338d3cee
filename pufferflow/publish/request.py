"""The request of a release: every option once, with its default and its meaning."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, TypeAlias

from pufferflow._util.checks import (
    check_confidence,
    check_epsilon,
    check_text,
    check_type,
    check_whole,
    shown,
)
from pufferflow._util.files import PathLike
from pufferflow._util.numbers import written_number
from pufferflow.accounting.account import Level, level_of
from pufferflow.accounting.ledger import Ledger
from pufferflow.errors import ParameterError
from pufferflow.models.chain import MarkovChain
from pufferflow.models.families import Family, as_family
from pufferflow.models.files import PublicModel, read_public_model
from pufferflow.publish.statistics import parse_statistics
from pufferflow.records.options import hides, made_from, pays, reads, shows, writes
from pufferflow.records.schema import Reading, Schema
from pufferflow.records.states import StateSpace
from pufferflow.records.units import seconds_of

Theta: TypeAlias = "Family | MarkovChain | PublicModel | PathLike | Any"


@dataclass(frozen=True)
class TableOptions(Reading):
    """Options for reading a table; None means the value of the model, or the default."""

    step: str | int | None = reads(None, "Time between readings (default: most common).", "TIME")
    states: Sequence[str] | None = shows(None, "Names of the states.", "A,B,...")
    edges: Sequence[float] | None = shows(
        None, "Edges between states, or LOW:HIGH:WIDTH.", "A,B,..."
    )

    def schema(self, known: Schema | None = None) -> Schema:
        """Return the schema of the table, given that of a model.

        Raises ParameterError: both states and edges are given, or a model contradicts one.
        """
        if self.states is not None and self.edges is not None:
            raise ParameterError("`states` and `edges` exclude each other; give one of them")
        known, own = known or Schema(), dict[str, Any](self.given())
        if self.edges is not None:
            own["states"] = StateSpace.numeric(self.edges)
        elif self.states is not None:
            own["states"] = StateSpace.categories(self.states)
        if self.step is not None:
            own["step_seconds"] = seconds_of(self.step, "step")
        for name, given in (("states", "`states` or `edges`"), ("step_seconds", "`step`")):
            if name in own and getattr(known, name) not in (None, own[name]):
                raise ParameterError(f"the model contradicts {given}; leave it out")
        return replace(known, **own)


@dataclass(frozen=True)
class StatisticOptions:
    """Options for the published statistics."""

    statistics: Sequence[str] = shows(
        ("histogram",),
        "Any of histogram (the default), mean, sum, exceedances, durations, transitions, "
        "most-frequent, also in cells: mean-by-hour (weekday, month, group); several share noise.",
        "NAME",
    )
    bounds: Sequence[float] | None = shows(None, "Values are clipped to these.", ("LOW", "HIGH"))
    threshold: float | None = shows(None, "Threshold of exceedances and durations.", "VALUE")
    duration_edges: Sequence[int] | None = shows(None, "First lengths of duration bins.", "1,2,...")
    top: int | None = shows(None, "Number of states of most-frequent (default: 1).", "K")
    unit: str | None = shows(None, "Unit of the values, as shown.", "WORD")


@dataclass(frozen=True)
class GuaranteeOptions:
    """Options for the secrets and the adversary."""

    protect: str | int = hides(
        "reading",
        "What is protected: any one reading (the default), any window of time such as 1h or 7d (or "
        "so many readings), or everything of one participant.",
        "WHAT",
    )
    side_information: str = hides("none", "Adversary's readings: none (default) or any.", "WHICH")
    delta: float | None = hides(None, "Odds may change by more with this probability.", "DELTA")


@dataclass(frozen=True)
class ReleaseOptions:
    """Options for charging and writing a release."""

    accept_noise: bool = hides(False, "Publish although most would be noise.")
    fitted_to_others: bool = hides(False, "The chain was fitted to other participants.")
    ledger: Ledger | PathLike | None = pays(None, "Account in which all releases add up.", "FILE")
    limit: float | None = pays(None, "Limit of this level (default: epsilon).", "EPSILON")
    share: str | float = pays(1, "Fraction of the level's budget for this release.", "F")
    alone: bool = pays(False, "Promise epsilon for this release alone.")
    first: str | None = pays(None, "Readings from this time on.", "TIME")
    last: str | None = pays(None, "Readings before this time; a date is the whole day.", "TIME")
    longest: int | None = pays(None, "At most the first N readings of one participant.", "N")
    cohort: str | None = pays(None, "Name of these participants, if others have ledgers.", "NAME")
    new_values: bool = pays(False, "Enter a value column new to the ledger.")
    output: PathLike | None = writes(None, "New folder; publish/ is safe to publish.", "FOLDER")
    figure: bool = writes(True, "Draw the figure.")
    registry: str | None = writes(None, "Write OpenDP's registry.yaml for this curator.", "CURATOR")
    seed: int | None = writes(None, "Simulate with this seed: for planning, not private.", "SEED")
    dry_run: bool = writes(False, "Check everything, show errors; charge nothing.")


RECORDS = (StatisticOptions, GuaranteeOptions, ReleaseOptions, TableOptions)


class Request:
    """One release as requested; it reads no data.

    ``records`` is the schema of the model file of Θ, ``schema`` that of the table.

    Raises ParameterError: an option is out of range, or two contradict each other.
    """

    how: ReleaseOptions
    guarantee: GuaranteeOptions

    def __init__(self, theta: Theta | None, epsilon: float, options: dict[str, Any]) -> None:
        published, self.guarantee, self.how, table = made_from(options, *RECORDS)
        self.epsilon, self.delta = check_epsilon(epsilon), self.guarantee.delta or 0.0
        if self.guarantee.delta is not None:
            check_confidence(self.delta, "delta")
        for switch in (f.name for f in fields(self.how) if f.type == "bool"):
            check_type(getattr(self.how, switch), switch, bool)
        words = {"unit": published.unit, "cohort": self.how.cohort, "registry": self.how.registry}
        for name, word in words.items():
            check_text("" if word is None else word, name)
        if (limit := self.how.limit) is not None:
            if check_epsilon(limit) < self.epsilon:
                raise ParameterError(f"limit {limit:g} is below epsilon {self.epsilon:g}; raise it")
            if self.how.ledger is None or self.how.alone:
                raise ParameterError("`limit` is for promises in a ledger; leave it out")
        if self.how.longest is not None:
            check_whole(self.how.longest, "longest")
        self.share = written_number(self.how.share, "share")
        if not 0 < self.share <= 1:
            raise ParameterError(f"share is {shown(self.how.share)}; give one above 0, at most 1")
        own = {n: getattr(published, n) for n in ("bounds", "threshold", "duration_edges", "top")}
        self.unit = published.unit
        self.statistics = parse_statistics(published.statistics, **own)

        if isinstance(theta, str | os.PathLike):
            theta = read_public_model(theta)
        model: Any = getattr(theta, "model", theta)  # of a fit
        known = model.records if isinstance(model, PublicModel) else None
        self.records, self.schema = known or Schema(), table.schema(known)
        family = model.family if isinstance(model, PublicModel) else model
        plain = family is None or isinstance(family, Family)
        self._theta: Family | None = family if plain else as_family(family)

    def level(self, step_seconds: int | None, protect: str | int | None = None) -> Level:
        """Return this level or another; raises ParameterError: a time without a known step."""
        asked = self.guarantee
        return level_of(protect or asked.protect, asked.side_information, step_seconds)

    def family(self, step_seconds: int | None) -> Family | None:
        """Return Θ in steps."""
        return None if self._theta is None else self._theta.in_steps(step_seconds)
