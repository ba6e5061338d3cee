"""A private histogram: exact counts in, noisy counts out, with what is guaranteed.

*Why integer noise keeps the guarantee.* Let h(x) be the counts of the states in records x, and let M(x) add to each
count independent noise with P(Z = z) ∝ exp(−|z|/s). For two data sets that differ in d records, h differs by at most
2d in L1 norm, so for every output w

    P(M(x) = w) / P(M(x') = w) = exp( Σ_j (|w_j − h_j(x')| − |w_j − h_j(x)|) / s ) ≤ exp(2d/s) = e^(c·d),  c = 2/s.

This factor, e^c for each changed record, is all that the mechanisms use of the noise. Markov quilts (Theorem 4.3): with
X_N the nearby nodes of X_i, P(w | x_i) = Σ P(w | x) P(x | x_i); given the quilt the remote nodes are independent of
X_i, the nearby ones change w's probability by at most e^(c·card), the quilt's law by at most e^(e_Q), so the loss is at
most e_Q + c·card ≤ ε as soon as 1/c = s/2 ≥ card/(ε − e_Q). Group privacy is the case d = T; leakage and GK16 start
from e^c too. Summation over outputs takes the place of integrals, and nothing asks for a density. So s ≥ 2σ suffices,
σ being the mechanism's scale for a 1-Lipschitz query, and :func:`pufferflow.publishing.noise.count_scale` rounds up.

Relative frequencies are the noisy counts over n, which is public: post-processing.
"""

from __future__ import annotations

import json
import math
import os
import shutil
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from pufferflow._checks import check_choice, check_confidence, check_epsilon, check_path, check_type, check_whole
from pufferflow._files import check_folder, usual_mode, write_atomic
from pufferflow.errors import BudgetError, DataError, LedgerError, ParameterError
from pufferflow.markov import BinaryInterval, Family, IntervalFamily, MarkovChain, as_family, simulate_chain
from pufferflow.markov.simulation import MOST_RECORDS
from pufferflow.models import PublicModel, model_document, number_of_states, read_public_model
from pufferflow.publishing.calibration import Calibration, calibrate
from pufferflow.publishing.fitting import Fit
from pufferflow.publishing.noise import DiscreteLaplace, add_noise, add_seeded_noise, count_scale
from pufferflow.publishing.records import GUESSES, Reading, open_records, stamp
from pufferflow.publishing.tables import Source
from pufferflow.publishing.tally import Tally
from pufferflow.record_format import RecordFormat, StateSpace

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from pufferflow.ledger import Ledger, Reservation

PostProcessing: TypeAlias = Literal["clip", "simplex"]
Model: TypeAlias = "PublicModel | Fit | Family | MarkovChain | str | os.PathLike[str]"

CONFIDENCE = 0.95
FILES = ("histogram.json", "histogram.csv", "statement.txt", "certificate.json")
"""What a release consists of, beside its figure; there is no certificate where the scale has none."""
OUTSIDE = (
    "how long the program ran and what memory it took",
    "that a release was refused, and at which line",
    "the file itself, its name, its size and other copies of the data",
    "what else is published about the same records and is not in the ledger",
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
    chain_from_this_data : bool
    seed : int or None
        Of a simulation.
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
    chain_from_this_data: bool = False
    seed: int | None = None

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
            "Not guaranteed: anything about a participant's whole record, a day or a habit; and to somebody who "
            "believes in a chain outside the set, only epsilon plus twice its distance (Theorem 2.4).",
            "Further releases on the same records add up; the ledger keeps account.",
            f"Outside any such guarantee: {'; '.join(OUTSIDE)}.",
        ]
        if not self.private:
            sentences.insert(
                0,
                f"NOT PRIVATE: this is a simulation with seed {self.seed}, from which anybody can repeat the noise; it "
                "is for planning. Of a release with the same options one could say what follows.",
            )
        if self.chain_from_this_data:
            sentences.append(
                "The chain was fitted to these same data: the guarantee treats the transition matrix and the states as "
                "public, as the paper does; what they reveal is not counted, and the files of this release show them."
            )
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
            "chain_from_this_data": self.chain_from_this_data,
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
        if self.chain_from_this_data:
            said += "; the chain was fitted to these same data and is treated as public"
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


