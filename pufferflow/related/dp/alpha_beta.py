"""The αβ algorithm: publish a set of tuples among made-up ones, against adversaries who know little of each tuple.

Keep each tuple of the instance I with probability α + β, insert each other tuple of the domain D with probability β,
and publish the result V with α, β and D (Rastogi, Suciu, Hong, "The Boundary Between Privacy and Utility in Data
Publishing", VLDB 2007).

(d, γ)-privacy. For every prior under which tuples are independent and each tuple t has Pr[t] ≤ d or Pr[t] = 1, and for
every t with Pr[t] ≤ d: (d/γ)·Pr[t] ≤ Pr[t | V] ≤ γ. Whether another tuple is in V says nothing about t, so

    t in V:      Pr[t | V] = (α+β) p / ((α+β) p + β (1−p)),            largest at p = d;
    t not in V:  Pr[t | V] / p = (1−α−β) / ((1−α−β) p + (1−β) (1−p)),  decreasing to (1−α−β)/(1−β) as p → 0,

and the definition holds if and only if

    β/(α+β) ≥ d(1−γ)/(γ(1−d))   and   (1−α−β)/(1−β) ≥ d/γ.

The paper asks for 1−α−β ≥ d/γ in the second place, which is enough but not needed. The error of every counting query
falls with α+β and rises with β/(α+β), so the corner where both hold with equality is best for all queries, n and m at
once:

    α = (γ−d)/s,  β = d(1−γ)/s,  1−α−β = d/s,   s = γ + d − γd.

There αβ is also ε-differentially private for one tuple more or less, with ε = logit γ − logit d.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from fractions import Fraction
from numbers import Rational
from typing import Any, Literal, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from pufferflow._checks import (
    check_choice,
    check_confidence,
    check_list,
    check_positive,
    check_type,
    check_whole,
    shown,
)
from pufferflow._numbers import written_number
from pufferflow.errors import DataError, ParameterError
from pufferflow.related.dp import _sampling
from pufferflow.related.dp.domains import Codes, Domain, first_occurrences, in_order

Probability: TypeAlias = float | str | Rational

MOST_INSERTIONS = 10**8
"""Expected insertions beyond which :func:`publish` refuses to fill the memory."""


@dataclass(frozen=True)
class PrivacyCheck:
    """Whether α, β are (d, γ)-private, and the numbers that decide.

    Attributes
    ----------
    private : bool
    published_conditions : bool
        Whether the paper's conditions hold; they imply ``private``.
    posterior_inside : Fraction
        Largest Pr[t | V] for t in V; must not exceed γ.
    ratio_outside : Fraction
        Infimum of Pr[t | V] / Pr[t] for t not in V; must not be below d/γ.
    witness : Fraction or None
        A prior in (0, d] at which the definition fails; None where it holds.
    """

    private: bool
    published_conditions: bool
    posterior_inside: Fraction
    ratio_outside: Fraction
    witness: Fraction | None


@dataclass(frozen=True)
class Estimate:
    """Unbiased estimate of a counting query and its standard error."""

    count: float
    standard_error: float


@dataclass(frozen=True)
class AlphaBeta:
    """The two probabilities, exact.

    Parameters
    ----------
    alpha, beta : Fraction, str or float
        A tuple of the data is kept with probability α + β, another one inserted with probability β. A float means the
        decimal it is printed as.

    Raises
    ------
    ParameterError
        α not in (0, 1], β not in [0, 1], or α + β > 1.
    """

    alpha: Fraction
    beta: Fraction

    def __init__(self, alpha: Probability, beta: Probability) -> None:
        object.__setattr__(self, "alpha", _probability("alpha", alpha))
        object.__setattr__(self, "beta", _probability("beta", beta))
        if self.alpha == 0:
            raise ParameterError("alpha is 0: the published set would not depend on the data; alpha must be above 0")
        if self.keep > 1:
            raise ParameterError(f"alpha + beta is {float(self.keep):g}, a probability above 1; lower one of them")

    @property
    def keep(self) -> Fraction:
        """Probability α + β that a tuple of the data is published."""
        return self.alpha + self.beta

    @property
    def epsilon(self) -> float:
        """Differential-privacy loss in nats for one tuple more or less; infinite where V can settle a tuple."""
        if self.beta == 0 or self.keep == 1:
            return math.inf
        largest = max(self.keep / self.beta, (1 - self.beta) / (1 - self.keep))
        # numerator and denominator apart: a ratio beyond the largest float still has a logarithm
        return math.log(largest.numerator) - math.log(largest.denominator)

    def posterior(self, prior: Probability, *, published: bool) -> Fraction:
        """Posterior of a tuple with this prior when it is, or is not, among the published ones."""
        p = _probability("prior", prior)
        given_in, given_out = (self.keep, self.beta) if published else (1 - self.keep, 1 - self.beta)
        evidence = given_in * p + given_out * (1 - p)
        if evidence == 0:
            raise ParameterError("this event has probability 0 under this prior; there is no posterior")
        return given_in * p / evidence

    def check(self, d: Probability, gamma: Probability) -> PrivacyCheck:
        """Check (d, γ)-privacy exactly.

        Parameters
        ----------
        d, gamma : Fraction, str or float
            Bounds on prior and posterior, 0 < d ≤ γ ≤ 1, d < 1.
        """
        d, gamma = _bounds(d, gamma)
        inside = self.posterior(d, published=True)
        ratio = (1 - self.keep) / (1 - self.beta)
        witness = None
        if inside > gamma:
            witness = d
        elif ratio < d / gamma:
            # the ratio (1−α−β)/(1−β−αp) is below d/γ for p below this threshold
            witness = min(d, ((1 - self.beta) - (1 - self.keep) * gamma / d) / self.alpha / 2)
        return PrivacyCheck(
            private=witness is None,
            published_conditions=self.beta / self.keep >= _odds_ratio(d, gamma) and self.keep <= 1 - d / gamma,
            posterior_inside=inside,
            ratio_outside=ratio,
            witness=witness,
        )

    def standard_error(self, count: float, domain_count: int) -> float:
        """Standard error of the estimate for a query that ``count`` tuples of the data, ``domain_count`` of D meet."""
        count = check_positive(count, "count", or_zero=True)
        domain_count = check_whole(domain_count, "domain_count", 0, None)
        if count > domain_count:
            raise ParameterError(f"count is {count:g}, above domain_count, {domain_count}; lower it")
        kept, inserted = float(self.keep * (1 - self.keep)), float(self.beta * (1 - self.beta))
        return math.sqrt(count * kept + (domain_count - count) * inserted) / float(self.alpha)

    def rho(self, n: int, m: int, failure: float | None = None) -> float:
        """Error of the worst counting query over √n, for n tuples out of m.

        Parameters
        ----------
        n, m : int
        failure : float, optional
            The δ of |Q − Q~| ≤ ρ√n with probability at least 1 − δ, for one query given in advance (Bernstein's
            inequality); without it ρ is the root-mean-square error over √n.
        """
        n, m = check_whole(n, "n", most=None), check_whole(m, "m", most=None)
        if n > m:
            raise ParameterError(f"n is {n}, m is {m}; n must be at most m")
        error = self.standard_error(n, m)
        if failure is not None:
            log = math.log(2 / check_confidence(failure, "failure", 0.05))
            alpha = float(self.alpha)
            error = (log / 3 + math.sqrt(log**2 / 9 + 2 * (error * alpha) ** 2 * log)) / alpha
        return error / math.sqrt(n)


def choose_alpha_beta(
    d: Probability, gamma: Probability, *, conditions: Literal["exact", "published"] = "exact"
) -> AlphaBeta:
    """The (d, γ)-private α, β with the least error of every counting query.

    Parameters
    ----------
    d, gamma : Fraction, str or float
        Bounds on prior and posterior, 0 < d < γ ≤ 1.
    conditions : {"exact", "published"}
        Best under the definition (default), or under the paper's stronger conditions.

    Raises
    ------
    ParameterError
        Bounds out of range, or d = γ, which only α = 0 satisfies.
    """
    d, gamma = _bounds(d, gamma)
    check_choice(conditions, "conditions", ("exact", "published"))
    if d == gamma:
        raise ParameterError(f"d and gamma are both {float(d):g}: nothing may be learned, so alpha is 0; raise gamma")
    if conditions == "exact":
        total = gamma + d - gamma * d
        return AlphaBeta((gamma - d) / total, d * (1 - gamma) / total)
    keep = 1 - d / gamma
    return AlphaBeta(keep * (1 - _odds_ratio(d, gamma)), keep * _odds_ratio(d, gamma))


@dataclass(frozen=True)
class Publication:
    """What αβ publishes: the tuples, in the domain's order, with the domain and both probabilities."""

    table: pd.DataFrame
    domain: Domain
    parameters: AlphaBeta

    def tuples(self) -> set[tuple[Any, ...]]:
        """Return the published set."""
        return set(self.table.itertuples(index=False, name=None))

    def count(self, where: Mapping[str, Any] | None = None) -> Estimate:
        """Estimate how many tuples of the data meet a conjunction of conditions.

        Parameters
        ----------
        where : mapping, optional
            A column, one value or several (or a ``range``); without it all tuples are counted.

        Raises
        ------
        DataError
            A column or value the domain does not declare.
        """
        selected, domain_count = self.domain.selected(where or {}, self.table)
        return self.estimate(selected, domain_count)

    def estimate(self, selected: ArrayLike, domain_count: int) -> Estimate:
        """Estimate any counting query from its rows of ``table`` and the number of tuples of D that meet it.

        The estimate (n_V − β n_D)/α is unbiased; its standard error is that of the estimated count, taken between
        0 and n_D.
        """
        mask = np.asarray(selected)
        if mask.dtype != bool or mask.shape != (len(self.table),):
            raise DataError(f"selected must hold one truth value a published row, {len(self.table)} in all")
        rows = int(mask.sum())
        if not rows <= domain_count <= self.domain.size:
            raise DataError(
                f"domain_count is {domain_count}; it must lie between the {rows} rows selected and the "
                f"{self.domain.size} tuples of the domain"
            )
        count = float((rows - self.parameters.beta * domain_count) / self.parameters.alpha)
        inside = min(max(count, 0.0), float(domain_count))
        return Estimate(count, self.parameters.standard_error(inside, domain_count))


