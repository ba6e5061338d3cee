"""The sample: what every later stage needs to know of a data set, and no more.

Segment lengths, state counts and transition counts are sufficient for fitting a chain, for every noise
scale and for every histogram, so a sample can be shipped where the raw records may not be.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pufferflow._files import write_atomic
from pufferflow.errors import DataError

LABELS = ("bundled", "downloaded", "file", "synthetic", "surrogate")


@dataclass(frozen=True, eq=False)
class Participant:
    """One person's (or household's) record.

    Attributes
    ----------
    name, group : str
        Who, and the group whose common chain the record helps to fit.
    segment_lengths : tuple of int
        Time steps each independent chain spans, first to last observation, bridged gaps included.
    state_counts : int array, shape (k,)
        Observations in each state.
    transition_counts : int array, shape (k, k)
        Steps from state (row) to state (column) between observations one time step apart.
    """

    name: str
    group: str
    segment_lengths: tuple[int, ...]
    state_counts: NDArray[np.int64]
    transition_counts: NDArray[np.int64]

    def __repr__(self) -> str:
        return f"Participant({len(self.state_counts)} states, as private as the data)"

    @property
    def observations(self) -> int:
        """Number of records observed."""
        return int(self.state_counts.sum())

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as plain lists, for JSON."""
        return {
            "name": self.name,
            "group": self.group,
            "segment_lengths": list(self.segment_lengths),
            "state_counts": self.state_counts.tolist(),
            "transition_counts": self.transition_counts.tolist(),
        }

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Participant) and self.to_dict() == other.to_dict()


@dataclass(frozen=True)
class Sample:
    """A data set reduced to counts.

    Attributes
    ----------
    dataset : str
        Its name ("electricity", "activity", ...).
    label : str
        How it came here, one of :data:`LABELS`; shown in every table and caption made from it.
    description : str
        One line: what it is, for captions.
    step_seconds : int
        Time between two steps of the chain.
    states : tuple of str
        State names, in the order of the counts.
    participants : tuple of Participant
    settings : dict
        The ingestion settings that shaped it (gap rule, bins, cut points, ...).
    """

    dataset: str
    label: str
    description: str
    step_seconds: int
    states: tuple[str, ...]
    participants: tuple[Participant, ...]
    settings: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.label not in LABELS:
            raise DataError(f"sample {self.dataset!r}: label {self.label!r} is none of {', '.join(LABELS)}")
        if not self.participants:
            raise DataError(f"sample {self.dataset!r} holds no participant; check the source and its filters")

    def __repr__(self) -> str:
        return f"Sample({self.label}, {len(self.states)} states, {len(self.participants)} participants)"

    @property
    def groups(self) -> tuple[str, ...]:
        """Group names in order of first appearance."""
        return tuple(dict.fromkeys(p.group for p in self.participants))

    def group(self, name: str) -> tuple[Participant, ...]:
        """Return the participants of group ``name``."""
        return tuple(p for p in self.participants if p.group == name)

    def to_json(self) -> str:
        """Return a compact JSON text, one participant a line (stable bytes)."""
        head = {
            "dataset": self.dataset,
            "label": self.label,
            "description": self.description,
            "step_seconds": self.step_seconds,
            "states": list(self.states),
            "settings": self.settings,
        }
        lines = [json.dumps(p.to_dict(), separators=(",", ":"), ensure_ascii=False) for p in self.participants]
        opening = json.dumps(head, ensure_ascii=False)[:-1]
        return opening + ', "participants": [\n' + ",\n".join(lines) + "\n]}\n"

    def save(self, path: str | Path) -> None:
        """Write the sample to ``path`` in one step; that of a user's file is for its owner alone."""
        write_atomic(path, self.to_json(), private=self.label == "file")


def pooled_state_counts(participants: Iterable[Participant]) -> NDArray[np.int64]:
    """Sum of the participants' state counts, shape (k,)."""
    total: NDArray[np.int64] = np.stack([p.state_counts for p in participants]).sum(axis=0)
    return total


def pooled_transition_counts(participants: Iterable[Participant]) -> NDArray[np.int64]:
    """Sum of the participants' transition counts, shape (k, k)."""
    total: NDArray[np.int64] = np.stack([p.transition_counts for p in participants]).sum(axis=0)
    return total


def pooled_segment_lengths(participants: Iterable[Participant]) -> tuple[int, ...]:
    """All segment lengths of the participants, in order."""
    return tuple(length for p in participants for length in p.segment_lengths)


def load_sample(path: str | Path) -> Sample:
    """Read a sample written by :meth:`Sample.save`.

    Raises
    ------
    DataError
        The file is missing, is not JSON, lacks a field, or its counts do not fit its states.
    """
    try:
        raw = json.loads(Path(path).read_text(encoding="utf-8"))
        k = len(raw["states"])
        participants = tuple(
            Participant(
                p["name"],
                p["group"],
                tuple(int(n) for n in p["segment_lengths"]),
                np.array(p["state_counts"], dtype=np.int64).reshape(k),
                np.array(p["transition_counts"], dtype=np.int64).reshape(k, k),
            )
            for p in raw["participants"]
        )
        return Sample(
            raw["dataset"],
            raw["label"],
            raw["description"],
            int(raw["step_seconds"]),
            tuple(raw["states"]),
            participants,
            raw["settings"],
        )
    except OSError as error:
        raise DataError(f"sample {path}: {error.strerror or error}; run the ingestion that makes it") from error
    except (KeyError, TypeError, ValueError) as error:
        raise DataError(f"sample {path} is not a sample of this package ({error}); ingest the data again") from error
