"""Related bounds of the loss under correlation, on the same chains as ours."""

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pufferflow._util.types import Ints
from pufferflow.audit import lower_bound
from pufferflow.mechanisms import compute_scale, leakage_loss
from pufferflow.models.chain import MarkovChain
from pufferflow.publish.noise import most_frequent
from reproduction.beyond.measures import Case, Row
from reproduction.chains import fit_chains
from reproduction.data.discretise import discretise
from reproduction.data.sample import pooled
from reproduction.tidy import named_generator

Floats = NDArray[np.float64]
WAYS = (("one by one", "leakage"), *product(["sorted"], ["leakage", "mqm-exact", "group-dp"]))
MECHANISMS = {"none": ("leakage", "mqm-exact", "mqm-approx", "group-dp"), "any": ("leakage",)}


def random_cases(chains: int, length: int, seed: int) -> Iterator[Case]:
    """Yield stationary random chains of 2 to 6 states, some almost deterministic, some sticky."""
    given = {"dataset": "synthetic", "label": "synthetic", "observations": length, "length": length}
    generator = named_generator(seed, "beyond/related_bounds")
    for number in range(chains):
        states = 2 + number % 5
        rows = np.full(states, generator.choice([0.5, 1, 5]))
        stay = generator.choice([0, 0.5, 0.9])
        matrix = stay * np.eye(states) + (1 - stay) * generator.dirichlet(rows, states)
        yield MarkovChain(matrix), given | {"group": f"{states} states", "participant": str(number)}


class TemporalLeakage:
    """Temporal privacy leakage of c-DP at every step (Cao et al., ICDE 2017), stationary start.

    Backward leakage follows α ← c + L(α) with L of the reversed chain, forward leakage the same
    with L of the chain; both start at c, and the loss of a record is their sum minus c.
    """

    def __init__(self, chain: MarkovChain, length: int) -> None:
        self.length = length
        matrix, start = chain.transition_matrix, chain.stationary_distribution
        reverse = matrix.T * start / start[:, None]
        self.steps = [extremes(rows) for rows in (reverse, matrix)]

    def loss(self, cost: float) -> float:
        """Return the largest loss of a record if each release is ``cost``-DP."""
        backward, forward = (self._leakage(points, cost) for points in self.steps)
        most = min(self.length, len(backward) + len(forward))  # later ones have converged
        first = np.arange(most)
        one, other = np.minimum(first, len(backward) - 1), self.length - 1 - first
        return float((backward[one] + forward[np.minimum(other, len(forward) - 1)]).max() - cost)

    def _leakage(self, points: Floats, cost: float) -> Floats:
        """Return the leakage after 1, 2, … records, until it changes by less than 1e-13."""
        if np.isclose(points[points[:, 1] == 0, 0], 1, rtol=1e-12).any():
            # two rows without a common value: L(α) = α
            return np.asarray(cost * np.arange(1.0, self.length + 1))
        found = [cost]
        while len(found) < self.length:
            found.append(cost + revealed(points, found[-1]))
            if found[-1] - found[-2] <= 1e-13 * found[-1]:
                break
        return np.array(found)

    def scale(self, epsilon: float) -> float:
        """Return the Laplace scale at which the loss is ε, to 1e-10."""
        from scipy.optimize import brentq  # loads slowly

        if self.loss(epsilon) <= epsilon:  # independent records
            return 1 / epsilon
        low, high = math.log(epsilon / self.length) - 1e-9, math.log(epsilon)
        return math.exp(-brentq(lambda x: self.loss(math.exp(x)) - epsilon, low, high, xtol=1e-10))


def revealed(points: Floats, loss: float) -> float:
    """Return L(loss): the largest loss of one value by a ``loss``-DP release of another.

    ``points`` are the :func:`extremes` of the first value's distributions, given the other one.
    """
    gain = math.expm1(min(loss, 700.0))
    return math.log(((1 + gain * points[:, 0]) / (1 + gain * points[:, 1])).max())


def certainty(
    cases: Iterator[Case], epsilons: Sequence[float], records: Sequence[int]
) -> Iterator[Row]:
    """Yield an attacker's certainty of a past record, one row per chain, ε, lag and bound.

    Releases are ε-DP per record. ``one-record`` is exact, for the most revealing release of the
    record that is ``records`` later. ``all-later`` is an upper bound for releases of it and of
    every later record, whose loss for that record is at most :func:`leakage_loss`.
    """
    for chain, given in cases:
        losses = [leakage_loss(chain, given["length"], 1 / epsilon) for epsilon in epsilons]
        for since in records:
            points = extremes(np.linalg.matrix_power(chain.transition_matrix, since))
            for epsilon, every in zip(epsilons, losses, strict=True):
                for bound, own in (("one-record", epsilon), ("all-later", every)):
                    right = 1 / (1 + math.exp(-revealed(points, own)))
                    row = {"epsilon": epsilon, "records": since, "bound": bound}
                    yield given | row | {"certainty": right}