def publish(
    data: pd.DataFrame | Collection[tuple[Any, ...]],
    domain: Domain,
    parameters: AlphaBeta,
    *,
    insecure_seed: int | None = None,
) -> Publication:
    """Publish a set of tuples by αβ.

    The law is exact: rational probabilities compared bit by bit, the number of insertions drawn from its binomial law
    and their places without replacement, so time and memory are those of the data and the insertions, whatever the size
    of the domain.

    Parameters
    ----------
    data : DataFrame, or collection of tuples in the order of the domain's columns
    domain : Domain
    parameters : AlphaBeta
        See :func:`choose_alpha_beta`.
    insecure_seed : int, optional
        Draw from a seeded generator instead of the operating system's. Not private; for experiments.

    Raises
    ------
    DataError
        Data that are not a set of tuples of the domain.
    ParameterError
        More than ``MOST_INSERTIONS`` insertions to be expected.
    """
    check_type(domain, "domain", Domain)
    check_type(parameters, "parameters", AlphaBeta)
    if not isinstance(data, pd.DataFrame):
        data = _table(data, domain)
    codes = domain.encode(data)
    outside = domain.size - len(codes)
    expected = parameters.beta * outside
    if expected > MOST_INSERTIONS:
        raise ParameterError(
            f"about {float(expected):.1e} tuples would be inserted, more than {MOST_INSERTIONS:.0e}; "
            "declare a smaller domain or choose a smaller beta"
        )
    source = _sampling.randomness(insecure_seed)
    kept = codes[_sampling.bernoulli(source, parameters.keep, len(codes))]
    inserted = _insertions(source, domain, codes, _sampling.binomial(source, outside, parameters.beta))
    rows = np.concatenate([kept, inserted])
    # in the domain's order: the order of the rows must not tell kept from inserted
    return Publication(domain.decode(rows[in_order(rows)]), domain, parameters)


