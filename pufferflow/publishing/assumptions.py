"""What a release takes for granted, held against what is public: times, numbers of rows, and Θ itself.

What would make the noise too small is refused. What may be right but weakens the guarantee where it is not is put into
words, for the terminal and for the statement. Nothing here looks at a value.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from pufferflow.errors import DataError
from pufferflow.markov import Family
from pufferflow.records.format import Fitted, RecordFormat
from pufferflow.records.rows import Records, stamp
from pufferflow.records.tally import Tally

LARGE_EPSILON = 10.0
"""ε from which on odds may change by a factor of 22,000."""

INDEPENDENT = 1.1
"""Noise of up to so many times that of independent records says that Θ takes them for such."""

OFFSETS = 14 * 3600
"""Seconds by which a local clock may differ from UTC."""

SAME_TIME = (
    "the chain was fitted to records of the same time, and says much about them if they are these: give a chain of "
    "another time, or say fitted_to_others if they are records of other participants"
)
OF_OTHERS = (
    "the chain was fitted to records of the same time, of other participants as the publisher says; had they been of "
    "these, the chain would give them away"
)
NO_TIMES = "the rows have no times, so nobody can tell whether the chain was fitted to these same records"
IN_TURN = (
    "no two participants have records at the same time: if they are pieces of one record, they are not independent, "
    "and the noise is too small"
)


def check_pieces(records: Records, form: RecordFormat, tally: Tally) -> None:
    """Raise unless the records follow each other by the step of the chain, in segments of more than one.

    A segment of one record gets the noise of independent records, which hides nothing in correlated ones. The longest
    run of records one step apart is never longer than the longest segment, as only a gap or another participant
    begins a segment.

    Raises DataError: the step of the data is not that of the chain, or most segments are single records.
    """
    where, step = records.table.where, form.step_seconds
    if tally.shortest_wait is None:
        raise DataError(f"{where}: a single record for each participant, which no chain connects; give longer records")
    if tally.shortest_wait > 1:
        unit = ("steps", "of one row") if step is None else ("s", f"of {step} s")
        wait = tally.shortest_wait * (step or 1)
        raise DataError(
            f"{where}: no two records are closer than {wait} {unit[0]} apart, but the chain has steps {unit[1]}; give "
            f"a chain with the step of the data (the matrix of {tally.shortest_wait} steps is the power of that of one)"
        )
    _, lengths = tally.segments()
    single = int((lengths == 1).sum())
    if 2 * single > len(lengths):
        raise DataError(
            f"{where}: {single:,} of {len(lengths):,} segments are of one record, which would get the noise of "
            "independent records; split after longer pauses only or not at all (split_after_seconds), or name the "
            "right column of the participants (participant)"
        )


def check_origin(records: Records, tally: Tally, fitted: Fitted | None, others: bool) -> list[str]:
    """Hold the period of the records of the release against that of the chain's, and return what to warn of.

    ``fitted`` says where the chain comes from; with ``others`` the publisher says that those were records of other
    participants. Raises DataError: the periods overlap, and nothing is said.
    """
    period = None if fitted is None else fitted.period
    if fitted is None or period is None or records.clock is None:
        return [NO_TIMES] if fitted is not None and records.clock is None else []
    slack = 0 if fitted.is_local == (not stamp(records, 0).endswith("Z")) else OFFSETS
    if tally.first > period[1] + slack or tally.last < period[0] - slack:
        return []
    if not others:
        raise DataError(f"{records.table.where}: {SAME_TIME}")
    return [OF_OTHERS]


def doubts(family: Family, states: tuple[str, ...], epsilon: float, scale: float) -> Iterator[str]:
    """What of Θ and ε has little sense, given the names of the states and the Laplace scale of a 1-Lipschitz query."""
    never = [] if family.occurring is None else np.flatnonzero(~family.occurring).tolist()
    if never:
        shown = ", ".join(repr(states[j]) for j in never[:5]) + (", …" if len(never) > 5 else "")
        yield (
            f"by a chain of the model {shown} cannot occur: the guarantee says nothing of such a state, which is not "
            "hidden where it occurs after all"
        )
    if scale * epsilon <= INDEPENDENT:
        yield (
            "the model takes the records for as good as independent: the noise is that of hiding one record which "
            "nothing else tells of"
        )
    if epsilon >= LARGE_EPSILON:
        yield f"epsilon = {epsilon:g} is large: the odds of what happened may change by a factor of e^{epsilon:g}"
