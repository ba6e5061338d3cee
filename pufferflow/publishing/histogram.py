"""A release of one histogram over all records: counts and relative frequencies of the states."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias, get_args

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from pufferflow._checks import check_choice, check_confidence
from pufferflow._display import displayed
from pufferflow._noise import axes_for
from pufferflow._optional import require
from pufferflow.publishing.noise import DiscreteLaplace
from pufferflow.publishing.released import CONFIDENCE, PrivateRelease

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PostProcessing: TypeAlias = Literal["clip", "simplex"]


@displayed()
@dataclass(frozen=True, kw_only=True, repr=False)
class PrivateHistogram(PrivateRelease):
    """Noisy counts of states with everything that was decided without the data.

    A :class:`pufferflow.publishing.released.PrivateRelease` with one table, and its attributes.

    Attributes
    ----------
    post_processing : {"clip", "simplex"} or None
        What was done to the frequencies after the noise; it costs no privacy.
    """

    post_processing: PostProcessing | None = None

    stem: ClassVar[str] = "histogram"
    subject: ClassVar[str] = "this histogram"

    def __repr__(self) -> str:
        kind = "PrivateHistogram" if self.private else "NOT PRIVATE: PrivateHistogram"
        return f"{kind}({len(self.states)} states, {self.records} records, epsilon={self.epsilon:g}, {self.mechanism})"

    @property
    def counts(self) -> tuple[int, ...]:
        """Noisy counts, as they were drawn; may be negative."""
        return self.tables[0].counts

    @property
    def noise_scale(self) -> float:
        """s, of the discrete Laplace noise on each count."""
        return self.tables[0].noise_scale

    @cached_property
    def frequencies(self) -> NDArray[np.float64]:
        """Relative frequencies, post-processed where asked, shape (k,)."""
        raw = np.array(self.counts, dtype=np.float64) / self.records
        if self.post_processing == "clip":
            return np.clip(raw, 0.0, 1.0)
        return to_simplex(raw) if self.post_processing == "simplex" else raw

    def post_processed(self, how: PostProcessing | None) -> PrivateHistogram:
        """Return the same release with its frequencies clipped to [0, 1] or projected to the simplex."""
        if how is not None:
            check_choice(how, "post_processing", get_args(PostProcessing))
        return replace(self, post_processing=how)

    def half_width(self, confidence: float = CONFIDENCE) -> float:
        """Largest error of one frequency with this probability, exactly from the law of the noise.

        Raises
        ------
        ParameterError
            ``confidence`` is not between 0 and 1.
        """
        return DiscreteLaplace(self.noise_scale).quantile(check_confidence(confidence)) / self.records

    def to_frame(self) -> pd.DataFrame:
        """One row a state: noisy count, frequency, and the ends of its 95 % interval."""
        raw, h = np.array(self.counts) / self.records, self.half_width()
        low, high = raw - h, raw + h
        if self.post_processing is not None:
            low, high = np.clip(low, 0.0, 1.0), np.clip(high, 0.0, 1.0)
        return pd.DataFrame(
            {
                "state": self.states,
                "noisy_count": self.counts,
                "frequency": self.frequencies,
                "low_95": low,
                "high_95": high,
                "post_processing": self.post_processing or "none",
                "privacy": self.privacy,
            }
        )

    @property
    def noise_text(self) -> str:
        """Which noise was added, without a full stop."""
        return (
            f"Noise: independent discrete Laplace noise of scale {self.noise_scale!r} on each count, twice the scale "
            f"that {self.mechanism} asks for {self.length_text}, rounded up to 11 bits"
        )

    @property
    def afterwards(self) -> tuple[str, ...]:
        """What was done to the noisy numbers."""
        if self.post_processing is None:
            return ()
        how = {"clip": "clipped to [0, 1]", "simplex": "projected to the probability simplex"}[self.post_processing]
        return (f"Frequencies were {how} afterwards, which costs no privacy.",)

    def to_dict(self) -> dict[str, Any]:
        """Return what may be published as plain JSON types: nothing from which Θ can be read.

        Of Θ it has the mechanism's name and the noise scale. A reader needs that scale for error bars; it has
        :data:`~pufferflow.publishing.noise.DIGITS` bits, so that each further ε tells no more than those.
        """
        return self._head("histogram", 2) | {
            "noise": {"law": "discrete Laplace on each count", "scale": self.noise_scale},
            "post_processing": self.post_processing,
            "bins": [
                {key: row[key] for key in ("state", "noisy_count", "frequency", "low_95", "high_95")}
                for row in self.to_frame().to_dict("records")
            ],
            **self._tail(),
        }

    def figures(self) -> Iterator[tuple[str, Callable[[], Figure]]]:
        """The one figure."""
        yield self.stem, self.figure

    def figure(self) -> Figure:
        """Return a figure with error bars (needs matplotlib)."""
        require("matplotlib", "a figure")
        from pufferflow.drawing.releases import histogram

        return histogram(self.to_frame(), f"{self.caption}{self._post_processed}", self._edges)

    def plot(self, axes: Axes | None = None) -> Axes:
        """Draw the frequencies with their 95 % intervals on ``axes`` (default: a new figure; needs matplotlib)."""
        axes = axes_for(axes)
        from pufferflow.drawing.releases import draw_bars

        draw_bars(axes, self.to_frame(), self._edges)
        return axes

    @property
    def _edges(self) -> tuple[float, ...] | None:
        """Between bins of numbers."""
        return None if self.model.records is None else self.model.records.states.edges

    @property
    def _post_processed(self) -> str:
        return {None: "", "clip": ", clipped to [0, 1]", "simplex": ", projected to the simplex"}[self.post_processing]


def to_simplex(raw: NDArray[np.float64]) -> NDArray[np.float64]:
    """Nearest point (Euclidean) with entries ≥ 0 that sum to 1."""
    falling = np.sort(raw)[::-1]
    shift = (np.cumsum(falling) - 1) / np.arange(1, len(raw) + 1)
    return np.asarray(np.maximum(raw - shift[np.flatnonzero(falling > shift)[-1]], 0.0))
