"""What a check takes, estimated before it starts: about, but not less than half of it."""

from __future__ import annotations

from math import isqrt
from typing import Any, NamedTuple

from pufferflow.verify.model import Supports
from pufferflow.verify.parse import Chain, Claim, Count, Intervals, Program, Quilt

MOST_WORK = 6 * 10**7
"""Operations beyond which no certificate is checked unless more are allowed: half a minute to a minute."""

MOST_KEPT = 5 * 10**8
"""Bytes of balls beyond which no certificate is checked."""


class Work(NamedTuple):
    """Operations on one or two balls, products of entries of matrices or polynomials, and balls kept at a time."""

    operations: int
    products: int = 0
    kept: int = 0

    def at(self, precision: int) -> int:
        """Everything in operations on balls of 128 bits; a product costs a tenth of one."""
        words = precision // 128
        return self.operations * (1 + words // 4) + self.products * words * isqrt(words) // 10

    def memory(self, precision: int) -> int:
        """Bytes of the balls that are kept."""
        return self.kept * (100 + precision // 4)


def work_of(claim: Claim) -> Work:
    """Estimate the check of all proofs, without a ball."""
    parts = [_work(member, proof, claim) for member, proof in zip(claim.family.members, claim.proofs, strict=True)]
    return Work(sum(p.operations for p in parts), sum(p.products for p in parts), max(p.kept for p in parts))


def _work(member: Any, proof: Any, claim: Claim) -> Work:
    if isinstance(proof, Program):
        return _program(member, proof, claim)
    if isinstance(proof, Count):
        sizes = [_count(member, n, proof) for n in set(proof.lengths)]
        return Work(sum(s.operations for s in sizes), sum(s.products for s in sizes), max(s.kept for s in sizes))
    if isinstance(proof, list) and member.period == 1:
        return _quilts(member, proof, claim.hidden > 1)
    return Work(200)


def _program(member: Chain | Intervals, program: Program, claim: Claim) -> Work:
    """The witnesses of every step, k of their parts for each pair; k⁴ comparisons under any distribution."""
    k, chain = member.states, isinstance(member, Chain)
    period = member.period if isinstance(member, Chain) else 1
    each = 12 * k if isinstance(member, Chain) else 12 * k**2 * (len(member.rows[0].parts) + 1)
    operations, products, steps = 40 * k**2 + k**3, period * k**3, 0
    for side in (program.forward, program.backward):
        per_piece = period // max(1, len(side.cycle))
        for step, times in [*((s, 1) for s in side.prefix), *((s, per_piece) for s in side.cycle)]:
            pairs = 0 if step.witnesses is None else len(program.witnesses[step.witnesses])
            operations += times * (8 * k**2 + each * pairs + (0 if step.power is None else 5 * k**4))
            products += 20 * k**3 * ((step.power or 0).bit_length() + 8) if chain and period == 1 else 0
            steps += times
    operations += (4 * k**2 + (2 * k**3 if claim.window > 1 else 0)) * (steps + 2)
    return Work(operations, products, 4 * k**2 * (steps + 20))


def _quilts(chain: Chain, ranges: list[Quilt], windows: bool) -> Work:
    """The tables of ratios, k³ operations each, the powers they are from, and the ratios of all ranges."""
    k, supports = chain.states, Supports(chain.matrices[0], chain.start)
    square, cube = k * k, k**3
    right = {quilt.right for quilt in ranges if quilt.right is not None}
    left = {
        (quilt.left, supports.between(quilt.first - quilt.left, quilt.last - quilt.left))
        for quilt in ranges
        if quilt.left is not None and 0 < quilt.left < quilt.first <= quilt.last
    }
    any_start = chain.start == "any"
    rows = {
        quilt.first - 1
        for quilt in ranges
        if quilt.left is not None and (any_start or (chain.start != "stationary" and quilt.first < quilt.last))
    }
    single = sum(quilt.left is not None and not any_start for quilt in ranges)
    followed = sum(min(supports.settling, max(1, quilt.last - quilt.first + 1)) for quilt in ranges)
    tables, powers = len(right) + len(left) + len(rows), {*right, *rows, *(a for a, _ in left)}
    bits = max((n.bit_length() for n in powers), default=0)
    multiplied = bits + sum(n.bit_count() for n in powers)  # matrices
    operations = 4 * square + cube + 2 * cube * tables + multiplied * (6 + square // 4) + 90 * single
    operations += 2 * cube * len(right) if windows else 0
    operations += (4 * len(ranges) + single + 4 * tables) * (square + 4) + followed * k // 4 + 10 * len(ranges)
    return Work(operations, cube * multiplied + square * 63 * single, 3 * square * (tables + bits + 1))


def _count(known: Chain, length: int, count: Count) -> Work:
    """At every node a distribution for every state and start, and every two compared; a plan takes twice that."""
    k, width = known.states, length * max(count.weights) + 1
    starts = k if known.start == "any" else 1
    steps = sum(p != 0 for row in known.matrices[0] for p in row)
    kinds = k * starts
    operations = length * (width + 20) * (6 * kinds + 3 * kinds * (kinds - starts)) + k**3
    products = length * (kinds * width * (width // 6 + 1) + (1 + starts) * steps * (width + 100))
    kept = k * length * (width + 4) // 2 + 10 * kinds * width
    return Work((2 if count.slack else 1) * operations, products, kept)
