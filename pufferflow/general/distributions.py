"""Exact distributions of a query, distances between them, and tables of them."""

import csv
import io
import math
import os
from bisect import bisect_left
from collections.abc import Mapping
from fractions import Fraction
from itertools import accumulate
from typing import Any, TypeAlias

from pufferflow._util.checks import named_type, shown_name
from pufferflow._util.files import read_bounded
from pufferflow._util.numbers import log_bound, written_number
from pufferflow._util.rounding import SUM_TOLERANCE, float_up
from pufferflow.errors import DataError, ParameterError

Distribution: TypeAlias = dict[Fraction, Fraction]
"""Positive probabilities of values, by increasing value."""

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
