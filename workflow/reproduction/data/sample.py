"""The sample: the counts of a data set that later stages need.

Segment lengths, state counts and transition counts suffice for fitting a chain, for every noise
scale and for every histogram.
"""

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pufferflow._util.files import write_atomic
from pufferflow.errors import DataError
from pufferflow.records.counts import path_counts, spans
from pufferflow.records.read import Steps


@dataclass(frozen=True, eq=False)
class Participant:
    """Counts of one person (or household), or of several together.

    Attributes
    ----------
    name, group : str
        The name, and the group with a common chain.
    segment_lengths : tuple of int
        Time steps that each independent chain spans, bridged gaps included.
    state_counts, transition_counts : int array, shape (k,) and (k, k)
        Readings in each state; steps from state (row) to state (column) between readings one
        time step apart.
    """

    name: str
    group: str
    segment_lengths: tuple[int, ...]
    state_counts: NDArray[np.int64]
    transition_counts: NDArray[np.int64]

    def __repr__(self) -> str:
        return f"Participant({len(self.state_counts)} states, contains confidential counts)"

    @property
    def observations(self) -> int:
        """Number of readings."""
        return int(self.state_counts.sum())


@dataclass(frozen=True)
class Sample:
    """A data set reduced to counts.

    Attributes
    ----------
    dataset, label, description : str
        Its name ("electricity", "activity", …); its source ("bundled", "downloaded", "file" or
        "synthetic"), which its tables and captions repeat; one line for captions.
    step_seconds : int
        Time between two steps of the chain.
    states : tuple of str
        State names, in the order of the counts.
    participants : tuple of Participant
    """

    dataset: str
    label: str
    description: str
    step_seconds: int
    states: tuple[str, ...]
    participants: tuple[Participant, ...]

    def __repr__(self) -> str:
        people, states = len(self.participants), len(self.states)
        return f"Sample({self.label}, {states} states, {people} participants)"

    @property
    def groups(self) -> tuple[str, ...]:
        """Group names in order of first appearance."""
        return tuple(dict.fromkeys(p.group for p in self.participants))

    def group(self, name: str) -> tuple[Participant, ...]:
        """Return the participants of group ``name``."""
        return tuple(p for p in self.participants if p.group == name)

    def to_json(self) -> str:
        """Return compact JSON; the same sample gives the same bytes."""

        def plain(value: Any) -> Any:
            return vars(value) if isinstance(value, Participant) else value.tolist()

        options: Any = {"separators": (",", ":"), "ensure_ascii": False}
        return json.dumps(vars(self), default=plain, **options) + "\n"

    def save(self, path: str | Path) -> None:
        """Write the sample atomically; only the owner may read that of a user's file."""
        write_atomic(path, self.to_json(), private=self.label == "file")


def participants(steps: Steps, longest_gap: float = math.inf) -> tuple[Participant, ...]:
    """Return the counts of each participant with a reading, in order of first appearance.

    One without a name has that of its group. Raises DataError: there are too many states for the
    number of participants.
    """
    observed, moved = path_counts(steps, 1, each=True), path_counts(steps, each=True)
    person, length = spans(steps, longest_gap)
    own, begin = np.unique(person, return_index=True)
    found = []
    for i, lengths in zip(own.tolist(), np.split(length, begin[1:]), strict=True):
        segments, group = tuple(lengths.tolist()), steps.groups[steps.group_of[i]]
        name = steps.people[i] or group
        found.append(Participant(name, group, segments, observed[i], moved[i]))
    return tuple(found)


def pooled(people: Sequence[Participant]) -> Participant:
    """Return the counts of people of one group added up, and all their segments in order."""
    lengths = tuple(length for person in people for length in person.segment_lengths)
    states = np.sum([person.state_counts for person in people], axis=0)
    transitions = np.sum([person.transition_counts for person in people], axis=0)
    return Participant("all", people[0].group, lengths, states, transitions)


def load_sample(path: str | Path) -> Sample:
    """Read a sample that :meth:`Sample.save` wrote.

    Raises DataError: the file is missing, is not JSON, lacks a field, or its counts do not fit its
    states.
    """
    try:
        raw = json.loads(Path(path).read_text(encoding="utf-8"))
        k = len(raw["states"])
        people = (
            Participant(
                p["name"],
                p["group"],
                tuple(p["segment_lengths"]),
                np.array(p["state_counts"], dtype=np.int64).reshape(k),
                np.array(p["transition_counts"], dtype=np.int64).reshape(k, k),
            )
            for p in raw["participants"]
        )
        return Sample(**raw | {"states": tuple(raw["states"]), "participants": tuple(people)})
    except (OSError, KeyError, TypeError, ValueError) as error:
        problem = f"missing or not a sample of this package ({error}); run the rule that makes it"
        raise DataError(f"{path}: {problem}") from error
