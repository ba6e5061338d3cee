"""What each level of protection would cost, before anything is spent; from public facts alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import get_args

from pufferflow._progress import progress
from pufferflow._protection import PARTICIPANT, RECORD, SECONDS, Knowledge, Level, check_level
from pufferflow.errors import ParameterError
from pufferflow.markov.families import AnyFamily, as_family
from pufferflow.mechanisms import compute_scale
from pufferflow.mechanisms.work import scale_work
from pufferflow.publishing.calibration import GROUP
from pufferflow.publishing.noise import DiscreteLaplace, count_scale

CONFIDENCE = 0.95
CHEAP = ("leakage", GROUP)
"""What the table goes by; a release takes the least noise that is certified, of all mechanisms."""


@dataclass(frozen=True)
class LevelCost:
    """What a level of protection costs at some ε.

    Attributes
    ----------
    protect : str
        ``record``, ``1h``, …, ``participant``.
    knows : {"nothing", "any records"}
        What an adversary may know beside Θ.
    mechanism : str
    scale : float
        Laplace scale of a 1-Lipschitz query.
    noise_scale : float or None
        Of the noise on each count of a histogram; None where it would hide every count.
    expected_error, error_95 : float or None
        Mean and 95 % quantile of the error of one relative frequency, from the law of the noise.
    """

    protect: str
    knows: Knowledge
    mechanism: str
    scale: float
    noise_scale: float | None
    expected_error: float | None
    error_95: float | None


def levels(step_seconds: int | None, longest_record: int, asked: Level | None = None) -> Iterator[tuple[str, Level]]:
    """Levels to compare, with their names: those of less than a whole record, ``asked``, and the participant."""
    windows = {1: RECORD}
    for name in ("1h", "1d") if step_seconds is not None else ():
        if step_seconds is not None and step_seconds < SECONDS[name[-1]]:
            window = check_level(name, step_seconds=step_seconds).window
            assert window is not None
            windows[window] = name
    if asked is not None and asked.window is not None:
        windows.setdefault(asked.window, f"{asked.window} steps")
    for window, name in sorted(windows.items()):
        if window < longest_record or window == 1:
            for knows in get_args(Knowledge):
                yield name, Level(window, knows)
    yield PARTICIPANT, Level(None, "any records")


def levels_work(family: AnyFamily, step_seconds: int | None, longest_record: int, asked: Level | None = None) -> float:
    """Operations that a comparison of the levels takes, about."""
    compared = [level for _, level in levels(step_seconds, longest_record, asked) if not level.whole]
    return len(compared) * scale_work(CHEAP[0], family, longest_record)


def level_costs(
    family: AnyFamily,
    epsilon: float,
    *,
    longest_segment: int,
    longest_record: int,
    records: int,
    step_seconds: int | None = None,
    asked: Level | None = None,
) -> list[LevelCost]:
    """What each level costs at ε: by leakage calibration or by group privacy, whichever is less.

    Raises ParameterError: ε or a length is out of range.
    """
    theta, costs = as_family(family), []
    compared = list(levels(step_seconds, longest_record, asked))
    for name, level in progress(compared, desc="levels", unit=" levels", delay=1):
        length, options = longest_record if level.whole else longest_segment, asdict(level.over(longest_record))
        mechanisms = (GROUP,) if level.whole else CHEAP
        scales = [compute_scale(mechanism, theta, length, epsilon, **options) for mechanism in mechanisms]
        best = min((s for s in scales if s.scale is not None), key=lambda s: s.scale or 0)
        assert best.scale is not None
        try:
            noise = count_scale(best.scale)
        except ParameterError:
            costs.append(LevelCost(name, level.knows, best.mechanism, best.scale, None, None, None))
            continue
        law = DiscreteLaplace(noise)
        errors = law.mean_absolute / records, law.quantile(CONFIDENCE) / records
        costs.append(LevelCost(name, level.knows, best.mechanism, best.scale, noise, *errors))
    return costs
