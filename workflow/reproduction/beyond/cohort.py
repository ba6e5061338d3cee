"""A cohort: simulated participants with a chain each, in pieces for the jobs of a cluster."""

from collections.abc import Iterator, Mapping
from typing import Any
from zlib import crc32

import numpy as np
import pandas as pd

from pufferflow.audit import lower_bound
from pufferflow.mechanisms import compute_scale
from pufferflow.models.chain import MarkovChain
from reproduction.tidy import scale_row


def simulated_chain(number: int, settings: Mapping[str, Any], seed: int) -> tuple[MarkovChain, int]:
    """Draw the chain of participant ``number``, s·I + (1 − s)·D, and the length of their record.

    The rows of D are uniform on the simplex, s is uniform from 0 to ``persistence``, and the length
    is log-uniform from ``shortest`` to ``longest``.
    """
    generator, states = _generator(seed, "cohort/chains", str(number)), settings["states"]
    stay = settings["persistence"] * generator.random()
    matrix = stay * np.eye(states) + (1 - stay) * generator.dirichlet(np.ones(states), size=states)
    shortest, longest = settings["shortest"], settings["longest"]
    length = np.exp(generator.uniform(np.log(shortest), np.log(longest + 1)))
    return MarkovChain(matrix), int(np.clip(length, shortest, longest))


def measure(
    piece: str, settings: Mapping[str, Any], options: Mapping[str, Any], seed: int
) -> Iterator[dict[str, Any]]:
    """Yield the rows of a piece such as "2-of-4": one per participant, mechanism and ε.

    ``released_error`` is the L1 error of one release of the participant's relative frequencies,
    ``expected_error`` its mean, ``least_error`` that at the lower bound.
    """
    part, pieces = map(int, piece.split("-of-"))
    people, bins = settings["participants"], settings["states"]
    for number in range(people * (part - 1) // pieces + 1, people * part // pieces + 1):
        chain, length = simulated_chain(number, settings, seed)
        given: dict[str, Any] = {"dataset": "synthetic", "label": "synthetic", "bins": bins}
        given |= {"participant": str(number), "observations": length, "lipschitz": 2 / length}
        bounds = {}
        for epsilon in settings["epsilons"] if settings["lower_bound"] else []:
            least = lower_bound(chain, length, epsilon).scale
            bounds[epsilon] = {"lower_bound": least, "least_error": bins * least * (2 / length)}
        for mechanism in settings["mechanisms"]:
            # the same unit noise for each ε
            generator = _generator(seed, f"cohort/{mechanism}", f"synthetic//{number}")
            noise = np.abs(generator.laplace(size=bins)).sum()
            for epsilon in settings["epsilons"]:
                own = options.get(mechanism, {})
                row = given | scale_row(compute_scale(mechanism, chain, length, epsilon, **own))
                if row["scale"] is not None:
                    row["expected_error"] = bins * row["scale"] * row["lipschitz"]
                    row["released_error"] = noise * row["scale"] * row["lipschitz"]
                yield row | bounds.get(epsilon, {})


def summarise(cohort: pd.DataFrame) -> pd.DataFrame:
    """Return mean, standard deviation and quantiles over the participants, by ε and mechanism."""
    rows = cohort.assign(gap=cohort["scale"] / cohort["lower_bound"])
    keys = ["epsilon", "mechanism", "quantity"]
    quantities = ["expected_error", "released_error", "least_error", "gap"]
    values = rows.melt(keys[:2], quantities, "quantity").dropna()
    found = values.groupby(keys, sort=False)["value"].describe(percentiles=[0.05, 0.5, 0.95])
    return found.drop(columns="min").reset_index()


def _generator(seed: int, purpose: str, participant: str) -> np.random.Generator:
    """Return the participant's own generator, so that the number of pieces has no effect."""
    return np.random.default_rng([seed, crc32(purpose.encode()), *participant.encode()])
