"""Certificates: noise scales with a proof that :mod:`pufferflow.verify` can check.

A certificate is a JSON object; probabilities, ε and the scale are exact numbers, written as strings::

    {"certificate": "pufferflow", "version": 1, "mechanism": "mqm-exact" | …,
     "family": {"chains": [{"transition_matrix": [["0.9", "0.1"], …],
                            "initial_distribution": [...] | "stationary" | "any"}, …]}
               or {"binary_interval": [low, high]}
               or {"interval": {"low": [[…], …], "high": [[…], …]}}
               or {"forgetting": {"steps": m, "overlap": "0.4"}},
               or {"total_variation": {"transition_matrix": [[…], …], "radius": [r, …]}},
     "epsilon": "1.0", "length": T, "window": w, "knows": "nothing" | "any records", "scale": "12.93…", …}

where a window of one record and an adversary who knows nothing are left out, and what proves the scale, by mechanism:

mqm-exact, mqm-approx
    ``"convention": "exact" | "published"`` and ``"nodes": [[{"first": 1, "last": 7, "left": a | null,
    "right": b | null}, …], …]``: one list of consecutive ranges a chain, which cover the
    nodes 1 … T; every node of a range has the quilt at distances ``left`` and ``right``. The first term of eq. 5 is
    exact for a single node and for a stationary start; in a longer range it is the bound that holds from the first
    node on for every initial law. mqm-approx asks for more noise than its quilts need:
    ``"proved": "10.6…"`` is what they prove.
leakage
    ``"cost": c`` with scale = 1/c and ``"couplings": [{"ahead": {"leakages": [["0.0", "0.02…", …], …], "flows":
    [{"value": 1, "other": 2, "flow": [[1, 2, "0.25"], …]}, …]}, "past": {…}}, …]``: for every chain bounds of what two
    values of a node tell through either side, and the flows that prove them (:mod:`pufferflow.verify.couplings`);
    states count from 1. They serve all nodes alike; where that costs noise there is
    ``"steps"`` instead, lists of such bounds for one node after the other (:mod:`pufferflow.verify.stepwise`), or the
    ``"convention"`` and ``"nodes"`` of mqm-exact. For
    families between bounds, which may have a ``"backward"`` like themselves, there is one entry, and beside every
    ``flow`` there are ``"surplus"`` and ``"reserve"`` (:mod:`pufferflow.verify.robust`).
    For a forgetting family nothing more: the verifier solves one equation (:mod:`pufferflow.verify.forgetting`).
wasserstein
    ``"weights": [0, 1]``, what a visit to each state adds to the count, ``"lengths": [T, …]`` of all segments, ``"W"``,
    and ``"slack"``, "0" but for laws that agree up to rounding (:mod:`pufferflow.verify.counts`).
entry-dp
    ``"nodes"`` as for mqm-exact. Its scale protects independent records only.
group-dp
    Nothing more.

Where these come from does not matter: the scale is the upper end of the verifier's own enclosure, rounded up.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from decimal import ROUND_CEILING
from fractions import Fraction
from typing import Any, NamedTuple

from pufferflow._checks import Lengths, longest, shown
from pufferflow._protection import NARROWEST, Protection
from pufferflow.errors import ChainError, ParameterError
from pufferflow.influence.tables import Convention
from pufferflow.markov.families import Family, without_matrix
from pufferflow.verify import parse
from pufferflow.verify.parsing import (
    VERSION,
    BinaryClass,
    CertificateError,
    Chain,
    Clocked,
    Forgetting,
    Intervals,
    decimal,
    parse_family,
)
from pufferflow.verify.proof import MOST_WORK, Bound, Proof

_WIDTH = Fraction(1, 10**20)
_FAIR_WIDTH = Fraction(1, 10**15)
_MOST_WORK = 10 * MOST_WORK
"""What the check of a certificate to be made may take: minutes, where whoever checks it must ask for them."""

_Document = dict[str, Any]


class Question(NamedTuple):
    """What a certificate is asked for."""

    family: Family
    lengths: Lengths
    epsilon: float
    convention: Convention
    scale: float | None
    states: Sequence[int] | None
    protection: Protection = NARROWEST

    @property
    def windows(self) -> int:
        """Windows of the longest segment."""
        return self.length - min(self.protection.window, self.length) + 1

    @property
    def length(self) -> int:
        """T of the longest segment."""
        return longest(self.lengths)

    @property
    def chains(self) -> tuple[Chain, ...]:
        """The exact chains of the family."""
        if reason := without_matrix(self.family):
            raise ParameterError(reason)
        chains = parse_family(_exact_family(self.family))
        if isinstance(chains, Intervals):
            raise ParameterError("an interval family is not a finite set of chains; use leakage")
        assert not isinstance(chains, Forgetting | Clocked)
        return (chains.worst,) if isinstance(chains, BinaryClass) else chains


def prove(mechanism: str, question: Question, attempts: Callable[[Question], Iterator[_Document]]) -> _Document:
    """Return the certificate of a scale, with the first tight proof among the ``attempts``, or the best.

    An attempt is the fields that only this mechanism has; a ``scale`` among them is what it asks for at least.

    Raises
    ------
    ParameterError
        There is no proof, with the reason.
    """
    document: _Document = {
        "certificate": "pufferflow",
        "version": VERSION,
        "mechanism": mechanism,
        "family": _exact_family(question.family),
        "epsilon": repr(question.epsilon),
        "length": question.length,
        **{key: value for key, value in asdict(question.protection).items() if value != getattr(NARROWEST, key)},
        "scale": "0",
    }
    try:
        fields, proved = _best_proof(document, attempts(question))
    except (ChainError, CertificateError, ParameterError) as error:
        raise ParameterError(f"no certificate for {mechanism}: {error}") from error
    if "proved" in fields:
        fields["proved"] = decimal(proved.upper, 25, ROUND_CEILING)
    document |= fields
    return document | {"scale": repr(max(float(document["scale"]), _float_up(proved.upper)))}


def _best_proof(document: _Document, attempts: Iterator[_Document]) -> tuple[_Document, Bound]:
    """The first tight proof, or the first of those that prove most, with what it proves."""
    best: tuple[_Document, Bound] | None = None
    refused: CertificateError | None = None
    for fields in attempts:
        try:
            bound = _narrowed(parse(document | fields))
        except CertificateError as error:
            refused = error
            continue
        tight = bound.upper - bound.lower <= _FAIR_WIDTH * bound.upper
        if best is None or tight or bound.upper < best[1].upper * (1 - _FAIR_WIDTH):
            best = fields, bound
        if tight:
            break
    if best is None:
        raise refused or ParameterError("there is no proof")
    return best


def _narrowed(proof: Proof) -> Bound:
    """What is proved, to 20 digits."""
    before: Bound | None = None
    for _, bound in proof.bounds(_MOST_WORK):
        gained = bound.upper - bound.lower if before is None else before.upper - bound.upper
        if min(gained, bound.upper - bound.lower) <= _WIDTH * bound.upper:
            return bound
        before = bound
    raise ParameterError(f"{proof.precisions[-1]} bits do not give the scale to 20 digits")


# -- exact numbers -----------------------------------------------------------------------------------


def _exact_family(theta: Family) -> _Document:
    match theta.document():
        case {"binary_interval": [low, high]}:
            return {"binary_interval": [repr(float(low)), repr(float(high))]}
        case {"forgetting": {"steps": steps, "overlap": overlap}}:
            return {"forgetting": {"steps": steps, "overlap": repr(overlap)}}
        case {"interval": numbers}:
            return {"interval": _both_ways(numbers, _exact_intervals)}
        case {"total_variation": numbers}:
            return {"total_variation": _both_ways(numbers, _exact_balls)}
        case {"periodic": {"transition_matrices": matrices, **rest}}:
            return {"periodic": {"transition_matrices": [list(map(_exact_row, matrix)) for matrix in matrices]} | rest}
        case {"labelled": {"transition_matrix": matrix, "initial_distribution": start, "labels": labels}}:
            return {"labelled": _exact_chain(matrix, start) | {"labels": labels}}
        case {"chains": chains} if theta.members:
            return {"chains": [_exact_chain(**chain) for chain in chains]}
    raise ParameterError(f"no certificate: {shown(theta)} is neither a finite family of chains nor an interval")


def _both_ways(numbers: _Document, exact: Callable[..., _Document]) -> _Document:
    """What is known of the rows, and of those of the reversed chain where there are bounds of them."""
    forward = {key: value for key, value in numbers.items() if key != "backward"}
    return exact(**forward) | ({"backward": exact(**numbers["backward"])} if "backward" in numbers else {})


def _exact_intervals(low: list[list[float]], high: list[list[float]]) -> _Document:
    rows = [_exact_bounds(*pair) for pair in zip(low, high, strict=True)]
    return {"low": [below for below, _ in rows], "high": [above for _, above in rows]}


def _exact_balls(transition_matrix: list[list[float]], radius: list[float]) -> _Document:
    return {"transition_matrix": [_exact_row(row) for row in transition_matrix], "radius": [repr(r) for r in radius]}


def _exact_chain(transition_matrix: list[list[float]], initial_distribution: str | list[float]) -> _Document:
    start = initial_distribution
    return {
        "transition_matrix": [_exact_row(row) for row in transition_matrix],
        "initial_distribution": start if isinstance(start, str) else _exact_row(start),
    }


def _exact_row(row: list[float], right: Callable[[Fraction], bool] = lambda total: total == 1) -> list[str]:
    """Shortest decimals where their sum is right, otherwise fractions: the decimals divided by their sum."""
    decimals = [repr(p) for p in row]
    numbers = [Fraction(p) for p in decimals]
    total = sum(numbers, Fraction())
    return decimals if right(total) else [str(p / total) for p in numbers]


def _exact_bounds(low: list[float], high: list[float]) -> tuple[list[str], list[str]]:
    """Bounds of a row that hold those given, each attained by a distribution between them."""
    below = _exact_row(low, lambda total: total <= 1)
    above = _exact_row(high, lambda total: total >= 1)
    pairs = [(Fraction(p), Fraction(q)) for p, q in zip(below, above, strict=True)]
    least, most = (sum(side, Fraction()) for side in zip(*pairs, strict=True))
    for z, (p, q) in enumerate(pairs):
        if least - p + q > 1:
            above[z] = str(1 - least + p)
        if most - q + p < 1:
            below[z] = str(1 - most + q)
    return below, above


def _float_up(number: Fraction) -> float:
    """Smallest float that is no smaller than ``number``, as a binary number and as its shortest decimal."""
    result = float(number)
    while min(Fraction(result), Fraction(repr(result))) < number:
        result = math.nextafter(result, math.inf)
    return result


__all__ = ["Question", "prove"]
