"""Synthetic records from what a release published, and from nothing else: post-processing, which costs no privacy.

The records are a path of a chain. Its transitions are the released ones, or those of a public chain. Where a histogram
was released too, each step x → y that the chain proposes is taken with probability min(1, π(y)P(y, x)/(π(x)P(x, y)))
(Metropolis and Hastings), π being the released frequencies projected to the simplex: then π is stationary, and the path
has both the released frequencies in the long run and the chain's way to move.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from pufferflow._checks import check_path, check_whole
from pufferflow._files import PathLike
from pufferflow._json import read_json
from pufferflow.errors import ChainError, DataError, ModelError, ParameterError
from pufferflow.markov import MarkovChain, simulate_chain
from pufferflow.models import read_public_model
from pufferflow.publishing.folder import PUBLISH
from pufferflow.publishing.histogram import PrivateHistogram, to_simplex
from pufferflow.publishing.released import PrivateRelease
from pufferflow.records.format import MOST_SECONDS, RecordFormat, parse_records

LABEL = "synthetic, not measured"
"""What every row says."""


@dataclass(frozen=True)
class Published:
    """What a release published, as far as synthetic records need it.

    Attributes
    ----------
    form : RecordFormat
        The states and the time step.
    frequencies : ndarray or None
        Released frequencies of the states, projected to the simplex, shape (k,).
    transitions : ndarray or None
        Released transition counts, negative ones as 0, shape (k, k).
    """

    form: RecordFormat
    frequencies: NDArray[np.float64] | None
    transitions: NDArray[np.float64] | None


def synthesise(
    release: PathLike, length: int, *, chain: PathLike | None = None, start: str | None = None, seed: int | None = None
) -> pd.DataFrame:
    """Return synthetic records that are a function of what a release published, of a public chain and of randomness.

    Parameters
    ----------
    release : path
        The folder of a release, or ``publish`` in it; nothing else is read of it.
    length : int
        Records to make.
    chain : path, optional
        Model file of a public chain, for releases without transitions (default: the one that was published).
    start : str, optional
        Time of the first record, where the release has a time step (default: steps are counted).
    seed : int, optional
        For the same records again; there is nothing private that it would tell.

    Returns
    -------
    DataFrame
        Columns ``time`` or ``step``, ``value`` (of numbers evenly drawn from the bin, of an open bin its end) and
        ``origin``, which says that they are synthetic.

    Raises
    ------
    ModelError
        A file of the release is missing or is not as it was published.
    ParameterError
        There is no chain, it has other states, or an option is out of range.
    """
    published, length = read_published(release), check_whole(length, "length", most=10**7)
    folder = _publish(release)
    if chain is None and published.transitions is None and (folder / "chain.json").exists():
        chain = folder / "chain.json"
    rng = np.random.default_rng(None if seed is None else check_whole(seed, "seed", 0, None))
    states = simulate_chain(_chain(published, chain), length, rng)
    return pd.DataFrame(
        {
            **_times(published.form, length, start),
            "value": _values(published.form, states, rng),
            "origin": LABEL,
        }
    )


def read_published(release: PathLike) -> Published:
    """Read the numbers of a release; raises as :func:`synthesise`."""
    folder = _publish(release)
    for kind in (PrivateRelease, PrivateHistogram):
        if (folder / f"{kind.stem}.json").exists():
            return read_json(folder / f"{kind.stem}.json", _published, "what release wrote")
    raise ModelError(f"{folder} has no {PrivateRelease.stem}.json or {PrivateHistogram.stem}.json; give a release")


def _publish(release: PathLike) -> Path:
    folder = check_path(release, "release")
    return folder / PUBLISH if (folder / PUBLISH).is_dir() else folder


def _published(document: Any) -> Published:
    if isinstance(document, dict) and document.get("private") is False:
        raise ModelError("it is a simulation, not a release")
    try:
        if document["private"] is not True:
            raise KeyError("private")
        form = parse_records({"states": document["states"], "step_seconds": document["step_seconds"]})
        k = form.states.count
        if "bins" in document:
            counts = np.array([row["noisy_count"] for row in document["bins"]], dtype=np.float64)
            return Published(form, _frequencies(counts, k), None)
        totals: dict[str, NDArray[np.float64]] = {}
        for one in document["statistics"]:
            if one["name"] in ("histogram", "transitions"):
                totals.setdefault(one["name"], np.array(one["noisy_counts"], dtype=np.float64).sum(axis=0))
        moves = totals.get("transitions")
        return Published(
            form,
            None if "histogram" not in totals else _frequencies(totals["histogram"], k),
            None if moves is None else np.maximum(moves.reshape(k, k), 0.0),
        )
    except (KeyError, TypeError, ValueError, IndexError, OverflowError, DataError) as error:
        raise ModelError("it is not as release wrote it; give the folder of a release") from error


def _frequencies(counts: NDArray[np.float64], k: int) -> NDArray[np.float64]:
    """Projected to the simplex; the number of records is public, but the sum of the noisy counts is as good here."""
    return to_simplex(counts.reshape(k) / max(float(counts.sum()), 1.0))


def _chain(published: Published, path: PathLike | None) -> MarkovChain:
    """The chain whose paths are the records."""
    k, law = published.form.states.count, published.frequencies
    if path is not None:
        family = read_public_model(path).family
        try:
            chains = family.chains
        except ChainError:
            chains = ()
        if len(chains) != 1 or chains[0].states != k:
            raise ParameterError(
                f"{path} is not one chain of {k} states, from which records could be drawn; release transitions beside "
                "the histogram, or give a public chain"
            )
        proposed = chains[0].transition_matrix
    elif published.transitions is None:
        raise ParameterError(
            "the release has no transitions and no chain was published; release transitions beside the histogram, or "
            "give a public chain"
        )
    else:
        moves = published.transitions
        total = moves.sum()
        law = law if law is not None else moves.sum(axis=0) / total if total else np.full(k, 1 / k)
        rows = moves.sum(axis=1, keepdims=True)
        proposed = np.where(rows > 0, moves / np.where(rows > 0, rows, 1.0), law)
    if law is None:
        law = MarkovChain(proposed).stationary_distribution
    if published.frequencies is None:
        return MarkovChain(proposed, law / law.sum())
    return MarkovChain(_with_law(proposed, law), law / law.sum())


def _with_law(proposed: NDArray[np.float64], law: NDArray[np.float64]) -> NDArray[np.float64]:
    """Transitions that keep ``law``; where nothing leads back, such as from a state that has none, all are proposed."""
    k = len(law)
    mixed = 0.99 * proposed + 0.01 * law  # a chain that cannot move back would never be taken
    flow = law[:, None] * mixed
    ratio = np.divide(flow.T, flow, out=np.ones((k, k)), where=flow > 0)
    moved = mixed * np.minimum(1.0, ratio)
    np.fill_diagonal(moved, 0.0)
    return np.asarray(moved + np.diag(1.0 - moved.sum(axis=1)).clip(min=0.0))


def _times(form: RecordFormat, length: int, start: str | None) -> dict[str, Any]:
    if start is None:
        return {"step": np.arange(1, length + 1)}
    if form.step_seconds is None:
        raise ParameterError("start is a time, but the release has no time step; leave it out")
    try:
        first = pd.Timestamp(start)
        last = first + pd.Timedelta(seconds=check_whole(form.step_seconds * length, "length", most=MOST_SECONDS))
    except (ValueError, OverflowError):
        last = None
    if last is None or pd.isna(last):
        raise ParameterError(f"start is {start!r}; give a time such as 2024-01-01T00:00")
    times = pd.date_range(first, periods=length, freq=pd.Timedelta(seconds=form.step_seconds))
    return {"time": times.strftime("%Y-%m-%dT%H:%M:%S")}


def _values(form: RecordFormat, states: NDArray[np.int64], rng: np.random.Generator) -> Any:
    edges = form.states.edges
    if edges is None:
        return np.array(form.states.names, dtype=object)[states]
    low, high = np.array(list(pairwise([edges[0], *edges, edges[-1]]))).T
    return low[states] + (high - low)[states] * rng.random(len(states))
