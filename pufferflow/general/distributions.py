"""Exact distributions of numbers and of databases, distances between them, and group privacy."""

import csv
import io
import math
import os
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate
from operator import itemgetter
from typing import Any, TypeAlias

from pufferflow._util.checks import check_epsilon, check_list, check_type, named_type, shown_name
from pufferflow._util.files import read_bounded
from pufferflow._util.numbers import log_bound, written_number
from pufferflow._util.rounding import SUM_TOLERANCE, divide_up, float_up
from pufferflow.errors import DataError, ParameterError

Distribution: TypeAlias = dict[Fraction, Fraction]
"""Positive probabilities of values, by increasing value."""

Database: TypeAlias = tuple[Hashable, ...]
Table: TypeAlias = tuple[dict[str, dict[Any, Any]], list[str], dict[tuple[str, ...], str]]
"""``scenarios[scenario][secret][value]``; or ``[scenario][database]``, records and query."""

MAX_BITS = 10**8
"""Largest size of the probabilities of a distribution over one denominator."""


def wasserstein_infinity(p: Distribution, q: Distribution) -> Fraction:
    """Return W∞, the largest gap between the quantile functions (Algorithm 1)."""
    (xs, below), (ys, others) = ((list(d), list(accumulate(d.values()))) for d in (p, q))
    # both quantile functions are constant between these levels
    levels = {*below, *others}
    return max(abs(xs[bisect_left(below, u)] - ys[bisect_left(others, u)]) for u in levels)


def max_divergence(p: Distribution, q: Distribution) -> float:
    """Return D∞(p‖q) = max log p(x)/q(x) in nats, rounded up; ∞ if p has a value that q lacks."""
    if not q.keys() >= p.keys():
        return math.inf
    return float_up(log_bound(max((p[value] / q[value] for value in p), default=Fraction(1))))


def distribution(given: Any, name: str = "the distribution") -> Distribution:
    """Return a mapping from value to probability exactly; raises as :func:`probabilities`."""
    exact = probabilities(given, name)
    values = {value: written_number(value, f"a value of {name}") for value in exact}
    if len(set(values.values())) < len(values):
        raise ParameterError(f"{name} has the same value twice; give each once")
    return {values[v]: exact[v] for v in sorted(exact, key=values.__getitem__) if exact[v]}


def probabilities(given: Any, name: str) -> dict[Any, Fraction]:
    """Return a mapping to probabilities exactly, divided by their sum.

    Raises ParameterError: ``given`` is not a mapping, a number is not a probability, their sum is
    not 1 up to rounding, or their common denominator is too large.
    """
    if not isinstance(given, Mapping):
        raise ParameterError(f"{name} is {named_type(given)}; give a mapping to probabilities")
    exact = {key: written_number(p, f"a probability of {name}") for key, p in given.items()}
    if not all(0 <= number <= 1 + Fraction(SUM_TOLERANCE) for number in exact.values()):
        raise ParameterError(f"a probability of {name} lies outside 0 to 1; correct it")
    unit = 1
    for number in exact.values():
        unit = math.lcm(unit, number.denominator)
        if unit.bit_length() * len(exact) > MAX_BITS:
            raise ParameterError(f"the probabilities of {name} need decimals or one denominator")
    total = sum(exact.values(), Fraction(0))
    if abs(total - 1) > SUM_TOLERANCE:
        raise ParameterError(f"the probabilities of {name} sum to {float(total):.10g}, not to 1")
    return exact if total == 1 else normalised(exact)


def normalised(weights: Mapping[Any, Fraction]) -> dict[Any, Fraction]:
    """Return weights divided by their sum."""
    total = sum(weights.values())
    return {key: weight / total for key, weight in weights.items()}


def named(name: object) -> str:
    """Return the name of a secret or a scenario for messages."""
    return shown_name(" = ".join(map(str, name)) if isinstance(name, tuple) else name)


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
        return divide_up(self.sensitivity, check_epsilon(epsilon))


