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

Several views of the same data multiply the odds of t by one factor each, (α_i+β_i)/β_i ≥ 1 for a view it is in and
(1−α_i−β_i)/(1−β_i) ≤ 1 for one it is not in. The extremes are a tuple in all views and one in none, so the same two
conditions decide with products in place of the two factors; d = .1, γ = .5 and the corner above give posteriors .5, .9
and .988 for a tuple in one, two and three views. Parameters for k views together take the k-th root of both factors.
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
from pufferflow._display import displayed
from pufferflow._numbers import written_number
from pufferflow.errors import DataError, ParameterError
from pufferflow.related.dp import _sampling
from pufferflow.related.dp._binomials import sum_law, sum_window
from pufferflow.related.dp._roots import root_up
from pufferflow.related.dp.domains import Codes, Domain, first_occurrences, in_order

Probability: TypeAlias = float | str | Rational

MOST_VIEWS = 1000
"""Views beyond which :func:`choose_alpha_beta` has no parameters."""

MOST_INSERTIONS = 10**8
"""Expected insertions beyond which :func:`publish` refuses to fill the memory."""


@dataclass(frozen=True)
@displayed("private", "published_conditions", "posterior_inside", "ratio_outside", "witness")
class PrivacyCheck:
    """Whether α, β are (d, γ)-private, and the numbers that decide.

    Attributes
    ----------
    private : bool
    published_conditions : bool
        Whether the paper's conditions hold, with products over the views; they imply ``private``.
    posterior_inside : Fraction
        Largest Pr[t | V] for t in every view; must not exceed γ.
    ratio_outside : Fraction
        Infimum of Pr[t | V] / Pr[t] for t in no view; must not be below d/γ.
    witness : Fraction or None
        A prior in (0, d] at which the definition fails; None where it holds.
    """

    private: bool
    published_conditions: bool
    posterior_inside: Fraction
    ratio_outside: Fraction
    witness: Fraction | None


@dataclass(frozen=True)
@displayed("count", "standard_error")
class Estimate:
    """Unbiased estimate of a counting query and its standard error."""

    count: float
    standard_error: float


@displayed()
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
        object.__setattr__(self, "alpha", check_probability("alpha", alpha))
        object.__setattr__(self, "beta", check_probability("beta", beta))
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
        p = check_probability("prior", prior)
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
        return check_views([self], d, gamma)

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

    def failure(self, error: float, count: int, domain_count: int) -> float:
        """Probability that the estimate of a query misses by more than ``error``, up to rounding.

        Parameters
        ----------
        error : float
            In tuples.
        count, domain_count : int
            Tuples of the data, and of D, that meet the query.
        """
        error = check_positive(error, "error", or_zero=True)
        count, domain_count = check_whole(count, "count", 0), check_whole(domain_count, "domain_count", 0)
        if count > domain_count:
            raise ParameterError(f"count is {count}, above domain_count, {domain_count}; lower it")
        counts = (count, float(self.keep), domain_count - count, float(self.beta))
        low, _ = sum_window(*counts)
        law = sum_law(*counts)
        middle, away = self.keep * count + self.beta * (domain_count - count), self.alpha * Fraction(error)
        # the published tuples from which the estimate lies within the error
        first, last = (int(end) - low for end in (math.ceil(middle - away), math.floor(middle + away)))
        return min(1.0, float(law[: max(0, first)].sum() + law[max(0, last + 1) :].sum()))