def release_histogram(
    source: Source,
    model: Model,
    epsilon: float,
    *,
    ledger: Ledger | str | os.PathLike[str] | None,
    limit: float | None = None,
    form: RecordFormat | None = None,
    reading: Reading | None = None,
    mechanism: str | None = None,
    post_processing: PostProcessing | None = None,
    chain_from_this_data: bool = False,
    output: str | os.PathLike[str] | None = None,
    figure: bool = True,
) -> PrivateHistogram:
    """Release the histogram of a table.

    The noise is drawn from the operating system's randomness; there is no seed. It is paid for in the ledger before it
    is drawn, and recorded after the output is written.

    Parameters
    ----------
    source : path, Series or DataFrame
    model : PublicModel, Fit, Family, MarkovChain or path
        Θ, from outside the data.
    epsilon : float
        ε > 0.
    ledger : Ledger, path or None
        Where releases of these data add up; a path that does not exist gets a new ledger. None keeps no account: then
        the caller has to.
    limit : float, optional
        Of a new ledger (default: ``epsilon``, so that a second release needs a decision).
    form : RecordFormat, optional
        How records become states, where the model does not say.
    reading : Reading, optional
        Columns and clock (default: as the data were read that the chain was fitted to).
    mechanism : str, optional
        Default: the least certified noise, which depends on Θ, T and ε alone.
    post_processing : {"clip", "simplex"}, optional
    chain_from_this_data : bool
        Say that the chain was fitted to these same data, which is otherwise refused where it shows.
    output : path, optional
        New folder to write to.
    figure : bool
        Whether the folder gets a figure.

    Returns
    -------
    PrivateHistogram

    Raises
    ------
    DataError
        The table is malformed, or the chain was fitted to it; values are never shown.
    ParameterError
        An option is out of range.
    BudgetError
        The ledger's limit would be passed; nothing is released.
    LedgerError
        The ledger cannot be used.
    """
    if post_processing is not None:
        check_choice(post_processing, "post_processing", get_args(PostProcessing))
    if output is not None:
        require_new(output)
        if figure:
            require_matplotlib()
    exact, calibration, scale = _prepare(source, model, epsilon, form, reading, mechanism, chain_from_this_data)
    book = None if ledger is None else open_ledger(ledger, exact.epsilon if limit is None else limit, limit is not None)
    reservation = None if book is None else _reserve(book, exact, calibration, scale)
    released = exact.noisy(add_noise, calibration, scale, chain_from_this_data).post_processed(post_processing)
    if output is not None:
        released.save(output, figure=figure)
    if book is not None and reservation is not None:
        book.record(reservation)
    return released


def rehearse_release(
    source: Source,
    model: Model,
    epsilon: float,
    *,
    ledger: Ledger | str | os.PathLike[str] | None,
    limit: float | None = None,
    form: RecordFormat | None = None,
    reading: Reading | None = None,
    mechanism: str | None = None,
    chain_from_this_data: bool = False,
    output: str | os.PathLike[str] | None = None,
    figure: bool = True,
) -> dict[str, Any]:
    """Check all that :func:`release_histogram` needs and say what it would do; nothing is drawn, written or paid for.

    Parameters
    ----------
    source, model, epsilon, ledger, limit, form, reading, mechanism, chain_from_this_data, output, figure
        As for :func:`release_histogram`, which raises the same errors.

    Returns
    -------
    dict
        Facts that are public beforehand, as plain JSON types: no count of a state is among them. ``limit`` and
        ``left`` are those of the ledger after the release, None without one.
    """
    if output is not None:
        require_new(output)
        if figure:
            require_matplotlib()
    exact, calibration, scale = _prepare(source, model, epsilon, form, reading, mechanism, chain_from_this_data)
    facts: dict[str, Any] = {
        "records": exact.records,
        "participants": exact.participants,
        "segments": exact.segments,
        "longest_segment": exact.longest_segment,
        "states": exact.states.count,
        "epsilon": exact.epsilon,
        "mechanism": calibration.chosen.mechanism,
        "scale": calibration.scale,
        "certified": calibration.certificate is not None,
        "noise_scale": scale,
        "error_95": DiscreteLaplace(scale).quantile(CONFIDENCE) / exact.records,
        "limit": None,
        "left": None,
    }
    if ledger is None:
        return facts
    from pufferflow.ledger import Ledger

    path = ledger.path if isinstance(ledger, Ledger) else check_path(ledger, "ledger")
    terms = exact.epsilon if limit is None else limit, limit is not None
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "ledger"
        if path.exists():
            open_ledger(ledger, *terms)
            shutil.copyfile(path, copy)
        book = open_ledger(copy, *terms)
        try:
            _reserve(book, exact, calibration, scale)
        except (BudgetError, LedgerError) as error:
            error.args = (str(error).replace(str(copy), str(path)), *error.args[1:])
            raise
        return facts | {key: book.to_dict()[key] for key in ("limit", "left")}


