"""A Pufferfish framework with a scalar query: secrets, pairs of them, and scenarios Θ."""

import math
import os
from collections import defaultdict
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from operator import itemgetter
from typing import Any, Self, TypeAlias

from flint import arb, ctx

from pufferflow._util import checks
from pufferflow._util.numbers import ball, written_number
from pufferflow._util.rounding import divide_up, float_up
from pufferflow._util.work import afford
from pufferflow.errors import ParameterError
from pufferflow.general import distributions as exact
from pufferflow.general.distributions import Distribution, named

PAIR_WORK, VALUE_WORK = 1e5, 1e4
"""Operations of W∞, in exact fractions, per pair of secrets and per value of a distribution."""

Database: TypeAlias = tuple[Hashable, ...]
Pair: TypeAlias = tuple[Hashable, Hashable]
Pairs: TypeAlias = Iterable[Iterable[Hashable]]


@dataclass(frozen=True)
class WassersteinSensitivity:
    """W of Algorithm 1, rounded up, with the worst scenario and pair, None if W is 0."""

    W: float
    scenario: Hashable | None
    pair: Pair | None

    def scale(self, epsilon: float) -> float:
        """Return the Laplace scale W/ε of the query, rounded up."""
        return divide_up(self.W, checks.check_epsilon(epsilon))


@dataclass(frozen=True)
class CloseAdversary:
    """Distance Δ of an adversary's prior from Θ in nats, rounded up (Theorem 2.4).

    It is infinite if something is possible for the adversary and not under Θ, or vice versa. The
    scenario is the closest one, and the secret the worst one there, None if Δ is 0.
    """

    delta: float
    scenario: Hashable
    secret: Hashable | None

    def loss(self, epsilon: float) -> float:
        """Return the loss ε + 2Δ against the adversary if it is ε for Θ, rounded up."""
        budget = checks.check_positive(epsilon, "epsilon")
        return math.nextafter(budget + 2 * self.delta, math.inf) if self.delta else budget


@dataclass(frozen=True)
class GroupSensitivity:
    """The query's largest change by all records of one group, rounded up, for group privacy.

    ``group`` is the worst one. Only if the groups are ``independent`` of each other in every
    scenario does group privacy protect the values of single records (Theorem 3.3).
    """

    sensitivity: float
    group: tuple[str, ...]
    independent: bool

    def scale(self, epsilon: float) -> float:
        """Return the Laplace scale of group differential privacy, rounded up."""
        return divide_up(self.sensitivity, checks.check_epsilon(epsilon))


