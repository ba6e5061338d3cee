"""What a release is: noisy counts, everything that was decided without the data, and its files."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from pufferflow._checks import check_choice, check_confidence
from pufferflow._display import displayed
from pufferflow._noise import axes_for
from pufferflow._optional import require
from pufferflow._texts import spreadsheet_csv
from pufferflow.forgetting_family import ForgettingFamily
from pufferflow.models import PublicModel, model_json
from pufferflow.publishing.account import Account
from pufferflow.publishing.calibration import Calibration
from pufferflow.publishing.folder import INTERNAL, PUBLISH, draft
from pufferflow.publishing.noise import DiscreteLaplace
from pufferflow.records.format import RecordFormat
from pufferflow.records.rows import MISSING_TEXTS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PostProcessing: TypeAlias = Literal["clip", "simplex"]

CONFIDENCE = 0.95
OUTSIDE = (
    "how long the program ran and what memory it took",
    "that a release was refused, and at which line",
    "the file itself, its name, its size and other copies of the data",
    "what else is published about the same records and is not added up with this release",
)
"""What no noise covers."""


@displayed()
@dataclass(frozen=True)
class PrivateHistogram:
    """Noisy counts of states with everything that was decided without the data.

    Attributes
    ----------
    states : tuple of str
    counts : tuple of int
        Noisy, as they were drawn; may be negative.
    records : int
        n, the number of records counted.
    segments, longest_segment, participants : int
    epsilon : float
    calibration : Calibration
        Mechanism, its scale σ for a 1-Lipschitz query, and the certificate.
    noise_scale : float
        s, of the discrete Laplace noise on each count.
    model : PublicModel
    private : bool
        False for a simulation.
    post_processing : {"clip", "simplex"} or None
        What was done to the frequencies after the noise; it costs no privacy.
    chain_is_public : bool
        Whether the records that the chain was fitted to are public, so that it may leave with the release; always of
        a forgetting family, which is fitted to none.
    unused_columns : int
        Columns of the table that have no role.
    warnings : tuple of str
        What may be right but weakens the guarantee where it is not.
    columns : dict
        Name of the column of each role; it is in no file.
    figure_fault : str
        What went wrong with a figure that is missing although it was asked for.
    seed : int or None
        Of a simulation.
    account : Account or None
        Where the cost is kept; None of a simulation.
    """

    states: tuple[str, ...]
    counts: tuple[int, ...]
    records: int
    segments: int
    longest_segment: int
    participants: int
    epsilon: float
    calibration: Calibration
    noise_scale: float
    model: PublicModel
    private: bool = True
    post_processing: PostProcessing | None = None
    chain_is_public: bool = False
    unused_columns: int = 0
    warnings: tuple[str, ...] = ()
    columns: dict[str, str | None] = field(default_factory=dict, repr=False)
    figure_fault: str = ""
    seed: int | None = None
    account: Account | None = None

    def __post_init__(self) -> None:
        if self._is_chosen:
            object.__setattr__(self, "chain_is_public", True)

    def __repr__(self) -> str:
        kind = "PrivateHistogram" if self.private else "NOT PRIVATE: PrivateHistogram"
        return f"{kind}({len(self.states)} states, {self.records} records, epsilon={self.epsilon:g}, {self.mechanism})"

    @property
    def _is_chosen(self) -> bool:
        """Whether Θ is a choice of two numbers, which tells nothing of any record."""
        return isinstance(self.model.family, ForgettingFamily)

    @property
    def scale(self) -> float:
        """Laplace scale of a 1-Lipschitz query that this noise is as good as: never below the mechanism's σ."""
        return self.noise_scale / 2

    @property
    def mechanism(self) -> str:
        """Name of the mechanism."""
        return self.calibration.chosen.mechanism

    @cached_property
    def frequencies(self) -> NDArray[np.float64]:
        """Relative frequencies, post-processed where asked, shape (k,)."""
        raw = np.array(self.counts, dtype=np.float64) / self.records
        if self.post_processing == "clip":
            return np.clip(raw, 0.0, 1.0)
        return _to_simplex(raw) if self.post_processing == "simplex" else raw

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
        label = ("epsilon = " + repr(self.epsilon)) if self.private else "NOT PRIVATE: a simulation"
        return pd.DataFrame(
            {
                "state": self.states,
                "noisy_count": self.counts,
                "frequency": self.frequencies,
                "low_95": low,
                "high_95": high,
                "post_processing": self.post_processing or "none",
                "privacy": label,
            }
        )

    @property
    def statement(self) -> str:
        """One paragraph: what is guaranteed, to whom and under which Θ, and what is not."""
        form, theta = self.model.records, self.model.family.text(self.chain_is_public)
        chosen = self.calibration.chosen
        secrets = _secrets(chosen.window, None if form is None else form.step_seconds)
        knowing, other = "may know any of the others", ""
        if chosen.knows == "nothing":
            knowing, other = "knows none of them", "that who knows other steps of a participant learns no more; "
        proof = "internal/certificate.json proves that this scale suffices"
        if self.calibration.certificate is None:
            proof = "there is no certificate of it"
        sentences = [
            f"Guarantee: whoever believes that the records follow {theta}, and {knowing}, changes the odds "
            f"between any two {secrets} of any one participant by a factor of at most e^epsilon = "
            f"{_exp(self.epsilon)} on seeing this histogram (Pufferfish privacy, epsilon = {self.epsilon:g} nats; "
            "Song, Wang and Chaudhuri, SIGMOD 2017).",
            f"Noise: independent discrete Laplace noise of scale {self.noise_scale!r} on each count, twice the scale "
            f"that {self.mechanism} asks for segments of up to {self.longest_segment} steps, rounded up to 11 bits; "
            f"{proof}.",
            self._about_the_chains(),
            f"Public, and not protected: the states, epsilon, the number of records "
            f"({self.records}), when there is a record, and the lengths of the segments ({self.segments} of "
            f"{self.participants} participant(s)), which are taken to be independent of each other.",
            *_pauses(form),
            *([] if self._is_chosen else [_records_of_chain(form)]),
            f"Not guaranteed: {_beyond(chosen.window)}; {other}and to somebody who "
            "believes in a chain outside the set, only epsilon plus twice its distance (Theorem 2.4).",
            "Releases of the same records add up." if self.account is None else self.account.statement,
            f"Outside any such guarantee: {'; '.join(OUTSIDE)}.",
        ]
        if not self.private:
            sentences.insert(
                0,
                f"NOT PRIVATE: this is a simulation with seed {self.seed}, from which anybody can repeat the noise; it "
                "is for planning. Of a release with the same options one could say what follows.",
            )
        if self.unused_columns:
            sentences.append(
                f"{self.unused_columns} column(s) of the table were not used: where one of them tells series apart, "
                "the guarantee holds only if it is named as that of the participants."
            )
        sentences += [f"Warning: {warning}." for warning in self.warnings]
        if self.figure_fault:
            sentences.append(f"The figure is missing, for it could not be drawn ({self.figure_fault}).")
        if self.post_processing is not None:
            how = {"clip": "clipped to [0, 1]", "simplex": "projected to the probability simplex"}[self.post_processing]
            sentences.append(f"Frequencies were {how} afterwards, which costs no privacy.")
        return " ".join(sentences)

    def _about_the_chains(self) -> str:
        if self._is_chosen:
            return (
                "The set of chains was chosen, not fitted, so it tells nothing of any record; it and the certificate "
                "are published too (chain.json, certificate.json)."
            )
        if self.chain_is_public:
            return (
                "The set of chains and the certificate are published too (chain.json, certificate.json), as the "
                "records that the chains were fitted to are public."
            )
        return (
            "The set of chains is not published, nor is the certificate, which holds it: from a fitted chain the "
            "counts that it was fitted to can be found again. Both are in the folder internal, which stays with who "
            "made this release; of the chains nothing is told but the name of the mechanism and the noise scale."
        )

    def to_dict(self) -> dict[str, Any]:
        """Return what may be published as plain JSON types: nothing from which Θ can be read.

        Of Θ it has the mechanism's name and the noise scale. A reader needs that scale for error bars; it has
        :data:`~pufferflow.publishing.noise.DIGITS` bits, so that each further ε tells no more than those.
        """
        form = self.model.records
        document: dict[str, Any] = {
            "histogram": "pufferflow",
            "version": 2,
            "private": self.private,
            "statement": self.statement,
            "epsilon": self.epsilon,
            "mechanism": self.mechanism,
            "window": self.calibration.chosen.window,
            "knows": self.calibration.chosen.knows,
            "scale": self.scale,
            "certified": self.calibration.certificate is not None,
            "noise": {"law": "discrete Laplace on each count", "scale": self.noise_scale},
            "records": self.records,
            "participants": self.participants,
            "segments": self.segments,
            "longest_segment": self.longest_segment,
            "post_processing": self.post_processing,
            "unused_columns": self.unused_columns,
            "warnings": list(self.warnings),
            "confidence": CONFIDENCE,
            "bins": [
                {key: row[key] for key in ("state", "noisy_count", "frequency", "low_95", "high_95")}
                for row in self.to_frame().to_dict("records")
            ],
            "states": {"names": list(self.states)} if form is None else form.states.to_dict(),
            "step_seconds": None if form is None else form.step_seconds,
            "split_after_seconds": None if form is None else form.split_after_seconds,
        }
        if not self.private:
            document["warning"] = "NOT PRIVATE: a simulation, for planning"
            document["seed"] = self.seed
        return document

    def to_json(self) -> str:
        """Return the release as JSON text."""
        return json.dumps(self.to_dict(), indent=1, allow_nan=False, ensure_ascii=False) + "\n"

    def to_csv(self) -> str:
        """Return the rows of :meth:`to_frame` as CSV text, names such as ``=1+1`` with an apostrophe before them."""
        return spreadsheet_csv(self.to_frame())

    def figure(self) -> Figure:
        """Return a figure with error bars (needs matplotlib)."""
        require("matplotlib", "a figure")
        from pufferflow.reporting.figures.publishing import histogram

        return histogram(self.to_frame(), self._caption())

    def plot(self, axes: Axes | None = None) -> Axes:
        """Draw the frequencies with their 95 % intervals on ``axes`` (default: a new figure; needs matplotlib)."""
        axes = axes_for(axes)
        from pufferflow.reporting.figures.publishing import draw_bars

        draw_bars(axes, self.to_frame())
        return axes

    def _caption(self) -> str:
        said = f"{self.records:,} records, ε = {self.epsilon:g}, {self.mechanism}"
        said += {None: "", "clip": ", clipped to [0, 1]", "simplex": ", projected to the simplex"}[self.post_processing]
        return said if self.private else f"NOT PRIVATE: a simulation for planning; {said}"

    def files(self) -> dict[str, str]:
        """Return the text of each file by its path in the folder of the release; ``internal/`` must not leave."""
        proof = self.calibration.certificate
        results = {
            "histogram.json": self.to_json(),
            "histogram.csv": self.to_csv(),
            "statement.txt": f"{self.statement}\n",
        }
        sources = {"chain.json": model_json(self.model.family, self.model.records)}
        if proof is not None:
            sources["certificate.json"] = json.dumps(proof) + "\n"
        if not self.private:
            return _within(INTERNAL, results | sources)
        return _within(PUBLISH, results | (sources if self.chain_is_public else {})) | _within(INTERNAL, sources)

    def save(self, folder: str | os.PathLike[str], *, figure: bool = True) -> Path:
        """Write the release to a new folder, which appears with all its files at once or not at all.

        Raises
        ------
        DataError
            Something of that name exists, or the folder that it is to be in does not.
        """
        with draft(folder) as making:
            making.write(self, figure=figure)
            return making.finish()