def simulate_release(
    source: Source | None,
    model: Model,
    epsilon: float,
    *,
    seed: int,
    length: int | None = None,
    form: RecordFormat | None = None,
    reading: Reading | None = None,
    mechanism: str | None = None,
    post_processing: PostProcessing | None = None,
    chain_from_this_data: bool = False,
) -> PrivateHistogram:
    """Seeded twin of :func:`release_histogram`, for planning; **not private**, and it says so on everything.

    Parameters
    ----------
    source : path, Series, DataFrame or None
        None simulates ``length`` steps of the first chain of the family.
    model, epsilon, form, reading, mechanism, post_processing, chain_from_this_data
        As for :func:`release_histogram`.
    seed : int
    length : int, optional

    Raises
    ------
    ParameterError
        An option is out of range, or neither or both of ``source`` and ``length`` are given.
    DataError
        The table is malformed.
    """
    if (source is None) == (length is None):
        raise ParameterError("give either a table or a length, the number of steps to simulate")
    seed = check_whole(seed, "seed", 0, None)
    if length is not None:
        length = check_whole(length, "length", most=MOST_RECORDS)
    rng = np.random.default_rng(seed)
    if source is not None:
        exact = _count(source, model, epsilon, form, reading, chain_from_this_data)
    else:
        assert length is not None
        exact = _simulated_counts(_public_model(model), form, check_epsilon(epsilon), length, rng)
    calibration = calibrate(exact.model.family, exact.longest_segment, exact.epsilon, mechanism)

    def draw(counts: Sequence[int], scale: float) -> list[int]:
        return add_seeded_noise(counts, scale, rng)

    made = exact.noisy(draw, calibration, count_scale(calibration.scale), chain_from_this_data)
    return replace(made, private=False, seed=seed).post_processed(post_processing)


def open_ledger(ledger: Ledger | str | os.PathLike[str], limit: float, given: bool = True) -> Ledger:
    """Open a ledger, or make one with a limit where there is none.

    Raises
    ------
    LedgerError
        It cannot be used.
    ParameterError
        It exists and has another limit than the one ``given``.
    """
    from pufferflow.ledger import Ledger

    if isinstance(ledger, Ledger):
        return ledger
    path = check_path(ledger, "ledger")
    if not path.exists():
        return Ledger.create(path, limit)
    book = Ledger(path)
    if given and limit != book.limit:
        if not book.to_dict()["releases"]:  # made by a release that was refused
            book.set_limit(limit)
            return book
        raise ParameterError(
            f"the ledger {path} has the limit {book.limit:g}, not {limit:g}; change it with pufferflow ledger set-limit"
        )
    return book


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


# -- exact counts, which never leave this module -----------------------------------------------------------


@dataclass(frozen=True)
class _Exact:
    counts: tuple[int, ...]
    records: int
    segments: int
    longest_segment: int
    participants: int
    states: StateSpace
    model: PublicModel
    epsilon: float
    form: dict[str, Any] | None = None
    """How the records became steps, for the ledger."""

    def __repr__(self) -> str:
        return "_Exact(…)"

    def noisy(
        self,
        draw: Callable[[Sequence[int], float], list[int]],
        calibration: Calibration,
        scale: float,
        chain_from_this_data: bool,
    ) -> PrivateHistogram:
        return PrivateHistogram(
            states=self.states.names,
            counts=tuple(draw(self.counts, scale)),
            records=self.records,
            segments=self.segments,
            longest_segment=self.longest_segment,
            participants=self.participants,
            epsilon=self.epsilon,
            calibration=calibration,
            noise_scale=scale,
            model=self.model,
            chain_from_this_data=chain_from_this_data,
        )


def _prepare(
    source: Source,
    model: Model,
    epsilon: float,
    form: RecordFormat | None,
    reading: Reading | None,
    mechanism: str | None,
    same_data: bool,
) -> tuple[_Exact, Calibration, float]:
    """Exact counts, and the scale of the noise for them."""
    exact = _count(source, model, epsilon, form, reading, same_data)
    calibration = calibrate(exact.model.family, exact.longest_segment, exact.epsilon, mechanism)
    return exact, calibration, count_scale(calibration.scale)


def _reserve(book: Ledger, exact: _Exact, calibration: Calibration, scale: float) -> Reservation:
    return book.reserve(
        exact.model.family,
        exact.longest_segment,
        mechanism=calibration.chosen.mechanism,
        epsilon=exact.epsilon,
        scale=scale / 2,
        query=f"histogram of {exact.states.count} states over {exact.records} records",
        certificate=calibration.certificate,
        form=exact.form,
    )


