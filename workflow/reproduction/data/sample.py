"""The sample: what every later stage needs to know of a data set, and no more.

Segment lengths, state counts and transition counts suffice for fitting a chain, for every noise
scale and for every histogram, so a sample can be shipped where the raw data may not be.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pufferflow._files import write_atomic
from pufferflow.errors import DataError
from pufferflow.records.counts import spans, state_counts, transition_counts
from pufferflow.records.read import Steps


@dataclass(frozen=True, eq=False)
class Participant:
    """What is counted of one person (or household).

    Attributes
    ----------
    name, group : str
        Who, and the group whose common chain the readings help to fit.
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

    def to_json(self) -> str:
        """Return the fields as one line of JSON."""
        options: Any = {"separators": (",", ":"), "ensure_ascii": False}
        return json.dumps(vars(self), default=np.ndarray.tolist, **options)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Participant) and self.to_json() == other.to_json()


@dataclass(frozen=True)
class Sample:
    """A data set reduced to counts.

    Attributes
    ----------
    dataset, label, description : str
        Its name ("electricity", "activity", …); how it came here ("bundled", "downloaded", "file",
        "synthetic"), which every table and caption made from it has; one line for captions.
    step_seconds : int
        Time between two steps of the chain.
    states : tuple of str
        State names, in the order of the counts.
    participants : tuple of Participant
    settings : dict
        The settings that shaped it (gap rule, bins, cut points, …).
    """

    dataset: str
    label: str
    description: str
    step_seconds: int
    states: tuple[str, ...]
    participants: tuple[Participant, ...]
    settings: dict[str, Any] = field(default_factory=dict)

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
        """Return a compact JSON text, one participant a line (stable bytes)."""
        head = {key: value for key, value in vars(self).items() if key != "participants"}
        opening = json.dumps(head, ensure_ascii=False)[:-1]
        people = ",\n".join(person.to_json() for person in self.participants)
        return f'{opening}, "participants": [\n{people}\n]}}\n'

    def save(self, path: str | Path) -> None:
        """Write the sample to ``path`` in one step; that of a user's file is for its owner only."""
        write_atomic(path, self.to_json(), private=self.label == "file")


def participants(steps: Steps, longest_gap: float = math.inf) -> tuple[Participant, ...]:
    """Return the counts of each participant with a reading, in order of first appearance.

    Raises DataError: there are too many states for so many participants.
    """
    observed, moved = state_counts(steps, "person"), transition_counts(steps, "person")
    person, length = spans(steps, longest_gap)
    own, begin = np.unique(person, return_index=True)
    return tuple(
        Participant(
            steps.people[i] or "all",
            steps.groups[steps.group_of[i]],
            tuple(lengths.tolist()),
            observed[i],
            moved[i],
        )
        for i, lengths in zip(own.tolist(), np.split(length, begin[1:]), strict=True)
    )


def pooled_state_counts(participants: Iterable[Participant]) -> NDArray[np.int64]:
    """Sum of the participants' state counts, shape (k,)."""
    return np.asarray(np.sum([p.state_counts for p in participants], axis=0))


def pooled_transition_counts(participants: Iterable[Participant]) -> NDArray[np.int64]:
    """Sum of the participants' transition counts, shape (k, k)."""
    return np.asarray(np.sum([p.transition_counts for p in participants], axis=0))


def pooled_segment_lengths(participants: Iterable[Participant]) -> tuple[int, ...]:
    """All segment lengths of the participants, in order."""
    return tuple(length for p in participants for length in p.segment_lengths)


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
        what = f"missing or not a sample of this package ({error}); run the rule that makes it"
        raise DataError(f"{path}: {what}") from error
