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

import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import numpy as np

from pufferflow._checks import check_choice, check_epsilon, check_path, check_type, check_whole
from pufferflow._files import PathLike, check_folder, workplace
from pufferflow._texts import as_unicode
from pufferflow.errors import BudgetError, LedgerError, ParameterError
from pufferflow.ledger import Ledger, Reservation
from pufferflow.markov.simulation import MOST_RECORDS
from pufferflow.publishing.account import Account, account_of
from pufferflow.publishing.calibration import Calibration, calibrate
from pufferflow.publishing.exact import ExactCounts, Model, count_records, public_model, simulated_counts
from pufferflow.publishing.folder import Draft, draft
from pufferflow.publishing.histogram import (
    CONFIDENCE,
    PostProcessing,
    PrivateHistogram,
    require_matplotlib,
)
from pufferflow.publishing.noise import DiscreteLaplace, add_noise, add_seeded_noise, count_scale
from pufferflow.publishing.reading import Reading
from pufferflow.publishing.tables import Source
from pufferflow.record_format import RecordFormat


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
    fitted_to_others: bool = False,
    chain_is_public: bool = False,
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
    fitted_to_others : bool
        Say that a chain which was fitted to records of the same time was fitted to those of other participants.
    chain_is_public : bool
        Say that the records that the chain was fitted to are public: then it and the certificate of the scale are
        among what may be published, which they otherwise are not.
    output : path, optional
        New folder to write to: ``publish`` in it may leave, ``internal`` must not.
    figure : bool
        Whether the folder gets a figure.

    Returns
    -------
    PrivateHistogram

    Raises
    ------
    DataError
        The table is malformed, its step is not the chain's, or the chain was fitted to its time; values are never
        shown.
    ParameterError
        An option is out of range.
    BudgetError
        The ledger's limit would be passed; nothing is released.
    LedgerError
        The ledger cannot be used.
    """
    if post_processing is not None:
        check_choice(post_processing, "post_processing", get_args(PostProcessing))
    check_type(chain_is_public, "chain_is_public", bool)
    with _drafted(output, figure) as making:
        exact, calibration, scale = _prepare(source, model, epsilon, form, reading, mechanism, fitted_to_others)
        account = account_of(source, ledger, exact.extent)
        if ledger is not None and not isinstance(ledger, Ledger) and not os.path.lexists(ledger):
            _tried(ledger, limit, exact, calibration, scale)  # a refused release leaves no ledger behind
        if making is not None:
            making.rehearse(_dummy(exact, calibration, scale, account, chain_is_public), figure=figure)
        book = (
            None
            if ledger is None
            else open_ledger(ledger, exact.epsilon if limit is None else limit, limit is not None)
        )
        reservation = None if book is None else _reserve(book, exact, calibration, scale)
        # nothing below may fail for a reason that could have been found above: the release is paid for
        drawn = exact.noisy(add_noise, calibration, scale).post_processed(post_processing)
        released = _accounted(drawn, account, chain_is_public)
        if making is not None:
            released = making.write(released, figure=figure)
            making.finish()
        if book is not None and reservation is not None:
            try:
                book.record(reservation)
            except LedgerError as error:  # what is paid for is not lost for want of a note
                return replace(released, warnings=(*released.warnings, as_unicode(str(error))))
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
    fitted_to_others: bool = False,
    chain_is_public: bool = False,
    output: str | os.PathLike[str] | None = None,
    figure: bool = True,
) -> dict[str, Any]:
    """Check all that :func:`release_histogram` needs and say what it would do; nothing is drawn, written or paid for.

    Parameters
    ----------
    source, model, epsilon, ledger, limit, form, reading, mechanism, fitted_to_others, chain_is_public, output, figure
        As for :func:`release_histogram`, which raises the same errors.

    Returns
    -------
    dict
        Facts that are public, as for a release, as plain JSON types: no count of a state is among them, as long as
        the columns have the roles they are given (participants are counted exactly). ``limit`` and ``left`` are those
        of the ledger after the release, None without one.
    """
    check_type(chain_is_public, "chain_is_public", bool)
    with _drafted(output, figure) as making:
        exact, calibration, scale = _prepare(source, model, epsilon, form, reading, mechanism, fitted_to_others)
        account = account_of(source, ledger, exact.extent)
        if making is not None:
            making.rehearse(_dummy(exact, calibration, scale, account, chain_is_public), figure=figure)
    facts: dict[str, Any] = {
        "records": exact.records,
        "participants": exact.participants,
        "segments": exact.segments,
        "longest_segment": exact.longest_segment,
        "columns": exact.columns,
        "unused_columns": exact.unused_columns,
        "states": exact.states.count,
        "epsilon": exact.epsilon,
        "mechanism": calibration.chosen.mechanism,
        "scale": scale / 2,
        "certified": calibration.certificate is not None,
        "noise_scale": scale,
        "error_95": DiscreteLaplace(scale).quantile(CONFIDENCE) / exact.records,
        "warnings": (*exact.said(calibration), *account.warnings),
        "limit": None,
        "left": None,
    }
    if ledger is not None:
        facts |= _tried(ledger, limit, exact, calibration, scale)
    return facts


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
    fitted_to_others: bool = False,
) -> PrivateHistogram:
    """Seeded twin of :func:`release_histogram`, for planning; **not private**, and it says so on everything.

    Parameters
    ----------
    source : path, Series, DataFrame or None
        None simulates ``length`` steps of the first chain of the family.
    model, epsilon, form, reading, mechanism, post_processing, fitted_to_others
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
        exact = count_records(source, model, epsilon, form, reading, fitted_to_others)
    else:
        assert length is not None
        exact = simulated_counts(public_model(model), form, check_epsilon(epsilon), length, rng)
    calibration = calibrate(exact.model.family, exact.longest_segment, exact.epsilon, mechanism)

    def draw(counts: Sequence[int], scale: float) -> list[int]:
        return add_seeded_noise(counts, scale, rng)

    made = exact.noisy(draw, calibration, count_scale(calibration.scale))
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
    if isinstance(ledger, Ledger):
        return ledger
    path = check_path(ledger, "ledger")
    if not os.path.lexists(path):
        try:
            return Ledger.create(path, limit)
        except LedgerError:
            if not path.exists():
                raise
    book = Ledger(path)  # made by another process meanwhile, or long before
    if given and limit != book.limit:
        raise ParameterError(
            f"the ledger {path} has the limit {book.limit:g}, not {limit:g}; change it with pufferflow ledger set-limit"
        )
    return book


