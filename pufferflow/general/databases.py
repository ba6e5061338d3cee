"""Scenarios as distributions of whole databases: conditional distributions of the query, and group privacy."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeVar

from pufferflow._checks import check_epsilon, check_list, shown_name
from pufferflow._rounding import divide_up, float_up
from pufferflow.divergences import Law
from pufferflow.errors import ParameterError

Database = tuple[Hashable, ...]
_Secret = TypeVar("_Secret", bound=Hashable)


@dataclass(frozen=True)
class GroupSensitivity:
    """What group differential privacy needs (Definition 2.2 and B.2).

    Attributes
    ----------
    sensitivity : float
        Largest change of the query when all records of one group change, over the databases given, rounded up.
    group : tuple of str
        Records of the group that decides.
    independent : bool
        Whether the groups are independent of each other under every scenario. Only then does protection of groups
        protect the values of single records, and W of such pairs is at most this sensitivity (Theorem 3.3).
    """

    sensitivity: float
    group: tuple[str, ...]
    independent: bool

    def scale(self, epsilon: float) -> float:
        """Laplace scale of group differential privacy, rounded up."""
        return divide_up(self.sensitivity, check_epsilon(epsilon))


@dataclass(frozen=True)
class Databases:
    """Distributions of databases with the value of the query.

    Attributes
    ----------
    records : tuple of str
        Names of the records of a database.
    query : mapping from database to Fraction
    masses : mapping from scenario to mapping from database to int
        Proportional to the probabilities of the scenario.
    """

    records: tuple[str, ...]
    query: Mapping[Database, Fraction]
    masses: Mapping[Hashable, Mapping[Database, int]]

    def laws(self, secrets: Callable[[Database], Iterable[_Secret]]) -> dict[Hashable, dict[_Secret, Law]]:
        """Distributions of the query given each of the secrets that hold in a database, for each scenario."""
        laws: dict[Hashable, dict[_Secret, Law]] = {}
        for scenario, masses in self.masses.items():
            given: dict[_Secret, Counter[Fraction]] = defaultdict(Counter)
            for database, mass in masses.items():
                for secret in secrets(database) if mass else ():
                    given[secret][self.query[database]] += mass
            laws[scenario] = {secret: Law.counted(counts) for secret, counts in given.items()}
        return laws

    def states(self, database: Database) -> list[tuple[str, Hashable]]:
        """The secrets "this record has this value" that hold in a database."""
        return list(zip(self.records, database, strict=True))

    def group_sensitivity(self, groups: Iterable[Iterable[str]]) -> GroupSensitivity:
        """See :meth:`pufferflow.PufferfishFramework.group_sensitivity`."""
        places = self._places(groups)
        widest, decides = Fraction(0), places[0]
        for group in places:
            rest = [place for place in range(len(self.records)) if place not in group]
            ends: dict[Database, tuple[Fraction, Fraction]] = {}
            for database, value in self.query.items():
                same = tuple(database[place] for place in rest)
                low, high = ends.get(same, (value, value))
                ends[same] = min(low, value), max(high, value)
            change = max(high - low for low, high in ends.values())
            if change > widest:
                widest, decides = change, group
        names = tuple(self.records[place] for place in decides)
        return GroupSensitivity(
            float_up(widest), names, all(self._independent(m, places) for m in self.masses.values())
        )

    def _places(self, groups: Iterable[Iterable[str]]) -> list[tuple[int, ...]]:
        """Places of the records of each group; a record in none is a group of its own."""
        index = {name: place for place, name in enumerate(self.records)}
        places: list[tuple[int, ...]] = []
        for group in check_list(groups, "groups"):
            names = check_list(group, "a group")
            for name in names:
                if not isinstance(name, str) or name not in index:
                    raise ParameterError(
                        f"a group has the record {shown_name(name)}; the records are {', '.join(self.records)}"
                    )
                if any(index[name] in others for others in places) or names.count(name) > 1:
                    raise ParameterError(f"the record {name!r} is in two groups; put it into one")
            if names:
                places.append(tuple(index[name] for name in names))
        alone = set(range(len(self.records))).difference(*places)
        return places + [(place,) for place in sorted(alone)]

    @staticmethod
    def _independent(masses: Mapping[Database, int], groups: Sequence[tuple[int, ...]]) -> bool:
        """Whether a distribution is the product of those of its groups."""
        parts: list[Counter[Database]] = [Counter() for _ in groups]
        for database, mass in masses.items():
            for part, group in zip(parts, groups, strict=True):
                part[tuple(database[place] for place in group)] += mass
        positive = {database: mass for database, mass in masses.items() if mass}
        if math.prod(sum(1 for mass in part.values() if mass) for part in parts) != len(positive):
            return False
        whole = sum(positive.values()) ** (len(groups) - 1)
        return all(
            mass * whole
            == math.prod(
                part[tuple(database[place] for place in group)] for part, group in zip(parts, groups, strict=True)
            )
            for database, mass in positive.items()
        )
