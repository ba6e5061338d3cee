"""What is asked for: every option of a release once, with its default and its meaning."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from typing import Any, TypeAlias

from pufferflow._checks import check_choice, check_epsilon, check_type, check_whole, shown
from pufferflow._options import option, split_options
from pufferflow._protection import Level, level_of
from pufferflow._texts import check_unicode
from pufferflow._units import seconds_of
from pufferflow.accounting.ledger import Ledger
from pufferflow.errors import ParameterError
from pufferflow.markov import Family, MarkovChain
from pufferflow.markov.families import as_family
from pufferflow.mixing_family import MixingFamily
from pufferflow.models import PublicModel, read_public_model
from pufferflow.publish.statistics import Statistic, parse_statistics
from pufferflow.records.schema import Schema
from pufferflow.records.states import StateSpace
from pufferflow.records.table import Source

PathLike: TypeAlias = "str | os.PathLike[str]"
Theta: TypeAlias = "Family | MarkovChain | PublicModel | PathLike | Any"
WHAT, GUARANTEE, ACCOUNT, TABLE, OUTPUT = (
    "what to publish",
    "guarantee",
    "account",
    "table",
    "output",
)


@dataclass(frozen=True)
class TableOptions:
    """How a table is read; None takes what a model says, or the default."""

    time: str | None = option(None, "Column of times.", TABLE, "COLUMN")
    value: str | None = option(None, "Column of values.", TABLE, "COLUMN")
    participant: str | None = option(
        None,
        "Column that tells participants apart; without it all rows are of one.",
        TABLE,
        "COLUMN",
    )
    group: str | None = option(
        None, "Column of a public fact of each participant.", TABLE, "COLUMN"
    )
    step: str | int | None = option(
        None, "Time between readings: 30min (default: most common).", TABLE, "TIME"
    )
    timezone: str | None = option(
        None, "Zone of local times, such as Europe/Berlin.", TABLE, "ZONE"
    )
    time_format: str | None = option(
        None, "How times are written, as in %d/%m/%Y %H:%M.", TABLE, "FORMAT"
    )
    separator: str | None = option(None, "Sign between fields.", TABLE, "SIGN")
    decimal: str | None = option(None, "Decimal sign.", TABLE, "SIGN")
    thousands: str | None = option(None, "Sign of thousands.", TABLE, "SIGN")
    rows_are_steps: bool = option(False, "Every row is one step, whatever times say.", TABLE)
    states: Sequence[str] | None = option(None, "Names of the states.", WHAT, "A,B,...")
    edges: Sequence[float] | None = option(
        None, "Edges between numeric states, also LOW:HIGH:WIDTH.", WHAT, "A,B,..."
    )

    def schema(self, known: Schema | None = None) -> Schema:
        """Return how to read the table, given what a model says of it.

        Raises ParameterError: both states and edges are given, or a model says what they are.
        """
        own = {f.name: getattr(self, f.name) for f in fields(self)}
        states, edges, step = own.pop("states"), own.pop("edges"), own.pop("step")
        if states is not None and edges is not None:
            raise ParameterError("states and edges say different things; give one of them")
        given = {
            key: value for key, value in own.items() if value is not None and value is not False
        }
        space: StateSpace | None = None
        if edges is not None:
            space = StateSpace.numeric(edges)
        elif states is not None:
            space = StateSpace.categories(states)
        seconds = None if step is None else seconds_of(step, "step")
        if known is None:
            return Schema(**given, step_seconds=seconds, states=space)
        if space is not None and known.states is not None and space != known.states:
            raise ParameterError("the model says what its states are; leave states and edges out")
        if seconds is not None and known.step_seconds not in (None, seconds):
            raise ParameterError(
                f"step is {seconds} s, but the model has {known.step_seconds} s; leave it out"
            )
        return replace(
            known,
            **given,
            step_seconds=seconds or known.step_seconds,
            states=space or known.states,
        )


@dataclass(frozen=True)
class StatisticOptions:
    """What is published."""

    statistics: Sequence[str | Statistic] = option(
        ("histogram",),
        "Any of histogram, mean, sum, exceedances, durations, transitions, also in cells: "
        "mean-by-hour (weekday, month, group); several share the noise.",
        WHAT,
        "NAME",
        "statistic",
    )
    bounds: Sequence[float] | None = option(
        None, "To which values of means and sums are clipped.", WHAT, ("LOW", "HIGH")
    )
    threshold: float | None = option(None, "Of exceedances and durations.", WHAT, "VALUE")
    duration_edges: Sequence[int] | None = option(
        None, "First lengths of the bins of durations, in steps.", WHAT, "1,2,..."
    )
    unit: str | None = option(None, "Unit of the values, for people.", WHAT, "WORD")

    def parsed(self) -> tuple[Statistic, ...]:
        """Return the statistics; raises ParameterError: one is unknown, or an option is bad."""
        return parse_statistics(self.statistics, self.bounds, self.threshold, self.duration_edges)


@dataclass(frozen=True)
class GuaranteeOptions:
    """What is hidden, and from whom."""

    protect: str | int = option(
        "reading",
        "What is hidden: any one reading, what happens during a time such as 1h or 7d (or so many "
        "readings), or everything of one participant.",
        GUARANTEE,
        "WHAT",
    )
    side_information: str = option(
        "none", "What others may know of a participant's readings: none or any.", GUARANTEE, "WHICH"
    )

    def level(self, step_seconds: int | None) -> Level:
        """Return the level; raises ParameterError: it is a time and no step is known."""
        return level_of(self.protect, self.side_information, step_seconds)


@dataclass(frozen=True)
class ReleaseOptions:
    """How a release is paid for and written."""

    accept_noise: bool = option(False, "Publish although most would be noise.", GUARANTEE)
    fitted_to_others: bool = option(False, "The chain was fitted to other participants.", GUARANTEE)
    ledger: Ledger | PathLike | None = option(
        None, "Where all releases of these participants add up.", ACCOUNT, "FILE"
    )
    limit: float | None = option(
        None, "Of all releases at this level (default: epsilon).", ACCOUNT, "EPSILON"
    )
    share: str | float = option(
        1, "Fraction of what the level allows, where several share a period.", ACCOUNT, "F"
    )
    alone: bool = option(False, "Promise epsilon for this release alone.", ACCOUNT)
    first: str | None = option(None, "Readings from this time on.", ACCOUNT, "TIME", "from")
    last: str | None = option(
        None, "Readings before this time; a date is the whole day.", ACCOUNT, "TIME", "to"
    )
    longest: int | None = option(
        None, "Readings of one participant that count at most.", ACCOUNT, "N"
    )
    cohort: str | None = option(
        None, "Name of these participants, where others have ledgers.", ACCOUNT, "NAME"
    )
    new_values: bool = option(
        False, "Enter a value column that is new to the ledger.", ACCOUNT, None, "yes"
    )
    output: PathLike | None = option(
        None, "New folder; publish/ in it may leave.", OUTPUT, "FOLDER"
    )
    figure: bool = option(True, "Draw the figure.", OUTPUT, shell=False)
    seed: int | None = option(
        None, "Simulate with this seed: for planning, not private.", OUTPUT, "SEED", "simulate"
    )


RECORDS = (StatisticOptions, GuaranteeOptions, ReleaseOptions, TableOptions)


@dataclass(frozen=True, repr=False, eq=False)
class Request:
    """One release as it was asked for; it looks at no data.

    Raises ParameterError: an option is out of range, or two contradict each other.
    """

    source: Source
    theta: Theta | None
    epsilon: float
    what: StatisticOptions
    guarantee: GuaranteeOptions
    how: ReleaseOptions
    table: TableOptions

    @classmethod
    def of(
        cls, source: Source, theta: Theta | None, epsilon: float, options: dict[str, Any]
    ) -> Request:
        """Return the request that keywords make."""
        split = zip(RECORDS, split_options(options, *RECORDS), strict=True)
        parts = [record(**own) for record, own in split]
        return cls(source, theta, epsilon, *parts)

    def __post_init__(self) -> None:
        check_epsilon(self.epsilon)
        check_choice(self.guarantee.side_information, "side_information", ("none", "any"))
        for name in ("accept_noise", "fitted_to_others", "alone", "new_values", "figure"):
            check_type(getattr(self.how, name), name, bool)
        for name, word in (("unit", self.what.unit), ("cohort", self.how.cohort)):
            if word is not None:
                check_type(word, name, str)
                check_unicode(word, name)
        if self.how.limit is not None:
            if check_epsilon(self.how.limit) < self.epsilon:
                raise ParameterError(
                    f"limit {self.how.limit:g} is below epsilon {self.epsilon:g}; raise it"
                )
            if self.how.alone:
                raise ParameterError(
                    "alone makes no promise, so it has no limit; leave one of them out"
                )
        if self.how.longest is not None:
            check_whole(self.how.longest, "longest")
        if self.how.ledger is None and self.how.alone:
            raise ParameterError("alone is for a ledger, and none is kept; leave it out")
        assert 0 < self.share_of <= 1
        self.what.parsed()

    @property
    def share_of(self) -> Fraction:
        """The share as an exact number in (0, 1]."""
        try:
            share = Fraction(str(self.how.share))
        except (ValueError, ZeroDivisionError):
            share = Fraction(0)
        if not 0 < share <= 1:
            raise ParameterError(
                f"share is {shown(self.how.share)}; give a number above 0, at most 1"
            )
        return share

    def model(self) -> PublicModel | None:
        """Return Θ with what its file says of records."""
        return None if self.theta is None else public_model(self.theta)

    def family(self, step_seconds: int | None) -> Family | None:
        """Return Θ in steps."""
        model = self.model()
        if model is None:
            return None
        family = model.family
        return family.in_steps(step_seconds) if isinstance(family, MixingFamily) else family

    def __repr__(self) -> str:
        return "Request(…)"


def public_model(theta: Theta) -> PublicModel:
    """Return Θ and how records become its states, from whatever says so."""
    if isinstance(theta, PublicModel):
        return theta
    if isinstance(theta, str | os.PathLike):
        return read_public_model(theta)
    model = getattr(theta, "model", None)
    if isinstance(model, PublicModel):  # of a fit
        return model
    return PublicModel(theta if isinstance(theta, MixingFamily) else as_family(theta))
