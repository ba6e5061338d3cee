"""Tables drawn from a seed: clocks, zones, gaps, missing values, groups, separators, signs."""

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


def draw(seed: int, *, shuffled: bool = False) -> tuple[str, Schema]:
    """A CSV in which each participant's rows are in order, or all are shuffled; how to read it."""
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
    separator = ";" if sign == "," and numbers else str(rng.choice([",", ";", "\t"]))
    header = {"unix": ["ts"], "none": [], "parts": ["Date", "Hour"]}.get(clock, ["time"])
    lines = [[*header, *["meter"] * known, *["kind"] * grouped, "amount"]]
    for at, name, value in rows:
        who = [*[name] * known, *[groups[name]] * grouped]
        lines.append([*_times(at, clock, zone), *who, value])
        if rng.random() < 0.02 and clock != "none":
            lines.append([""])
    schema = Schema(
        value="amount",
        time="Date,Hour" if clock == "parts" else None,
        time_format="%d.%m.%Y %H:%M:%S" if clock == "parts" else None,
        participant="meter" if known else None,
        group="kind" if grouped else None,
        timezone=zone,
        separator=separator,
        decimal="," if numbers and sign == "," else None,
        step_seconds=None if clock == "none" else step,
        states=StateSpace.numeric([10, 25.5, 80]) if numbers else StateSpace.categories(NAMES),
    )
    return "\n".join(separator.join(line) for line in lines) + "\n", schema


def _times(at: int, clock: str, zone: str | None) -> list[str]:
    if clock in ("none", "unix"):
        return [str(at)] * (clock == "unix")
    then = datetime.fromtimestamp(at, ZoneInfo(zone or "UTC"))
    if clock == "parts":
        return then.strftime("%d.%m.%Y %H:%M:%S").split()
    return [then.isoformat() if clock == "offset" else then.replace(tzinfo=None).isoformat()]
