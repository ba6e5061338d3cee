"""The αβ algorithm: publish a set of tuples among random ones of its domain.

Keep each tuple of the data with probability α + β, insert each other tuple of the domain D with
probability β, and publish the result V with α, β and D (Rastogi, Suciu, Hong, "The Boundary Between
Privacy and Utility in Data Publishing", VLDB 2007).

(d, γ)-privacy: for every prior under which tuples are independent with Pr[t] ≤ d or Pr[t] = 1, and
every t with Pr[t] ≤ d: (d/γ)·Pr[t] ≤ Pr[t | V] ≤ γ. With p = Pr[t],

    t in V:      Pr[t | V] = (α+β) p / ((α+β) p + β (1−p)),  largest at p = d;
    t not in V:  Pr[t | V] / p falls to (1−α−β)/(1−β) as p → 0,

so the definition holds if and only if β/(α+β) ≥ d(1−γ)/(γ(1−d)) and (1−α−β)/(1−β) ≥ d/γ. (The
source has 1−α−β ≥ d/γ, which is sufficient but not necessary.) The error of every counting query
falls with α+β and rises with β/(α+β), so it is least if both are equalities. Several views multiply
the odds of t by one factor each; the extremes are a tuple in all views and one in none, so the same
conditions decide with products. Parameters for k views together take k-th roots.
"""

import math
import threading
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
from flint import fmpz

from pufferflow._util.checks import check_list, check_positive, check_type, check_whole
from pufferflow._util.noise import randomness
from pufferflow._util.numbers import Exact
from pufferflow._util.types import Bools, Ints
from pufferflow.dp.classical import bernoulli
from pufferflow.dp.finite import check_exact
from pufferflow.errors import DataError, ParameterError

Rows: TypeAlias = pd.DataFrame | Collection[tuple[Any, ...]]
MAX_TUPLES = 10**8


class Domain:
    """All tuples with one value of every column; ``size`` is their number, at most 10^8.

    ``columns`` has for each its distinct values, hashable; anything else is a ParameterError.
    """

    def __init__(self, columns: Mapping[str, Collection[Any]]) -> None:
        check_type(columns, "columns", Mapping)
        try:
            self.shape = tuple(map(len, columns.values()))
            self.size = math.prod(self.shape)
            listed = columns.items() if self.size <= MAX_TUPLES else ()
            self.columns = {str(name): _index(values) for name, values in listed}
            unique = all(index.is_unique for index in self.columns.values())
        except (TypeError, ValueError, OverflowError):
            unique = False
        if not (unique and self.size and columns):
            raise ParameterError("every column of a domain must be a sequence of distinct values")
        if self.size > MAX_TUPLES:
            raise ParameterError("the domain has more than 10^8 tuples; declare a smaller one")

    def __repr__(self) -> str:
        return f"Domain({', '.join(f'{name}: {len(of)}' for name, of in self.columns.items())})"

    def encode(self, data: Rows) -> Ints:
        """Return the codes of a set of tuples, one per row: indices in lexicographic order.

        Raises DataError for other columns than the domain's, a tuple outside it, or one twice.
        """
        if not isinstance(data, pd.DataFrame):
            rows, width = check_list(data, "data"), len(self.columns)
            if not all(isinstance(row, tuple) and len(row) == width for row in rows):
                raise DataError(f"every entry of data must be a tuple of {width} values")
            data = pd.DataFrame(rows, columns=pd.Index(self.columns), dtype=object)
        if len(data.columns) != len(self.columns) or set(data.columns) != set(self.columns):
            raise DataError(f"the data must have the columns {list(self.columns)}, each once")
        indices = [self._indices(name, data[name]) for name in self.columns]
        for row, column in np.argwhere(np.transpose(indices) < 0):
            raise DataError(
                f"row {row + 1} of the data has a value of {[*self.columns][column]} that the "
                "domain does not declare; declare it or drop the row"
            )
        codes = np.ravel_multi_index(tuple(indices), self.shape)
        for row in np.flatnonzero(pd.Series(codes).duplicated()):
            raise DataError(
                f"row {row + 1} of the data repeats an earlier tuple; a set is published: "
                "drop duplicates, or add a column that distinguishes them"
            )
        return np.asarray(codes)

    def decode(self, codes: Ints) -> pd.DataFrame:
        """Return the table of the tuples with these codes."""
        columns = zip(self.columns.items(), np.unravel_index(codes, self.shape), strict=True)
        table = {name: pd.Series(values.take(i)) for (name, values), i in columns}
        return pd.DataFrame(table).infer_objects()

    def selected(self, where: Mapping[str, Any], table: pd.DataFrame) -> tuple[Bools, int]:
        """Return the rows of ``table`` that meet all conditions, and their number in D.

        ``where`` has for each column one value, or several allowed ones; a column or a value
        that is not declared is a DataError.
        """
        check_type(where, "where", Mapping)
        mask, count = np.ones(len(table), bool), self.size
        for name, wanted in where.items():
            if name not in self.columns:
                raise DataError(f"the query names a column that is not one of {list(self.columns)}")
            single = isinstance(wanted, str | bytes) or not isinstance(wanted, Iterable)
            indices = np.unique(self._indices(name, [wanted] if single else wanted))
            if (indices < 0).any():
                raise DataError(f"the query has a value of {name} that the domain lacks")
            mask &= np.isin(self._indices(name, table[name]), indices)
            count = count // len(self.columns[name]) * indices.size
        return mask, count

    def _indices(self, name: str, wanted: Any) -> Ints:
        """Return the index of each value in a column's declaration, −1 if not declared."""
        try:
            return np.asarray(self.columns[name].get_indexer(_index(wanted)))
        except TypeError:
            raise DataError(f"column {name!r} has a value that cannot be compared") from None