def _insertions(source: _sampling.Randomness, domain: Domain, data: Codes, count: int) -> Codes:
    """``count`` distinct tuples of the domain outside the data, every such set equally likely."""
    outside = domain.size - len(data)
    if count > outside // 2:
        # the domain is then of the size of the result: choose the few that are left out
        every = np.stack(np.unravel_index(np.arange(domain.size), domain.sizes), axis=1).astype(np.int64)
        left_out = np.concatenate([data, _insertions(source, domain, data, outside - count)])
        fresh = first_occurrences(np.concatenate([left_out, every]))
        return every[fresh[len(left_out) :] - len(left_out)]
    rows = data
    while (missing := len(data) + count - len(rows)) > 0:
        # a few more than are missing, for those that will have occurred before; what is too much is cut off the end
        draws = missing + 8 + 2 * missing * (len(rows) + missing) // domain.size
        drawn = np.stack([_sampling.integers_below(source, size, draws) for size in domain.sizes], axis=1)
        rows = np.concatenate([rows, drawn])
        rows = rows[first_occurrences(rows)[: len(data) + count]]
    return rows[len(data) :]


def _table(tuples: Collection[tuple[Any, ...]], domain: Domain) -> pd.DataFrame:
    rows = check_list(tuples, "data")
    for row in rows:
        if not isinstance(row, tuple) or len(row) != len(domain.names):
            raise DataError(
                f"an entry of data is not a tuple of the {len(domain.names)} columns {domain.names} of the domain"
            )
    return pd.DataFrame(rows, columns=pd.Index(domain.names), dtype=object)


def _odds_ratio(d: Fraction, gamma: Fraction) -> Fraction:
    return d * (1 - gamma) / (gamma * (1 - d))


def _bounds(d: Probability, gamma: Probability) -> tuple[Fraction, Fraction]:
    d, gamma = _probability("d", d), _probability("gamma", gamma)
    if not 0 < d <= gamma or d == 1:
        raise ParameterError(f"0 < d ≤ gamma and d < 1 must hold; d is {float(d):g}, gamma is {float(gamma):g}")
    return d, gamma


def _probability(name: str, value: Probability) -> Fraction:
    try:
        exact = Fraction(-1) if isinstance(value, bool) else written_number(value, name)
    except ParameterError:
        raise ParameterError(f"{name} is {shown(value)}; it must be a number in [0, 1]") from None
    if not 0 <= exact <= 1:
        raise ParameterError(f"{name} is {value}; it must be a probability in [0, 1]")
    return exact