def _prepare(
    source: Source,
    model: Model,
    epsilon: float,
    form: RecordFormat | None,
    reading: Reading | None,
    mechanism: str | None,
    fitted_to_others: bool,
) -> tuple[ExactCounts, Calibration, float]:
    """Exact counts, and the scale of the noise for them."""
    exact = count_records(source, model, epsilon, form, reading, fitted_to_others)
    calibration = calibrate(exact.model.family, exact.longest_segment, exact.epsilon, mechanism)
    return exact, calibration, count_scale(calibration.scale)


@contextmanager
def _drafted(output: PathLike | None, figure: bool) -> Iterator[Draft | None]:
    """A place for the release where one is to be written."""
    if output is None:
        yield None
        return
    if figure:
        require_matplotlib()
    with draft(output) as making:
        yield making


def _dummy(
    exact: ExactCounts, calibration: Calibration, scale: float, account: Account, chain_is_public: bool
) -> PrivateHistogram:
    """A release without the counts, to try whether one can be written."""
    return _accounted(exact.noisy(lambda counts, _: [0] * len(counts), calibration, scale), account, chain_is_public)


def _accounted(made: PrivateHistogram, account: Account, chain_is_public: bool) -> PrivateHistogram:
    warnings = (*made.warnings, *account.warnings)
    return replace(made, chain_is_public=chain_is_public, account=account, warnings=warnings)


def _tried(
    ledger: Ledger | str | os.PathLike[str],
    limit: float | None,
    exact: ExactCounts,
    calibration: Calibration,
    scale: float,
) -> dict[str, Any]:
    """What the release would leave of the limit, tried on a copy of the ledger; raises what the release would."""
    path = ledger.path if isinstance(ledger, Ledger) else check_path(ledger, "ledger")
    with workplace(Path(tempfile.gettempdir())) as folder:
        copy = folder / "ledger"
        if os.path.lexists(path):
            Ledger(path).copy_to(copy)
        else:
            check_folder(path)
        try:
            book = open_ledger(copy, exact.epsilon if limit is None else limit, limit is not None)
            _reserve(book, exact, calibration, scale)
        except (BudgetError, LedgerError, ParameterError) as error:
            error.args = (str(error).replace(str(copy), str(path)), *error.args[1:])
            raise
        return {key: book.to_dict()[key] for key in ("limit", "left")}


def _reserve(book: Ledger, exact: ExactCounts, calibration: Calibration, scale: float) -> Reservation:
    return book.reserve(
        exact.model.family,
        exact.longest_segment,
        mechanism=calibration.chosen.mechanism,
        epsilon=exact.epsilon,
        scale=scale / 2,
        query=f"histogram of {exact.states.count} states over {exact.records} records",
        certificate=calibration.certificate,
        form=exact.form,
        extent=exact.extent,
    )