def _index(values: Any) -> Any:
    return pd.Index(values, dtype=object, tupleize_cols=False)


@dataclass(frozen=True)
class AlphaBeta:
    """The two probabilities, exact: α in (0, 1], β ≥ 0 and α + β ≤ 1, or ParameterError."""

    alpha: Fraction
    beta: Fraction

    def __init__(self, alpha: Exact, beta: Exact) -> None:
        object.__setattr__(self, "alpha", check_exact(alpha, "alpha", 0, 1))
        object.__setattr__(self, "beta", check_exact(beta, "beta", 0, 1))
        if self.alpha == 0 or self.keep > 1:
            raise ParameterError("alpha must be above 0, and alpha + beta at most 1")

    @property
    def keep(self) -> Fraction:
        """Probability α + β that a tuple of the data is published."""
        return self.alpha + self.beta

    def standard_error(self, count: float, domain_count: int) -> float:
        """Return the standard error for a query with these numbers of tuples."""
        count = check_positive(count, "count", or_zero=True)
        if (others := check_whole(domain_count, "domain_count", 0) - count) < 0:
            raise ParameterError("more tuples of the data meet the query than of the domain")
        kept, inserted = float(self.keep * (1 - self.keep)), float(self.beta * (1 - self.beta))
        return math.sqrt(count * kept + others * inserted) / float(self.alpha)


@dataclass(frozen=True)
class PrivacyCheck:
    """Whether views are (d, γ)-private together, and the compared numbers.

    ``posterior_inside`` is the largest Pr[t | V] for t in every view, ``ratio_outside`` the infimum
    of Pr[t | V] / Pr[t] for t in no view.
    """

    private: bool
    posterior_inside: Fraction
    ratio_outside: Fraction


def check_views(views: Collection[AlphaBeta], d: Exact, gamma: Exact) -> PrivacyCheck:
    """Return whether several views of the same data are (d, γ)-private together, exactly.

    Each may depend on the views before it. Bounds other than 0 < d ≤ γ ≤ 1, d < 1 are a
    ParameterError.
    """
    views, (d, gamma) = check_list(views, "views"), _bounds(d, gamma)
    if not (views and all(isinstance(view, AlphaBeta) for view in views)):
        raise ParameterError("views must be a list of AlphaBeta, at least one")
    kept, inserted = math.prod(v.keep for v in views), math.prod(v.beta for v in views)
    dropped, absent = math.prod(1 - v.keep for v in views), math.prod(1 - v.beta for v in views)
    inside = kept * d / (kept * d + inserted * (1 - d))
    private = inside <= gamma and dropped / absent >= d / gamma
    return PrivacyCheck(private, inside, dropped / absent)


def choose_alpha_beta(d: Exact, gamma: Exact, *, views: int = 1) -> AlphaBeta:
    """Return the (d, γ)-private α, β with the least error of every counting query.

    ``views``, at most 1000, with these parameters are (d, γ)-private together. Bounds other than
    0 < d < γ ≤ 1 are a ParameterError.
    """
    d, gamma = _bounds(d, gamma)
    if d == gamma:
        raise ParameterError("d and gamma are equal, so that alpha would be 0; raise gamma")
    views = check_whole(views, "views", most=1000)
    # β/(α+β), and the factor of a tuple that is in no view
    inserted = root_up(d * (1 - gamma) / (gamma * (1 - d)), views)
    outside = root_up(d / gamma, views)
    keep = (1 - outside) / (1 - outside * inserted)
    return AlphaBeta(keep * (1 - inserted), keep * inserted)