def check_views(views: Collection[AlphaBeta], d: Probability, gamma: Probability) -> PrivacyCheck:
    """Check exactly whether several views of the same data are (d, γ)-private together.

    Parameters
    ----------
    views : list of AlphaBeta
        The parameters of each view; they may have been chosen with knowledge of the views before.
    d, gamma : Fraction, str or float
        Bounds on prior and posterior, 0 < d ≤ γ ≤ 1, d < 1.

    Raises
    ------
    ParameterError
        No view, or bounds out of range.
    """
    views, (d, gamma) = check_list(views, "views"), check_bounds(d, gamma)
    if not views:
        raise ParameterError("views is empty; give the parameters of at least one view")
    for view in views:
        check_type(view, "an entry of views", AlphaBeta)
    kept, inserted = math.prod(view.keep for view in views), math.prod(view.beta for view in views)
    dropped, absent = math.prod(1 - view.keep for view in views), math.prod(1 - view.beta for view in views)
    inside, ratio = kept * d / (kept * d + inserted * (1 - d)), dropped / absent
    witness = None
    if inside > gamma:
        witness = d
    elif ratio < d / gamma:
        # the ratio ratio/(1 − p + p·ratio) is below d/γ for p below this threshold
        witness = min(d, (1 - ratio * gamma / d) / (1 - ratio) / 2)
    return PrivacyCheck(
        private=witness is None,
        published_conditions=inserted / kept >= _odds_ratio(d, gamma) and dropped >= d / gamma,
        posterior_inside=inside,
        ratio_outside=ratio,
        witness=witness,
    )


def choose_alpha_beta(
    d: Probability,
    gamma: Probability,
    *,
    views: int = 1,
    conditions: Literal["exact", "published"] = "exact",
) -> AlphaBeta:
    """The (d, γ)-private α, β with the least error of every counting query.

    Parameters
    ----------
    d, gamma : Fraction, str or float
        Bounds on prior and posterior, 0 < d < γ ≤ 1.
    views : int
        How many views of the same data are to be published with these parameters: together they are (d, γ)-private.
        Roots that are not rational are rounded to more privacy.
    conditions : {"exact", "published"}
        Best under the definition (default), or under the paper's stronger conditions.

    Raises
    ------
    ParameterError
        Bounds out of range, or d = γ, which only α = 0 satisfies.
    """
    d, gamma = check_bounds(d, gamma)
    check_choice(conditions, "conditions", ("exact", "published"))
    if d == gamma:
        raise ParameterError(f"d and gamma are both {float(d):g}: nothing may be learned, so alpha is 0; raise gamma")
    views = check_whole(views, "views", most=MOST_VIEWS)
    # β/(α+β) and the factor of a tuple that is in no view
    inserted, outside = root_up(_odds_ratio(d, gamma), views), root_up(d / gamma, views)
    keep = (1 - outside) / (1 - outside * inserted) if conditions == "exact" else 1 - outside
    return AlphaBeta(keep * (1 - inserted), keep * inserted)


@dataclass(frozen=True)
@displayed("table", "domain", "parameters")
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
    codes = domain.encode(data_table(data, domain))
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


def data_table(data: pd.DataFrame | Collection[tuple[Any, ...]], domain: Domain) -> pd.DataFrame:
    """Return data as a table: a table as it is, tuples in the order of the domain's columns."""
    if isinstance(data, pd.DataFrame):
        return data
    rows = check_list(data, "data")
    for row in rows:
        if not isinstance(row, tuple) or len(row) != len(domain.names):
            raise DataError(
                f"an entry of data is not a tuple of the {len(domain.names)} columns {domain.names} of the domain"
            )
    return pd.DataFrame(rows, columns=pd.Index(domain.names), dtype=object)


def _odds_ratio(d: Fraction, gamma: Fraction) -> Fraction:
    return d * (1 - gamma) / (gamma * (1 - d))


def check_bounds(d: Probability, gamma: Probability) -> tuple[Fraction, Fraction]:
    """Return the bounds of (d, γ)-privacy, exact."""
    d, gamma = check_probability("d", d), check_probability("gamma", gamma)
    if not 0 < d <= gamma or d == 1:
        raise ParameterError(f"0 < d ≤ gamma and d < 1 must hold; d is {float(d):g}, gamma is {float(gamma):g}")
    return d, gamma


def check_probability(name: str, value: Probability) -> Fraction:
    """Return a probability, exact."""
    try:
        exact = Fraction(-1) if isinstance(value, bool) else written_number(value, name)
    except ParameterError:
        raise ParameterError(f"{name} is {shown(value)}; it must be a number in [0, 1]") from None
    if not 0 <= exact <= 1:
        raise ParameterError(f"{name} is {value}; it must be a probability in [0, 1]")
    return exact
