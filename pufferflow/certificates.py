"""Certificates: noise scales with a proof that :mod:`pufferflow.verify` can check.

A certificate is a JSON object; probabilities, ε and the scale are exact numbers, written as strings::

    {"certificate": "pufferflow", "version": 1, "mechanism": "mqm-exact" | …, "convention": "exact" | "published",
     "family": {"chains": [{"transition_matrix": [["0.9", "0.1"], …],
                            "initial_distribution": [...] | "stationary" | "any"}, …]}
               or {"binary_interval": [low, high]},
     "epsilon": "1.0", "length": T, "scale": "12.93…",
     "nodes": [[{"first": 1, "last": 7, "left": a | null, "right": b | null}, …], …]}

``nodes`` holds one list of consecutive ranges a chain, which cover the nodes 1 … T; every node of a range has
the quilt at distances ``left`` and ``right``. The first term of eq. 5 is exact for a single node and for a
stationary start; in a longer range it is the bound that holds from the first node on for every initial law.

A certificate of leakage has neither ``convention`` nor ``nodes``, but for every chain bounds of what two values of a
node tell through either side, and the flows that prove them (:mod:`pufferflow.verify.couplings`); states count from 1::

    "couplings": [{"ahead": {"leakages": [["0.0", "0.02…", …], …],
                             "flows": [{"value": 1, "other": 2, "flow": [[1, 2, "0.25"], …]}, …]},
                   "past": {…}}, …]

The quilts are found with the floating-point search and judged with the balls of the verifier. The scale
is the upper end of the verifier's own enclosure, rounded up: it does not rest on the search being right.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

from flint import arb, ctx, fmpq

from pufferflow.errors import ParameterError
from pufferflow.influence.search import Candidate, QuiltSearch, worst_node
from pufferflow.influence.tables import Convention, influence_tables
from pufferflow.markov.chain import Floats, MarkovChain
from pufferflow.markov.families import BinaryInterval, ChainFamily, Family, as_family
from pufferflow.mechanisms.base import check_epsilon, find_mechanism, longest
from pufferflow.verify import PROOFS, CertificateError, parse, verify_certificate
from pufferflow.verify.balls import PRECISIONS, UndecidedError
from pufferflow.verify.parsing import VERSION, parse_family
from pufferflow.verify.quilts import NodeRange, QuiltScores

TOLERANCES = (2.0**-40, 2.0**-30, 2.0**-20, 2.0**-10, 1.0, math.inf)
"""How far (relatively) ranges of nodes may exceed the worst node; the next one where too many ranges were needed."""

MOST_RANGES = 5_000
"""Ranges of one chain at most (single nodes count)."""

_KNOWN_QUILTS = 12
_RELATIVE_WIDTH = Fraction(1, 10**20)

_Form = tuple[int | None, int | None]


def certify(
    family: Family | MarkovChain,
    length: int,
    epsilon: float,
    *,
    convention: Convention = "exact",
    mechanism: str = "mqm-exact",
    scale: float | None = None,
) -> dict[str, Any]:
    """Return a certificate of a scale: for every node a quilt with card / (ε − e) at most that (Algorithm 3).

    Parameters
    ----------
    family : Family or MarkovChain
        Θ. Every float stands for its shortest decimal (0.1 for ``0.1``), rows are divided by their exact sum.
    length : int
        T of the longest segment.
    epsilon : float
        ε > 0, likewise read as its shortest decimal.
    convention : {"exact", "published"}
        As for :func:`pufferflow.mqm_exact`.
    mechanism : {"mqm-exact", "mqm-approx", "group-dp", "leakage"}
        Whose scale. That of mqm-exact is the smallest one such quilts prove, that of leakage the smallest one proved
        by couplings that serve all nodes alike; the others' are their own.
    scale : float, optional
        The scale to prove, of mqm-approx or group-dp (default: computed with default options).

    Returns
    -------
    dict
        Plain JSON types. ``float(certificate["scale"])`` is the scale: at least the verifier's enclosure, and
        of mqm-exact above its upper end by rounding to a float only.

    Raises
    ------
    ParameterError
        ε or T is out of range, quilts do not prove the mechanism's scale, the family is neither finite nor a
        :class:`BinaryInterval`, or no precision suffices to decide (numbers so far apart do not occur in
        fitted chains).
    """
    theta = as_family(family)
    if not isinstance(theta, ChainFamily | BinaryInterval):
        raise ParameterError(f"no certificate: {theta!r} is neither a finite family of chains nor a binary interval")
    if mechanism not in PROOFS:
        raise ParameterError(f"no certificate for {mechanism}: there are proofs for {', '.join(PROOFS)}")
    epsilon, length = check_epsilon(epsilon), longest(length)
    if mechanism == "leakage":
        return _certify_couplings(theta, length, epsilon)
    own = scale
    if mechanism == "mqm-exact":
        own = None
    elif own is None:
        own = find_mechanism(mechanism)(theta, length, epsilon).scale
    tables = [influence_tables(chain, convention) for chain in theta.chains]
    worst = [worst_node(table, length, epsilon) for table in tables]
    searches = [QuiltSearch(table, length, epsilon) for table in tables]
    document = _claim(mechanism, theta, length, epsilon) | {"convention": convention, "nodes": []}
    chains = parse_family(document["family"])
    for precision in PRECISIONS:
        try:
            with ctx.workprec(precision):
                scores = [QuiltScores(chain, convention, length, Fraction(repr(epsilon))) for chain in chains]
                document["nodes"] = _node_ranges(scores, searches, worst)
            break
        except UndecidedError:
            continue
    else:
        raise ParameterError(f"no certificate: {PRECISIONS[-1]} bits do not tell small probabilities from 0")
    for _, found in parse(document)[1].bounds():
        if found.upper - found.lower <= _RELATIVE_WIDTH * found.upper:
            document["scale"] = repr(max(own or 0.0, _float_up(found.upper)))
            return document
    raise ParameterError(f"no certificate: {PRECISIONS[-1]} bits do not give the scale to 20 digits")


def _claim(mechanism: str, theta: Family, length: int, epsilon: float) -> dict[str, Any]:
    """What every certificate states."""
    return {
        "certificate": "pufferflow",
        "version": VERSION,
        "mechanism": mechanism,
        "family": _exact_family(theta),
        "epsilon": repr(epsilon),
        "length": length,
        "scale": "0",
    }


def _certify_couplings(theta: Family, length: int, epsilon: float) -> dict[str, Any]:
    """Certificate of leakage: couplings found in floating point, judged by the verifier."""
    from pufferflow.coupling.certificate import couplings  # loads compiled code

    scale, proofs = couplings(theta.chains, length, epsilon)
    document = _claim("leakage", theta, length, epsilon) | {"scale": repr(scale), "couplings": proofs}
    try:
        verify_certificate(document)
    except CertificateError as error:
        raise ParameterError(f"no certificate: rounding spoils the couplings for this epsilon ({error})") from error
    return document


# -- exact numbers -----------------------------------------------------------------------------------


def _exact_family(theta: Family) -> dict[str, Any]:
    if isinstance(theta, BinaryInterval):
        return {"binary_interval": [repr(float(theta.low)), repr(float(theta.high))]}
    return {
        "chains": [
            {
                "transition_matrix": [_exact_distribution(row) for row in chain.transition_matrix],
                "initial_distribution": _exact_distribution(chain.initial_distribution)
                if chain.start == "given" and chain.initial_distribution is not None
                else chain.start,
            }
            for chain in theta.chains
        ]
    }


def _exact_distribution(row: Floats) -> list[str]:
    """Shortest decimals where they sum to 1, otherwise fractions: the decimals divided by their sum."""
    decimals = [repr(p) for p in row.tolist()]
    numbers = [Fraction(p) for p in decimals]
    total = sum(numbers)
    return decimals if total == 1 else [str(p / total) for p in numbers]


def _float_up(number: Fraction) -> float:
    """Smallest float that is no smaller than ``number``, as a binary number and as its shortest decimal."""
    result = float(number)
    while min(Fraction(result), Fraction(repr(result))) < number:
        result = math.nextafter(result, math.inf)
    return result


# -- covering the nodes ------------------------------------------------------------------------------


class _TooManyRangesError(Exception):
    pass


def _node_ranges(
    scores: list[QuiltScores], searches: list[QuiltSearch], worst: list[Candidate]
) -> list[list[dict[str, int | None]]]:
    """Ranges of nodes of all chains whose scores hardly exceed that of the worst node."""
    highest = arb(0)
    for score, candidate in zip(scores, worst, strict=True):
        reached = score.score(NodeRange(candidate.node, candidate.node, candidate.left, candidate.right))
        if reached is not None:
            highest = highest.max(reached)
    for tolerance in TOLERANCES:
        try:
            covers = [
                _Cover(score, search, highest.upper() * (1 + arb(tolerance)))
                for score, search in zip(scores, searches, strict=True)
            ]
            return [
                [vars(nodes).copy() for nodes in cover.run(candidate)]
                for cover, candidate in zip(covers, worst, strict=True)
            ]
        except _TooManyRangesError:
            continue
    raise AssertionError("with infinite tolerance the trivial quilt covers all nodes")


class _Cover:
    """Nodes 1 … T in few ranges whose scores are at most ``target``, as far as there are such quilts.

    A quilt serves a whole range of nodes where the bound of its first node suffices: a two-sided one up
    to T − b, a left-only one up to T, a right-only one as long as its card is small enough. Where no
    known quilt serves, a single node gets its best one, which joins the known ones.
    """

    def __init__(self, scores: QuiltScores, search: QuiltSearch, target: arb) -> None:
        self.scores, self.search, self.target = scores, search, target
        self.length = scores.length
        self.forms: list[_Form] = [(None, None)]
        self.waits: dict[_Form, tuple[int, int]] = {}  # node from which to try again, nodes waited for

    def run(self, worst: Candidate) -> list[NodeRange]:
        self._learn(worst)
        ranges: list[NodeRange] = []
        node = 1
        while node <= self.length:
            if len(ranges) == MOST_RANGES:
                raise _TooManyRangesError
            ranges.append(self._longest(node) or self._single(node))
            node = ranges[-1].last + 1
        return ranges

    def _learn(self, quilt: Candidate) -> None:
        """Put the quilt and its sides in front of the known ones; the trivial one stays."""
        a, b = quilt.left, quilt.right
        self.forms = list(dict.fromkeys([(a, b), (None, b), (a, None), *self.forms[: _KNOWN_QUILTS - 1], (None, None)]))

    def _longest(self, node: int) -> NodeRange | None:
        """The longest range from ``node`` on that a known quilt serves."""
        found = [nodes for form in self.forms if (nodes := self._served(node, *form)) is not None]
        return max(found, key=lambda nodes: nodes.last, default=None)

    def _served(self, node: int, a: int | None, b: int | None) -> NodeRange | None:
        end = self.length - (b or 0)
        nodes = NodeRange(node, end, a, b)
        again, waited = self.waits.get((a, b), (0, 0))
        if node > end or node <= (a or 0) or node < again:
            return None
        if a is None and b is not None:
            # influence does not depend on the law: the card alone limits the range
            score = self.scores.score(nodes)
            if score is None:
                return None
            most = int(float((self.target * (end + b - 1) / score).mid())) if self.target.is_finite() else end + b - 1
            for last in (most - b + 1, most - b):
                nodes = NodeRange(node, min(last, end), a, b)
                if last >= node and self._good(nodes):
                    return nodes
            return None
        if self._good(nodes):
            return nodes
        if a is not None:
            # the bound falls with the node, but costs a power of P: do not ask for it at every node
            waited = 2 * waited + 1
            self.waits[(a, b)] = node + waited, waited
        return None

    def _single(self, node: int) -> NodeRange:
        for a, b in self.forms:
            if (a or 0) < node <= self.length - (b or 0):
                nodes = NodeRange(node, node, a, b)
                if self._good(nodes):
                    return nodes
        best = self.search.best_quilt(node)
        self._learn(best)
        nodes = NodeRange(node, node, best.left, best.right)
        score = self.scores.score(nodes)
        if score is None:  # the search rounds influences up, so this takes a quilt at the very edge of ε
            return NodeRange(node, node, None, None)
        if score > self.target:
            # no quilt does better here, so other nodes may score as much
            self.target = score.upper()
        return nodes

    def _good(self, nodes: NodeRange) -> bool:
        if not self._least_score(nodes) <= self.target:
            return False
        score = self.scores.score(nodes)
        return score is not None and bool(score <= self.target)

    def _least_score(self, nodes: NodeRange) -> arb:
        """Card/ε, which needs no power of P."""
        card = self.scores.card(nodes)
        epsilon = self.scores.epsilon
        return arb(fmpq(card * epsilon.denominator, epsilon.numerator))


__all__ = ["certify"]
