"""Tables drawn from a seed: clocks, zones, gaps, missing values, groups, separators, signs."""

from dataclasses import dataclass
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import numpy as np

from pufferflow.records.schema import Schema
from pufferflow.records.states import StateSpace

NAMES = ("sit", "stand", "walk", "10", "0.50")
MISSING = ("", "NA", "null", "?")
ZONES = {
    "Europe/Paris": ("2021-03-28", "2021-10-31"),
    "America/New_York": ("2021-03-14", "2021-11-07"),
    "Australia/Sydney": ("2021-04-04", "2021-10-03"),
}


@dataclass
class Drawn:
    """A CSV text, and how it is to be read."""

    text: str
    reading: dict  # fields of Schema
    step: int | None
    edges: list | None
    names: list | None

    @property
    def schema(self):
        space = StateSpace.numeric(self.edges) if self.edges else StateSpace.categories(self.names)
        return Schema(**self.reading, step_seconds=self.step, states=space)


def draw(seed: int, *, shuffled: bool = False) -> Drawn:
    """Return a table in which each participant's rows are in order, or all are shuffled."""
    rng = np.random.default_rng(seed)
    step = int(rng.choice([1, 60, 900, 1800, 3600]))
    clock = str(rng.choice(["unix", "offset", "local", "zone", "parts", "none"]))
    clock = "local" if shuffled and clock in ("zone", "none") else clock
    zone = str(rng.choice(list(ZONES))) if clock == "zone" else None
    day = str(rng.choice(ZONES[zone])) if zone else "2021-06-01"
    start = int(datetime.fromisoformat(day).replace(tzinfo=UTC).timestamp())
    numbers, sign = bool(rng.integers(2)), str(rng.choice([".", ","]))
    people = [f"m{i}" for i in rng.permutation(int(rng.integers(1, 5)))]
    groups = {name: str(rng.choice(["g", "h"])) for name in people}
    known, grouped = len(people) > 1 or bool(rng.integers(2)), bool(rng.integers(2))
    rows = []
    for name in people:
        at = start - start % step + step * int(rng.integers(0, 50))
        for _ in range(int(rng.integers(2, 90))):
            at += step * int(rng.choice([1, 1, 1, 1, 1, 2, 7]))
            value = str(rng.choice(NAMES))
            if numbers:
                value = f"{rng.integers(0, 400) / 4:.{int(rng.integers(2, 4))}f}".replace(".", sign)
            rows.append((at, name, str(rng.choice(MISSING)) if rng.random() < 0.15 else value))
    rows.sort(key=lambda row: row[0])  # interleaved, as a data base gives them
    if shuffled:
        rows = [rows[i] for i in rng.permutation(len(rows))]
    separator = ";" if numbers and sign == "," else str(rng.choice([",", ";", "\t"]))
    header = {"unix": ["ts"], "none": []}.get(clock, ["time"])
    header = ["Date", "Hour"] if clock == "parts" else header
    header += [*(["meter"] if known else []), *(["kind"] if grouped else []), "amount"]
    lines = [header]
    for at, name, value in rows:
        line = [*_times(at, clock, zone), *([name] if known else [])]
        lines.append([*line, *([groups[name]] if grouped else []), value])
        if rng.random() < 0.02 and clock != "none":
            lines.append([""])
    reading = {"value": "amount", "separator": separator, "timezone": zone}
    reading |= {"time": "Date,Hour", "time_format": "%d.%m.%Y %H:%M:%S"} if clock == "parts" else {}
    reading |= {"participant": "meter"} if known else {}
    reading |= {"group": "kind"} if grouped else {}
    reading |= {"decimal": ","} if numbers and sign == "," else {}
    text = "\n".join(separator.join(line) for line in lines) + "\n"
    edges = [10.0, 25.5, 80.0] if numbers else None
    step_seconds = None if clock == "none" else step
    return Drawn(text, reading, step_seconds, edges, None if numbers else [*NAMES])


def _times(at: int, clock: str, zone: str | None) -> list[str]:
    if clock in ("none", "unix"):
        return [str(at)] * (clock == "unix")
    then = datetime.fromtimestamp(at, ZoneInfo(zone or "UTC"))
    if clock == "parts":
        return then.strftime("%d.%m.%Y %H:%M:%S").split()
    return [then.isoformat() if clock == "offset" else then.replace(tzinfo=None).isoformat()]