def _within(folder: str, files: Mapping[str, str]) -> dict[str, str]:
    return {f"{folder}/{name}": text for name, text in files.items()}


def _to_simplex(raw: NDArray[np.float64]) -> NDArray[np.float64]:
    """Nearest point (Euclidean) with entries ≥ 0 that sum to 1."""
    falling = np.sort(raw)[::-1]
    shift = (np.cumsum(falling) - 1) / np.arange(1, len(raw) + 1)
    return np.asarray(np.maximum(raw - shift[np.flatnonzero(falling > shift)[-1]], 0.0))


def _secrets(window: int, step: int | None) -> str:
    """What is hidden, in words."""
    if window == 1:
        return f"states at any one step ({step} s)" if step else "states at any one step"
    return f"courses of any {window} steps in a row" + (f" ({window * step} s)" if step else "")


def _beyond(window: int) -> str:
    """What is not hidden."""
    if window == 1:
        return "anything about a participant's whole record, a day or a habit"
    return f"anything about more than {window} steps in a row, such as a participant's whole record or a habit"


def _pauses(form: RecordFormat | None) -> list[str]:
    """Which values count as missing, and what splits a record."""
    if form is None:
        return []
    missing = ", ".join(text for text in MISSING_TEXTS if text and not form.states.claims(text))
    said = [f"A value that is empty or reads {missing} counts as missing, and when one is missing is public."]
    if form.split_after_seconds is not None:
        said.append(
            f"Of one participant, a pause of more than {form.split_after_seconds} s begins a segment of its own, "
            f"because, as the publisher says: {form.split_because!r}; the length of a pause is no evidence of that."
        )
    return said


def _records_of_chain(form: RecordFormat | None) -> str:
    if form is None or form.fitted is None:
        return "The model does not say which records the chain comes from."
    fitted = form.fitted
    return f"The chain was fitted to {fitted.records} records from {fitted.first} to {fitted.last}."


def _exp(epsilon: float) -> str:
    return f"{math.exp(epsilon):.4g}" if epsilon < 700 else "a number beyond all bounds"