@dataclass(frozen=True)
class Estimate:
    """Unbiased estimate of a counting query and its standard error."""

    count: float
    standard_error: float


@dataclass(frozen=True)
class Publication:
    """A publication of αβ: the tuples, in the domain's order, the domain and both probabilities."""

    table: pd.DataFrame = field(repr=False)
    domain: Domain
    parameters: AlphaBeta

    def count(self, where: Mapping[str, Any] | None = None) -> Estimate:
        """Return an estimate of the number of tuples of the data that meet all conditions.

        (n_V − β n_D)/α is unbiased; its standard error is that of a count between 0 and n_D.
        """
        mask, of_domain = self.domain.selected({} if where is None else where, self.table)
        count = float((int(mask.sum()) - self.parameters.beta * of_domain) / self.parameters.alpha)
        inside = min(max(count, 0.0), float(of_domain))
        return Estimate(count, self.parameters.standard_error(inside, of_domain))


def publish(
    data: Rows, domain: Domain, parameters: AlphaBeta, *, insecure_seed: int | None = None
) -> Publication:
    """Return a publication of a set of tuples by αβ, with exact Bernoulli bits.

    Parameters
    ----------
    data : DataFrame, or collection of tuples in the order of the domain's columns
        A set of tuples of the domain; anything else is a DataError.
    domain : Domain
    parameters : AlphaBeta
        See :func:`choose_alpha_beta`.
    insecure_seed : int, optional
        Seed of a generator instead of the operating system's. Not private.
    """
    check_type(parameters, "parameters", AlphaBeta)
    check_type(domain, "domain", Domain)
    codes, chosen, step = np.sort(domain.encode(data)), [], 2**20
    source = randomness(insecure_seed)
    for start in range(0, domain.size, step):
        own = codes[(codes >= start) & (codes < start + step)] - start
        published = bernoulli(source, parameters.beta, min(step, domain.size - start))
        published[own] = bernoulli(source, parameters.keep, len(own))
        chosen.append(start + np.flatnonzero(published))
    return Publication(domain.decode(np.concatenate(chosen)), domain, parameters)


class Publisher:
    """A publisher of views of one table that stay (d, γ)-private together.

    A view is counted before it is drawn, and refused if the bound would be exceeded. Views of a
    table that changes, and views by other publishers are not covered. Arguments are those of
    :func:`publish`.
    """

    def __init__(self, data: Rows, domain: Domain, d: Exact, gamma: Exact) -> None:
        check_type(domain, "domain", Domain)
        domain.encode(data)  # refuses a tuple outside the domain before any view
        self._data, self.domain = data, domain
        self.d, self.gamma = _bounds(d, gamma)
        self.views: tuple[AlphaBeta, ...] = ()
        self._counting = threading.Lock()

    def __repr__(self) -> str:
        return f"Publisher({self.domain}, d={self.d}, gamma={self.gamma})"

    def publish(self, parameters: AlphaBeta, *, insecure_seed: int | None = None) -> Publication:
        """Return one more view; raises ParameterError if it is refused."""
        with self._counting:
            views = (*self.views, parameters)
            if not check_views(views, self.d, self.gamma).private:
                problem = "all views together would not be (d, γ)-private"
                advice = "choose parameters for all of them"
                raise ParameterError(f"view {len(views)} is refused: {problem}; {advice}")
            self.views = views
        return publish(self._data, self.domain, parameters, insecure_seed=insecure_seed)


def root_up(number: Fraction, degree: int) -> Fraction:
    """Return a fraction of at least the root of a number in [0, 1], exact if that is rational.

    The error is below 2^-64 of the root and of its distance from 1: a root of a/b is at least 1/b
    and differs from 1 by at least 1/(b · degree), so the bits of these are added.
    """
    whole = (number.numerator, number.denominator)
    roots = tuple(int(fmpz(part).root(degree)) for part in whole)
    if tuple(root**degree for root in roots) == whole:
        return Fraction(*roots)
    bits = 64 + number.denominator.bit_length() + degree.bit_length()
    scaled = fmpz((number.numerator << bits * degree) // number.denominator)
    return Fraction(int(scaled.root(degree)) + 1, 1 << bits)


def _bounds(d: Exact, gamma: Exact) -> tuple[Fraction, Fraction]:
    d, gamma = check_exact(d, "d", 0, 1), check_exact(gamma, "gamma", 0, 1)
    if not 0 < d <= gamma or d == 1:
        raise ParameterError("0 < d ≤ gamma ≤ 1 and d < 1 must hold; correct d or gamma")
    return d, gamma