class PufferfishFramework:
    """A Pufferfish framework (S, Q, Θ) with the query F to be released, all finite and exact.

    Numbers are integers, fractions, floats (which stand for their shortest decimal) or strings such
    as "1/3". Errors are :class:`ParameterError`; those of a table's form are :class:`DataError`.

    Parameters
    ----------
    distributions : mapping
        ``distributions[scenario][secret][value]`` is P(F = value | secret, scenario). Secrets with
        probability 0 in a scenario are left out there.
    pairs : iterable of pairs of secrets, optional
        Pairs that must be indistinguishable (default: any two that are possible in one scenario).

    Examples
    --------
    Of four people who meet N have the flu; given that Ann is well, or ill, N is distributed so.

    >>> import pufferflow as pf
    >>> well = {0: "0.2", 1: "0.225", 2: "0.5", 3: "0.075"}
    >>> ill = {4 - n: p for n, p in well.items()}
    >>> flu = pf.PufferfishFramework({"clique": {"well": well, "ill": ill}})
    >>> flu.wasserstein().W, flu.wasserstein().scale(epsilon=0.5)
    (2.0, 4.0)
    """

    def __init__(self, distributions: Mapping[Any, Any], pairs: Pairs | None = None) -> None:
        checks.check_type(distributions, "distributions", Mapping)
        if not distributions:
            raise ParameterError("there is no scenario; give at least one")
        self.distributions = {name: _given_secrets(d, name) for name, d in distributions.items()}
        """The exact distributions, as given."""
        asked = _pairs_within(self.distributions.values()) if pairs is None else pairs
        once: dict[frozenset[Hashable], Pair] = {}
        for pair in map(self._pair, checks.check_list(asked, "pairs")):
            once.setdefault(frozenset(pair), pair)
        self.pairs = tuple(once.values())
        """Pairs that must be indistinguishable, each once."""
        if not self.pairs:
            raise ParameterError("there is no pair of secrets, so nothing is protected; give one")
        self._records: list[str] = []
        self._databases: dict[Hashable, dict[Database, Fraction]] = {}
        self._query: dict[Database, Fraction] = {}

    def __repr__(self) -> str:
        return f"PufferfishFramework({len(self.distributions)} scenarios, {len(self.pairs)} pairs)"

    @classmethod
    def from_databases(
        cls,
        scenarios: Mapping[Any, Any],
        query: Callable[[Any], Any],
        *,
        records: Iterable[str] | None = None,
        pairs: Pairs | None = None,
    ) -> Self:
        """Return the framework in which the secrets are ``(record, value)``, as in the paper.

        ``scenarios[scenario][database]`` is a probability; a database is a tuple with an entry per
        record, ``records`` are their names (default: X1, X2, …), and ``query`` is F. The default
        ``pairs`` are any two possible values of one record.
        """
        return cls._of(scenarios, query, records, lambda *state: state, pairs)

    @classmethod
    def from_table(cls, source: str | os.PathLike[str], pairs: Pairs | None = None) -> Self:
        """Return the framework of a CSV file; ``"-"`` is standard input.

        Its columns are ``scenario`` (optional), ``secret``, ``value`` and ``probability``: a row is
        P(F = value | secret, scenario). Or, as in :meth:`from_databases`, a column for each record
        instead of ``secret``: a row is P(database | scenario) with the query as ``value``, and the
        secrets are the strings ``record=state``.
        """
        scenarios, records, query = exact.read_table(source)
        if not records:
            return cls(scenarios, pairs)
        return cls._of(scenarios, query.__getitem__, records, "{}={}".format, pairs)

    @classmethod
    def _of(
        cls,
        scenarios: Mapping[Any, Any],
        query: Callable[[Any], Any],
        records: Iterable[str] | None,
        secret: Callable[..., Hashable],
        pairs: Pairs | None,
    ) -> Self:
        """Return the framework of databases; ``secret`` is called with a record and its value."""
        checks.check_type(scenarios, "scenarios", Mapping)
        given = {
            s: exact.probabilities(p, f"the scenario {named(s)}") for s, p in scenarios.items()
        }
        databases = dict.fromkeys(database for each in given.values() for database in each)
        sizes = {len(d) if isinstance(d, tuple) else 0 for d in databases}
        if len(sizes) > 1 or 0 in sizes:
            raise ParameterError("databases must be tuples with one entry per record")
        if not callable(query):
            kind = checks.named_type(query)
            raise ParameterError(f"query is {kind}; give a function of a database")
        queries = {d: written_number(query(d), "the query of a database") for d in databases}
        size = max(sizes, default=0)  # no scenario is refused with the pairs
        default = [f"X{i + 1}" for i in range(size)]
        names = default if records is None else [*map(str, checks.check_list(records, "records"))]
        if not len(names) == len({*names}) == size:
            raise ParameterError(f"records must be the names of the {size} records, all different")
        secrets: dict[Hashable, dict[Hashable, Distribution]] = {}
        groups: list[list[Hashable]] = []
        for scenario, likely in given.items():
            joint: Any = defaultdict(lambda: defaultdict(Fraction))
            for database, p in likely.items():
                for state in zip(names, database, strict=True) if p else ():
                    joint[state][queries[database]] += p
            groups += [[secret(*state) for state in joint if state[0] == name] for name in names]
            secrets[scenario] = {secret(*s): exact.normalised(w) for s, w in joint.items()}
        framework = cls(secrets, _pairs_within(groups) if pairs is None else pairs)
        framework._records, framework._databases, framework._query = names, given, queries
        return framework

    def wasserstein(self) -> WassersteinSensitivity:
        """Return W of Algorithm 1: max over θ and (s, s') of W∞(P(F | s, θ), P(F | s', θ)).

        Releasing F with Laplace noise of ``scale(epsilon)``, which is W/ε rounded up, is ε-private.
        """
        scenarios = self.distributions.items()
        possible = [(name, d, pair) for name, d in scenarios for pair in self._possible(d)]
        values = sum(len(given[secret]) for _, given, pair in possible for secret in pair)
        afford(values * VALUE_WORK, "W", "give fewer pairs of secrets, or round the query")
        widest = WassersteinSensitivity(0.0, None, None)
        for name, given, (s, t) in possible:
            gap = float_up(exact.wasserstein_infinity(given[s], given[t]))
            if gap > widest.W:
                widest = WassersteinSensitivity(gap, name, (s, t))
        return widest

    def privacy_loss(self, scale: float) -> float:
        """Return the largest log-ratio of the densities of F + Lap(scale) given a pair of secrets.

        It is in nats, rounded up; at most ε if ``scale`` is W/ε. Between neighbouring values of F
        the ratio is (A e^2x + B)/(C e^2x + D), monotone in x, and beyond the last ones it is
        constant: the maximum is at a value of F.
        """
        worst = 0.0
        with ctx.workprec(100):
            rate = 1 / arb(checks.check_positive(scale, "scale"))

            def log_density(given: Distribution, w: Fraction) -> arb:
                masses = (ball(p) * (-rate * ball(abs(w - v))).exp() for v, p in given.items())
                return sum(masses, arb(0)).log()

            for given in self.distributions.values():
                points = {value for each in given.values() for value in each}
                logs = {s: [log_density(each, w) for w in points] for s, each in given.items()}
                for s, t in self._possible(given):
                    for one, other in zip(logs[s], logs[t], strict=True):
                        loss = float(abs(one - other).upper()) if given[s] != given[t] else 0.0
                        if not math.isfinite(loss):
                            raise ParameterError(f"scale is {scale:g}, too small; enlarge it")
                        worst = max(worst, loss and math.nextafter(loss, math.inf))
        return worst

    def close_adversary(self, belief: Mapping[Any, Any]) -> CloseAdversary:
        """Return the distance of an adversary with a prior outside Θ; ``.loss(ε)`` is ε + 2Δ.

        Theorem 2.4: Δ = min over θ of max over s of max(D∞(θ̃|s ‖ θ|s), D∞(θ|s ‖ θ̃|s)), for the
        distributions of the query. The secrets are those of pairs with positive probability for the
        adversary; ``belief[secret][value]`` is as one scenario of ``distributions``.
        """
        believed = _given_secrets(belief, "the adversary's")
        for secret in believed:
            if not any(secret in given for given in self.distributions.values()):
                raise ParameterError(f"the adversary's secret {named(secret)} is in no scenario")
        secrets = dict.fromkeys(secret for pair in self._possible(believed) for secret in pair)
        distances = []
        for scenario, given in self.distributions.items():
            worst = CloseAdversary(0.0, scenario, None)
            for secret in secrets:
                p, q = believed[secret], given.get(secret, {})  # empty: Θ does not protect it
                delta = max(exact.max_divergence(p, q), exact.max_divergence(q, p))
                if delta > worst.delta:
                    worst = CloseAdversary(delta, scenario, secret)
            distances.append(worst)
        return min(distances, key=lambda distance: distance.delta)

    def group_sensitivity(self, groups: Iterable[Iterable[str]]) -> GroupSensitivity:
        """Return the largest change of the query when all records of one correlated group change.

        ``groups`` are names of records; others are groups of their own. The maximum is over all
        given databases, also those of probability 0 (Definitions 2.2 and B.2). If the groups are
        independent in every scenario, W for pairs of values of a record is at most this (Theorem
        3.3).
        """
        if not (records := self._records):
            raise ParameterError("group privacy needs distributions of databases; give those")
        names = [checks.check_list(g, "a group") for g in checks.check_list(groups, "groups")]
        grouped = [name for group in names for name in group]
        if any(name not in records or grouped.count(name) > 1 for name in grouped):
            known = f"the records are {', '.join(records)}"
            raise ParameterError(f"groups must hold records, each one once; {known}")
        names = [group for group in names if group] + [[r] for r in records if r not in grouped]
        positions = [[records.index(name) for name in group] for group in names]
        changes = []
        for group in positions:
            queries: dict[Database, list[Fraction]] = defaultdict(list)
            for database, value in self._query.items():
                queries[tuple(x for i, x in enumerate(database) if i not in group)].append(value)
            changes.append(max(max(values) - min(values) for values in queries.values()))
        worst = tuple(names[changes.index(max(changes))])
        independent = all(_are_independent(d, positions) for d in self._databases.values())
        return GroupSensitivity(float_up(max(changes)), worst, independent)

    def _pair(self, names: Any) -> Pair:
        pair = checks.check_list(names, "a pair")
        possible = any({*pair} <= given.keys() for given in self.distributions.values())
        if possible and len(pair) == len({*pair}) == 2:
            return pair[0], pair[1]
        both = " and ".join(map(named, pair))
        raise ParameterError(f"no scenario gives two secrets {both} positive probability")

    def _possible(self, given: Mapping[Hashable, Distribution]) -> list[Pair]:
        """Return the pairs whose secrets both have positive probability."""
        return [(s, t) for s, t in self.pairs if s in given and t in given]