class Databases:
    """Probabilities and queries of databases; see :meth:`PufferfishFramework.from_databases`."""

    def __init__(
        self,
        scenarios: Mapping[Any, Any],
        query: Callable[[Any], Any],
        records: Iterable[str] | None,
    ) -> None:
        check_type(scenarios, "scenarios", Mapping)
        self.scenarios: dict[Hashable, dict[Database, Fraction]] = {
            name: probabilities(d, f"the scenario {named(name)}") for name, d in scenarios.items()
        }
        databases = dict.fromkeys(d for given in self.scenarios.values() for d in given)
        sizes = {len(d) if isinstance(d, tuple) else 0 for d in databases}
        if len(sizes) > 1 or 0 in sizes:
            raise ParameterError("databases must be tuples with one entry per record")
        if not callable(query):
            raise ParameterError(f"query is {named_type(query)}; give a function of a database")
        self.query = {d: written_number(query(d), "the query of a database") for d in databases}
        size = max(sizes, default=0)  # no scenario is refused with the pairs
        default = [f"X{i + 1}" for i in range(size)]
        names = default if records is None else check_list(records, "records")
        if not len(names) == len(set(map(str, names))) == size:
            raise ParameterError(f"records must be the names of the {size} records, all different")
        self.records = tuple(map(str, names))

    def given_records(
        self, secret: Callable[[str, Hashable], Hashable]
    ) -> dict[Hashable, list[dict[Hashable, Distribution]]]:
        """For each scenario and record the distributions of the query given its values' names."""
        found = {}
        for scenario, given in self.scenarios.items():
            joint: list[Any] = [defaultdict(lambda: defaultdict(Fraction)) for _ in self.records]
            for database, probability in given.items():
                for part, value in zip(joint, database, strict=True) if probability else ():
                    part[value][self.query[database]] += probability
            found[scenario] = [
                {secret(record, value): normalised(d) for value, d in part.items()}
                for record, part in zip(self.records, joint, strict=True)
            ]
        return found

    def group_sensitivity(self, groups: Iterable[Iterable[str]]) -> GroupSensitivity:
        """See :meth:`PufferfishFramework.group_sensitivity`."""
        names = [check_list(group, "a group") for group in check_list(groups, "groups")]
        grouped = [name for group in names for name in group]
        for name in grouped:
            if name not in self.records:
                known = ", ".join(self.records)
                raise ParameterError(f"no record is {shown_name(name)}; the records are {known}")
            if grouped.count(name) > 1:
                raise ParameterError(f"the record {name!r} is in two groups; put it into one")
        names = [group for group in names if group]
        names += [[name] for name in self.records if name not in grouped]
        positions = [[self.records.index(name) for name in group] for group in names]
        changes = [self._largest_change(group) for group in positions]
        decisive = tuple(names[changes.index(max(changes))])
        independent = all(_are_independent(given, positions) for given in self.scenarios.values())
        return GroupSensitivity(float_up(max(changes)), decisive, independent)

    def _largest_change(self, group: Sequence[int]) -> Fraction:
        """Return the largest change between databases that differ in one group only."""
        answers: dict[Database, list[Fraction]] = defaultdict(list)
        for database, answer in self.query.items():
            rest = tuple(value for i, value in enumerate(database) if i not in group)
            answers[rest].append(answer)
        return max(max(values) - min(values) for values in answers.values())


def _are_independent(given: Mapping[Database, Fraction], groups: Sequence[Sequence[int]]) -> bool:
    """Return whether a distribution of databases is the product of its marginals by group.

    It suffices to compare positive probabilities, as they sum to 1.
    """
    likely = {database: p for database, p in given.items() if p}
    marginals = []
    for group in groups:
        part, masses = itemgetter(*group), defaultdict[Any, Fraction](Fraction)
        for database, p in likely.items():
            masses[part(database)] += p
        marginals.append((part, masses))
    return all(
        p == math.prod(masses[part(database)] for part, masses in marginals)
        for database, p in likely.items()
    )


def read_table(source: str | os.PathLike[str]) -> Table:
    """Return the scenarios of a CSV file, or of standard input for ``"-"``.

    Raises DataError: it cannot be read, its columns are wrong, or two rows contradict each other.
    """
    content = read_bounded(source)
    where = "standard input" if source == "-" else os.fspath(source)
    try:
        rows = csv.DictReader(io.StringIO(content.decode("utf-8-sig"), newline=""), strict=True)
        columns = rows.fieldnames = [name.strip() for name in rows.fieldnames or ()]
        records = [c for c in columns if c not in ("scenario", "secret", "value", "probability")]
        once = len({*columns}) == len(columns) and not any(c == "" or "=" in c for c in columns)
        kinds = ("secret" in columns) + bool(records)
        if not once or kinds != 1 or not {"value", "probability"} <= {*columns}:
            raise DataError(
                "the columns must be value, probability and either secret or one for each record, "
                "each once; scenario is optional, and = is in no name"
            )
        scenarios: dict[str, dict[Any, Any]] = {}
        query: dict[tuple[str, ...], str] = {}
        for row in rows:
            cells = {column: str(cell or "").strip() for column, cell in row.items()}
            if None in row or not all(cells.values()):
                raise DataError("the line has an empty field, or not as many as the header")
            given = scenarios.setdefault(cells.get("scenario", "all"), {})
            key: Any = tuple(cells[record] for record in records)
            if not records:
                given, key = given.setdefault(cells["secret"], {}), cells["value"]
            elif query.setdefault(key, cells["value"]) != cells["value"]:
                raise DataError("another row has another value for this database; correct one")
            if key in given:
                raise DataError("another row has a probability of the same; give it once")
            given[key] = cells["probability"]
    except UnicodeDecodeError as error:
        raise DataError(f"{where} is not UTF-8 text (byte {error.start + 1}); save it so") from None
    except (csv.Error, DataError) as error:
        raise DataError(f"{where}, line {rows.line_num}: {error}") from None
    if not scenarios:
        raise DataError(f"{where} has no rows below the header; give probabilities")
    return scenarios, records, query
