"""What a framework is given: names, numbers and distributions, checked."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from fractions import Fraction
from itertools import combinations
from typing import Any

from pufferflow._checks import check_list, check_type, named_type, shown, shown_name
from pufferflow._numbers import written_number
from pufferflow._rounding import SUM_TOLERANCE
from pufferflow.divergences import Law, whole_multiples
from pufferflow.errors import ParameterError
from pufferflow.general.databases import Database, Databases
from pufferflow.general.sensitivity import Pair

MOST_PAIRS = 10**6
"""Pairs of secrets at most."""

MOST_VALUE = 10**100
"""Size of a value of the query at most: floats hold it, its square and its inverse."""


def named(name: Hashable) -> str:
    """Return how messages write the name of a secret or a scenario: a text, or the texts of a tuple."""
    if isinstance(name, tuple) and name and all(isinstance(part, str) for part in name):
        return shown(" = ".join(name))
    return shown_name(name)


def scenario_laws(given: Mapping[Any, Law | Mapping[Any, Any]], scenario: Hashable) -> dict[Hashable, Law]:
    """Return the distributions of one scenario, checked."""
    where = f"the scenario {named(scenario)}"
    if not isinstance(given, Mapping):
        raise ParameterError(f"{where} is {named_type(given)}; it must be a mapping from secret to distribution")
    return {
        secret: law if isinstance(law, Law) else _law(law, f"the distribution given {named(secret)} in {where}")
        for secret, law in given.items()
    }


def given_databases(
    scenarios: Mapping[Any, Any], query: Callable[[Any], Any], records: Iterable[str] | None = None
) -> Databases:
    """Return scenarios over databases, checked; see :meth:`PufferfishFramework.from_databases`."""
    check_type(scenarios, "scenarios", Mapping)
    if not callable(query):
        raise ParameterError(f"query is {named_type(query)}; give a function of a database")
    answers: dict[Database, Fraction] = {}
    masses: dict[Hashable, dict[Database, int]] = {}
    for scenario, given in scenarios.items():
        where = f"the scenario {named(scenario)}"
        weights = _weights(given, where)
        multiples = _masses(list(weights.values()), where)
        for database in weights:
            if not isinstance(database, tuple) or not database:
                raise ParameterError(f"{where} has a database that is no tuple of records; give one entry a record")
            if database not in answers:
                answers[database] = exact_value(query(database), "the query of a database")
        masses[scenario] = dict(zip(weights, multiples, strict=True))
    sizes = {len(database) for database in answers}
    if len(sizes) > 1:
        raise ParameterError("the databases differ in their number of records; give each the same ones")
    if not sizes:
        raise ParameterError("there is no scenario; give at least one")
    size = sizes.pop()
    names = [f"X{i + 1}" for i in range(size)] if records is None else check_list(records, "records")
    if len(names) != size or len(set(map(str, names))) < size or not all(isinstance(name, str) for name in names):
        raise ParameterError(f"records must be the names of the {size} records, all different")
    return Databases(tuple(names), answers, masses)


def _weights(given: Any, where: str) -> dict[Database, Fraction]:
    entries = given.items() if isinstance(given, Mapping) else check_list(given, where)
    weights: dict[Database, Fraction] = {}
    for entry in entries:
        if not isinstance(entry, tuple | list) or len(entry) != 2:
            raise ParameterError(f"{where} must consist of pairs of a database and its probability")
        database, probability = entry
        hashable([database], "a database")
        weights[database] = weights.get(database, Fraction(0)) + exact_probability(
            probability, f"a probability of {where}"
        )
    return weights


def _law(given: Any, where: str) -> Law:
    if not isinstance(given, Mapping):
        raise ParameterError(f"{where} is {named_type(given)}; it must be a mapping from value to probability")
    weights: dict[Fraction, Fraction] = {}
    for value, probability in given.items():
        exact = exact_value(value, f"a value of {where}")
        if exact in weights:
            raise ParameterError(f"{where} has the same value twice; give each once")
        weights[exact] = exact_probability(probability, f"a probability of {where}")
    return Law.counted(dict(zip(weights, _masses(list(weights.values()), where), strict=True)))


def _masses(weights: list[Fraction], where: str) -> list[int]:
    """Probabilities as multiples of one; their sum must be 1 but for rounding."""
    *masses, one = whole_multiples([*weights, Fraction(1)], f"the probabilities of {where}")
    if abs(Fraction(sum(masses), one) - 1) > SUM_TOLERANCE:
        raise ParameterError(f"the probabilities of {where} sum to {float(Fraction(sum(masses), one)):.10g}, not to 1")
    return masses


def exact_probability(value: Any, what: str) -> Fraction:
    """Return a probability exactly, or raise :class:`ParameterError`."""
    exact = written_number(value, what)
    if not 0 <= exact <= 1 + Fraction(SUM_TOLERANCE):
        raise ParameterError(f"{what} lies outside 0 to 1; give a probability")
    return exact


def exact_value(value: Any, what: str) -> Fraction:
    """Return a value of the query exactly, or raise :class:`ParameterError`."""
    exact = written_number(value, what)
    if abs(exact) > MOST_VALUE:
        raise ParameterError(f"{what} is beyond {float(MOST_VALUE):g}; give the query in larger units")
    return exact


def hashable(names: list[Any], what: str) -> list[Any]:
    """Return names that can be looked up, or raise :class:`ParameterError`."""
    for name in names:
        try:
            hash(name)
        except TypeError:
            raise ParameterError(
                f"{what} is {named_type(name)}; its name must be a text, a number or a tuple"
            ) from None
    return names


def likely_pairs(scenarios: Iterable[Iterable[Hashable]]) -> list[Pair]:
    """Any two of the secrets of one scenario."""
    pairs: dict[Pair, None] = {}
    for secrets in scenarios:
        names = list(secrets)
        if len(names) * (len(names) - 1) // 2 > MOST_PAIRS:
            raise ParameterError(f"{len(names):,} secrets have more than {MOST_PAIRS:,} pairs; say which to protect")
        pairs |= dict.fromkeys(pair for pair in combinations(names, 2) if pair[::-1] not in pairs)
    return list(pairs)


def pairs_of_records(laws: Mapping[Hashable, Mapping[Any, Law]]) -> list[Pair]:
    """Any two values of one record that are possible under one scenario."""
    parts: list[list[Hashable]] = []
    for given in laws.values():
        records: dict[Hashable, list[Hashable]] = {}
        for record, value in given:
            records.setdefault(record, []).append((record, value))
        parts += records.values()
    return likely_pairs(parts)