def _given_secrets(given: Any, scenario: Hashable) -> dict[Hashable, Distribution]:
    """Return the distributions of one scenario, checked."""
    name = f"the scenario {named(scenario)}"
    if not isinstance(given, Mapping):
        raise ParameterError(f"{name} is {checks.named_type(given)}; give a mapping from secrets")
    where = {secret: f"the distribution given {named(secret)} in {name}" for secret in given}
    return {secret: exact.distribution(each, where[secret]) for secret, each in given.items()}


def _pairs_within(groups: Iterable[Collection[Hashable]]) -> Iterator[Pair]:
    """Yield any two secrets of each group."""
    for secrets in groups:
        work = math.comb(len(secrets), 2) * PAIR_WORK
        afford(work, f"all pairs of {len(secrets):,} secrets", "give some")
        yield from combinations(secrets, 2)


def _are_independent(given: Mapping[Database, Fraction], groups: Sequence[Sequence[int]]) -> bool:
    """Return whether a distribution of databases is the product of its marginals by group.

    It suffices to compare positive probabilities, as they sum to 1.
    """
    parts, masses = [itemgetter(*group) for group in groups], defaultdict[Any, Fraction](Fraction)
    for database, p in given.items():
        for part in parts:
            masses[part, part(database)] += p
    likely = [(database, p) for database, p in given.items() if p]
    return all(p == math.prod(masses[part, part(d)] for part in parts) for d, p in likely)
