"""What can be released: a catalogue of statistics, each with its Lipschitz constant and the proof of it.

A statistic counts a stream of records in one pass into a table of integers, cells × columns. The cells (hours of day,
weekdays, months, groups) are functions of what is public, the times and the groups, so that a record counts in one cell
whatever its value is. Its Lipschitz constant L bounds how much the whole table changes, in L1 norm, when the value of
one record does; with d records changed it changes by at most L·d, one after the other.

*Several at one price.* Statistics f_1, …, f_m with constants L_i and weights w_i > 0 that sum to 1 are one query
(w_1 f_1/L_1, …, w_m f_m/L_m), which changes by at most Σ w_i = 1 with one record: it is 1-Lipschitz. Noise of scale σ
on it is noise of scale L_i σ/w_i on f_i. The noise is drawn on integers, where Laplace noise of scale s_i on table i
changes the law of all tables by a factor of at most e^(Σ L_i/s_i) for each changed record, all that a mechanism uses.
"""

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Annotated, Any, TypedDict

from pufferflow._checks import check_list, named_type, shown
from pufferflow.errors import ParameterError
from pufferflow.publishing.statistics.base import BY, Statistic
from pufferflow.publishing.statistics.counts import Above, Histogram, Transitions
from pufferflow.publishing.statistics.durations import Runs
from pufferflow.publishing.statistics.values import Mean, Sum
from pufferflow.records.format import StateSpace

CATALOGUE: dict[str, type[Statistic]] = {kind.name: kind for kind in (Histogram, Mean, Sum, Above, Runs, Transitions)}
"""All statistics by name."""


class StatisticOptions(TypedDict, total=False):
    """Options of some of them; None is not given."""

    bounds: Annotated[
        tuple[float, float] | None, "pair of float, optional", "To which values of sums and means are clipped."
    ]
    grid: Annotated[
        float | None,
        "float, optional",
        "Step to which they are rounded (default: a thousandth of the range).",
    ]
    threshold: Annotated[float | None, "float, optional", "Of above and runs."]
    durations: Annotated[Sequence[int] | None, "sequence of int, optional", "First steps of the bins of runs."]


def parse_statistics(
    asked: Sequence[str | Statistic], by: str = "all", options: Mapping[str, Any] | None = None
) -> tuple[Statistic, ...]:
    """Return statistics by name: ``NAME``, ``NAME-by-CELLS`` and either with ``:WEIGHT``.

    Raises ParameterError: one is unknown, an option out of range, or an option is of none of them.

    Parameters
    ----------
    asked : sequence of str or Statistic
    by : str
        Cells of those whose name says none.
    options : mapping, optional
        ``bounds``, ``grid`` and ``threshold``, in units of the data, and ``durations``, in steps: of those statistics
        that have them; None is not given.
    """
    given = {key: value for key, value in (options or {}).items() if value is not None}
    statistics, unused = [], set(given)
    for place, entry in enumerate(check_list(asked, "statistics"), 1):
        if isinstance(entry, Statistic):
            statistics.append(entry)
            continue
        if not isinstance(entry, str):
            raise ParameterError(f"statistic {place} is {named_type(entry)}; give a name such as mean-by-hour")
        text, _, weight = entry.partition(":")
        name, _, cells = text.strip().partition("-by-")
        if name not in CATALOGUE:
            raise ParameterError(f"statistic {place} has no known name; choose from {', '.join(CATALOGUE)}")
        try:
            share = float(weight) if weight else 1.0
        except ValueError:
            raise ParameterError(f"the weight of {name} is {shown(weight)}; give a positive number") from None
        kind = CATALOGUE[name]
        own = {field.name for field in fields(kind)} & set(given)
        unused -= own
        statistics.append(kind(by=cells or by, weight=share, **{key: given[key] for key in own}))  # type: ignore[arg-type]
    if unused:
        raise ParameterError(f"no statistic that is asked for has {' or '.join(sorted(unused))}; leave it out")
    return tuple(statistics)


def own_states(statistics: Sequence[Statistic]) -> StateSpace | None:
    """Return the fewest states that statistics of numbers need: between their edges. None where one counts states."""
    edges: set[float] = set()
    for statistic in statistics:
        if statistic.edges is None:
            return None
        edges.update(statistic.edges)
    return StateSpace.numeric(sorted(edges))


__all__ = [
    "BY",
    "CATALOGUE",
    "Above",
    "Histogram",
    "Mean",
    "Runs",
    "Statistic",
    "StatisticOptions",
    "Sum",
    "Transitions",
    "own_states",
    "parse_statistics",
]