def _public_model(model: Model) -> PublicModel:
    if isinstance(model, PublicModel | Fit):
        return model.model if isinstance(model, Fit) else model
    if isinstance(model, str | os.PathLike):
        return read_public_model(model)
    return PublicModel(as_family(model))


def _count(
    source: Source,
    model: Model,
    epsilon: float,
    form: RecordFormat | None,
    reading: Reading | None,
    same_data: bool,
) -> _Exact:
    epsilon, public = check_epsilon(epsilon), _public_model(model)
    if reading is not None:
        check_type(reading, "reading", Reading)
    form = public.records if form is None else form
    if form is not None:
        check_type(form, "form", RecordFormat)
    else:
        raise ParameterError(
            "the model does not say what its states are; give their names or edges (form in Python: states or edges in "
            "the shell), or a chain that fit made"
        )
    if form.states.count != (k := number_of_states(public.family)):
        raise ParameterError(f"{form.states.count} states are given, the chain has {k}; give one name a state")
    reading = Reading(**form.reading) if reading is None else reading  # type: ignore[arg-type]
    records = open_records(source, replace(reading, show_values=False))
    if form.step_seconds is not None and records.columns["time"] is None:
        raise DataError(
            f"{records.table.where}: the chain has steps of {form.step_seconds} s, so there must be times; name their "
            "column (time)"
        )
    if form.step_seconds is None and records.reading.time is not None:
        raise ParameterError("the chain was fitted to rows without times; leave time out, or fit it with times")
    if form.step_seconds is None and records.columns["time"] is not None:
        raise DataError(
            f"{records.table.where}: the chain was fitted to rows without times, but there is a column of times; "
            "say rows_are_steps if every row is one step, or fit the chain with times"
        )
    tally = Tally(form, transitions=False)
    tally.read(records)
    observed = int(tally.state_counts.sum())
    if not observed:
        raise DataError(f"{records.table.where}: no value was recorded, so there is nothing to release")
    # without times the numbers of the first and the last step say no more than the number of records does
    if form.fitted is not None and form.step_seconds is not None and not same_data:
        here = (stamp(records, tally.first), stamp(records, tally.last), observed)
        if here == (form.fitted.first, form.fitted.last, form.fitted.records):
            raise DataError(
                f"{records.table.where}: the chain was fitted to these same records (same times, same number); give "
                "one from another period or cohort, or say chain_from_this_data"
            )
    _check_starts(public.family, tally, records.table.where)
    owners, lengths = tally.segments()
    return _Exact(
        counts=tuple(tally.state_counts.sum(axis=0).tolist()),
        records=observed,
        segments=len(lengths),
        longest_segment=int(lengths.max()),
        participants=len(np.unique(owners)),
        states=form.states,
        model=PublicModel(public.family, form),
        epsilon=epsilon,
        form=replace(form, fitted=None, reading={}).to_dict() | {"columns": records.columns} | _signs(records.reading),
    )


def _signs(reading: Reading) -> dict[str, str | bool]:
    """Those options of reading, where they are not the default, with which the same rows become other steps."""
    same = (*GUESSES, "rows_are_steps", "separator")  # the columns that are read say it, or it does not matter
    return {name: value for name, value in reading.given().items() if name not in same}


def _check_starts(family: Family, tally: Tally, where: str) -> None:
    """Raise unless a given start, which is the law of a participant's first row, is that of every segment."""
    if isinstance(family, IntervalFamily) or all(chain.start != "given" for chain in family.chains):
        return
    why = "a first value is missing" if tally.late else "a segment begins after a pause" if tally.closed else ""
    if why:
        raise DataError(
            f'{where}: the chain has a given start, that of a participant\'s first row, but {why}; say "any" or '
            '"stationary" for initial_distribution in the model'
        )


def _simulated_counts(
    model: PublicModel, form: RecordFormat | None, epsilon: float, length: int, rng: np.random.Generator
) -> _Exact:
    if isinstance(model.family, IntervalFamily):
        raise ParameterError("a family of intervals has no chain to simulate; give a table, or a model of one chain")
    chain = model.family.chains[0]
    if chain.start == "any":
        chain = MarkovChain(chain.transition_matrix)
    form = model.records if form is None else form
    if form is not None:
        check_type(form, "form", RecordFormat)
    space = form.states if form is not None else StateSpace.categories([f"state {j + 1}" for j in range(chain.states)])
    counts = np.bincount(simulate_chain(chain, length, rng), minlength=chain.states)
    return _Exact(tuple(counts.tolist()), length, 1, length, 1, space, PublicModel(model.family, form), epsilon)


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


def _exp(epsilon: float) -> str:
    return f"{math.exp(epsilon):.4g}" if epsilon < 700 else "a number beyond all bounds"