def extremes(rows: Floats) -> Floats:
    """Return the pairs (P(x, S), P(x', S)) that can attain L at some α, shape (points, 2).

    S is a prefix of the values sorted by P(x, ·)/P(x', ·); pairs dominated by another one, with a
    larger first and a smaller second member, are left out.
    """
    points = [np.zeros((1, 2))]
    for x, y in product(range(len(rows)), repeat=2):
        with np.errstate(divide="ignore", invalid="ignore"):
            order = np.argsort(-np.nan_to_num(rows[x] / rows[y], nan=0.0, posinf=np.inf))
        points.append(np.cumsum(np.stack([rows[x], rows[y]])[:, order], axis=1).T)
    every = np.concatenate(points)
    every = every[np.lexsort((-every[:, 0], every[:, 1]))]
    best = np.maximum.accumulate(every[:, 0])
    return np.asarray(every[np.concatenate([[True], best[1:] > best[:-1]])])


def bayesian_dp_threshold(chain: MarkovChain) -> float:
    """Return 4 ln(p_max/p_min) over the entries of P: the ε below which Lange et al. have no scale.

    Their bound for Markov chains, scale 1/(ε − threshold), allows any side information
    (*Balancing Privacy and Utility in Correlated Data*, PVLDB 2025).
    """
    entries = chain.transition_matrix
    return 4 * math.log(entries.max() / entries.min()) if entries.min() > 0 else math.inf


def related_bounds(cases: Iterator[Case], epsilons: Sequence[float]) -> Iterator[Row]:
    """Yield the scale of each bound, one row per chain, ε, side information and bound.

    ``relative_noise`` is the scale ÷ leakage's with the same side information. ``loss`` is that of
    the bound at the scale of leakage, for the two bounds that depend on the chain. If Bayesian DP
    has no scale its row has T/ε, which always holds, and ``reason`` states this.
    """
    for (chain, given), epsilon in product(cases, epsilons):
        length, peer = given["length"], TemporalLeakage(chain, given["length"])
        for known, names in MECHANISMS.items():
            found: dict[str, dict[str, Any]] = {}
            for name in names:
                own: dict[str, Any] = {"side_information": known} if name == "leakage" else {}
                result = compute_scale(name, chain, length, epsilon, **own)
                found[name] = {"scale": result.scale, "reason": result.reason}
            ours = found["leakage"]["scale"]
            if known == "none":
                found["leakage"]["loss"] = leakage_loss(chain, length, ours)
                found["tpl"] = {"scale": peer.scale(epsilon), "loss": peer.loss(1 / ours)}
                found["lower-bound"] = {"scale": lower_bound(chain, length, epsilon).scale}
            else:
                threshold = bayesian_dp_threshold(chain)
                none = epsilon <= threshold
                scale = length / epsilon if none else 1 / (epsilon - threshold)
                found["bdp"] = {"scale": scale, "reason": "T/ε: no other scale" if none else ""}
                found["bdp"]["smallest_epsilon"] = threshold
            for bound, row in found.items():
                if row["scale"] is not None:
                    row["relative_noise"] = row["scale"] / ours
                shared = {"epsilon": epsilon, "side_information": known, "bound": bound}
                yield given | shared | {"states": chain.states} | row


def top_states(nhanes: str, settings: Mapping[str, Any], seed: int) -> Iterator[Row]:
    """Yield how often the most frequent states of a participant are found, from the raw file.

    There is a row per group, ε, length of the list and task: repeated noisy max ("one by one") or
    a noisy histogram, "sorted". ``hit_rate`` is the mean share of listed states that belong on the
    list, and ``right_rate`` that of lists with every state in its position.
    """
    sample = discretise(nhanes, {"kind": "activity", "step_minutes": 1}, "activity", "bundled")
    chains = fit_chains(sample, 0.0, "stationary")
    given: Row = {"dataset": sample.dataset, "label": sample.label, "data": sample.description}
    for group, epsilon in product(sample.groups, settings["epsilons"]):
        people = sample.group(group)
        length = max(pooled(people).segment_lengths)
        own = np.array([person.state_counts for person in people])
        counts = np.repeat(own, settings["releases"], axis=0)
        best = -np.sort(-counts, axis=1)
        for (task, mechanism), top in product(WAYS, settings["tops"]):
            scale = compute_scale(mechanism, chains[group], length, epsilon).scale
            assert scale is not None  # all of them apply to every chain
            key = f"beyond/top_states/{group}/{epsilon}/{top}/{task}/{mechanism}"
            rng = named_generator(seed, key)
            if task == "sorted":  # a list of all states; for one alone a release uses noisy max
                named = most_frequent(counts, counts.shape[1], 2 * scale, rng)[:, :top]
            else:
                named = one_by_one(counts, top, (top + 1) * scale, rng)
            found = np.take_along_axis(counts, named, axis=1)
            row = given | {"group": group, "participants": len(people), "epsilon": epsilon}
            row |= {"top": top, "task": task, "mechanism": mechanism, "scale": scale}
            row["hit_rate"] = (found >= best[:, [top - 1]]).mean()
            yield row | {"right_rate": (found == best[:, :top]).all(axis=1).mean()}


def one_by_one(counts: Ints, top: int, scale: float, rng: np.random.Generator) -> Ints:
    """Return ``top`` states of each row by repeated noisy max, for ε = (top + 1)/scale."""
    left, named = counts.copy(), []
    for _ in range(top):
        named.append(most_frequent(left, 1, scale, rng))
        np.put_along_axis(left, named[-1], -(2**62), axis=1)
    return np.concatenate(named, axis=1)
