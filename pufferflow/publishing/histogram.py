"""What a release is: noisy counts, everything that was decided without the data, and its files."""

from __future__ import annotations

import json
import math
import os
import shutil
import tempfile
from dataclasses import dataclass, field, replace
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from pufferflow._checks import check_choice, check_confidence, check_path
from pufferflow._files import check_folder, usual_mode, write_atomic
from pufferflow.errors import DataError, ParameterError
from pufferflow.markov import BinaryInterval, Family, IntervalFamily
from pufferflow.models import PublicModel, model_document
from pufferflow.publishing.account import Account
from pufferflow.publishing.calibration import Calibration
from pufferflow.publishing.noise import DiscreteLaplace
from pufferflow.publishing.records import MISSING_TEXTS
from pufferflow.record_format import RecordFormat

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PostProcessing: TypeAlias = Literal["clip", "simplex"]

CONFIDENCE = 0.95
FILES = ("histogram.json", "histogram.csv", "statement.txt", "certificate.json")
"""What a release consists of, beside its figure; there is no certificate where the scale has none."""
OUTSIDE = (
    "how long the program ran and what memory it took",
    "that a release was refused, and at which line",
    "the file itself, its name, its size and other copies of the data",
    "what else is published about the same records and is not added up with this release",
)
"""What no noise covers."""


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
    unused_columns : int
        Columns of the table that have no role.
    warnings : tuple of str
        What may be right but weakens the guarantee where it is not.
    columns : dict
        Name of the column of each role; it is in no file.
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
    unused_columns: int = 0
    warnings: tuple[str, ...] = ()
    columns: dict[str, str | None] = field(default_factory=dict, repr=False)
    seed: int | None = None
    account: Account | None = None

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
        form, calibration = self.model.records, self.calibration
        moment = f"step ({form.step_seconds} s)" if form is not None and form.step_seconds else "step"
        proof = "certificate.json proves that this scale suffices"
        if calibration.certificate is None:
            proof = f"there is no certificate of it ({calibration.reason.removeprefix('no certificate: ')})"
        sentences = [
            f"Guarantee: whoever believes that the records follow {_theta(self.model.family)}, changes the odds "
            f"between any two states at any one {moment} of any one participant by a factor of at most e^epsilon = "
            f"{_exp(self.epsilon)} on seeing this histogram (Pufferfish privacy, epsilon = {self.epsilon:g} nats; "
            "Song, Wang and Chaudhuri, SIGMOD 2017).",
            f"Noise: independent discrete Laplace noise of scale {self.noise_scale:.10g} on each count, twice the "
            f"scale {calibration.scale:.10g} that {self.mechanism} asks for segments of up to {self.longest_segment} "
            f"steps, rounded up; {proof}.",
            f"Public, and not protected: this set of chains, the states, epsilon, the number of records "
            f"({self.records}), when there is a record, and the lengths of the segments ({self.segments} of "
            f"{self.participants} participant(s)), which are taken to be independent of each other.",
            *_pauses(form),
            _records_of_chain(form),
            "Not guaranteed: anything about a participant's whole record, a day or a habit; and to somebody who "
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
        if self.post_processing is not None:
            how = {"clip": "clipped to [0, 1]", "simplex": "projected to the probability simplex"}[self.post_processing]
            sentences.append(f"Frequencies were {how} afterwards, which costs no privacy.")
        return " ".join(sentences)

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain JSON types, without the certificate, which is a file of its own."""
        form = self.model.records
        document: dict[str, Any] = {
            "histogram": "pufferflow",
            "version": 1,
            "private": self.private,
            "statement": self.statement,
            "epsilon": self.epsilon,
            "mechanism": self.mechanism,
            "scale": self.calibration.scale,
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
            "model": model_document(self.model.family) | ({} if form is None else {"records": form.to_dict()}),
        }
        if not self.private:
            document["warning"] = "NOT PRIVATE: a simulation, for planning"
            document["seed"] = self.seed
        return document

    def to_json(self) -> str:
        """Return the release as JSON text."""
        return json.dumps(self.to_dict(), indent=1, allow_nan=False, ensure_ascii=False) + "\n"

    def to_csv(self) -> str:
        """Return the rows of :meth:`to_frame` as CSV text."""
        return str(self.to_frame().to_csv(index=False, lineterminator="\n"))

    def figure(self) -> Figure:
        """Return a figure with error bars (needs matplotlib)."""
        require_matplotlib()
        from pufferflow.reporting.figures.publishing import histogram

        return histogram(self.to_frame(), self._caption())

    def _caption(self) -> str:
        said = f"{self.records:,} records, ε = {self.epsilon:g}, {self.mechanism}"
        said += {None: "", "clip": ", clipped to [0, 1]", "simplex": ", projected to the simplex"}[self.post_processing]
        return said if self.private else f"NOT PRIVATE: a simulation for planning; {said}"

    def save(self, folder: str | os.PathLike[str], *, figure: bool = True) -> Path:
        """Write the release to a new folder, which appears with all its files at once or not at all.

        Raises
        ------
        DataError
            Something of that name exists, or the folder that it is to be in does not.
        ParameterError
            There is no matplotlib for the figure.
        """
        target = require_new(folder)
        building = Path(tempfile.mkdtemp(dir=target.parent, prefix=f".{target.name}."))
        try:
            proof = self.calibration.certificate
            proof_text = None if proof is None else json.dumps(proof) + "\n"
            for name, content in zip(
                FILES, (self.to_json(), self.to_csv(), self.statement + "\n", proof_text), strict=True
            ):
                if content is not None:
                    write_atomic(building / name, content)
            if figure:
                drawn = self.figure()
                from pufferflow.reporting.style import save_figure

                save_figure(drawn, building / "histogram")
            building.chmod(usual_mode(0o777))
            require_new(target)
            building.rename(target)
        except BaseException:
            shutil.rmtree(building, ignore_errors=True)
            raise
        return target


def require_new(folder: str | os.PathLike[str]) -> Path:
    """Return the path of a new folder; a release is paid for, so none is overwritten or lost.

    Raises
    ------
    DataError
        Something of that name exists, or the folder that it is to be in does not.
    """
    target = check_path(folder, "output")
    if target.exists() or target.is_symlink():
        raise DataError(f"{target} exists already; give another output, for a release is never overwritten")
    check_folder(target)
    return target


def require_matplotlib() -> None:
    """Raise :class:`ParameterError` unless figures can be drawn."""
    if find_spec("matplotlib") is None:
        raise ParameterError(
            "figures need matplotlib, which is not installed; install pufferflow[workflow], or ask for no figure"
        )


def _to_simplex(raw: NDArray[np.float64]) -> NDArray[np.float64]:
    """Nearest point (Euclidean) with entries ≥ 0 that sum to 1."""
    falling = np.sort(raw)[::-1]
    shift = (np.cumsum(falling) - 1) / np.arange(1, len(raw) + 1)
    return np.asarray(np.maximum(raw - shift[np.flatnonzero(falling > shift)[-1]], 0.0))


def _theta(family: Family) -> str:
    if isinstance(family, IntervalFamily):
        return f"any chain on these {family.states} states between the bounds of the model, from any start"
    if isinstance(family, BinaryInterval):
        return f"any binary chain that stays with probabilities in [{family.low:g}, {family.high:g}], from any start"
    starts = {"stationary": "its stationary start", "any": "any start", "given": "its given start"}
    kinds = " or ".join(dict.fromkeys(starts[chain.start] for chain in family.chains))
    count = len(family.chains)
    return (
        f"the chain of the model from {kinds}"
        if count == 1
        else f"one of the {count} chains of the model, from {kinds}"
    )


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
