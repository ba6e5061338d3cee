"""The scale of wasserstein: W / ε for one count, or next to it (Algorithm 1 of the paper).

A visit to a state adds its weight to N. W is proved if for every chain, length, node i and two
values s, s' of X_i the distribution of N given s can be moved into the one given s' by at most W:

* with ``slack`` 0, if F_s(n) ≤ F_s'(n + W) for all n. Then the scale W / ε suffices.
* otherwise, if a plan moves it into (1 + slack) times the distribution given s'. Then noise of
  scale σ loses at most W / σ + log(1 + slack). This is for distributions that are equal up to
  rounding, for which no precision decides the inequality above.

All distributions are computed as polynomials in balls, P(N = n, X_i = x) being the coefficients of
a product of one polynomial for the nodes up to i and one for those after it. With any initial
distribution they are mixtures over X_1 = u with weights r: P(s) F_s(n) = Σ_u r_u F_u(n), and so on,
and

* the inequality is Σ_uv r_u r_v c_uv ≥ 0 with c_uv = P_u(s) F'_v(n + W) − P_v(s') F_u(n). It
  follows from c_uu ≥ 0 and −(c_uv + c_vu)/2 ≤ √(c_uu c_vv), as mixtures of two starts suffice
  (docs/histograms.md).
* it is enough to have a plan for every two starts: from P_v(s') P_u(·, s) + P_u(s') P_v(·, s) to
  P_u(s) P_v(·, s') + P_v(s) P_u(·, s').
"""

from collections.abc import Iterator
from fractions import Fraction
from itertools import accumulate, combinations, combinations_with_replacement, permutations
from typing import Any, NamedTuple

from flint import arb, arb_poly, fmpz_poly

from pufferflow.verify.balls import Table, Work, ball, columns, decide, exact
from pufferflow.verify.model import Model
from pufferflow.verify.parse import Claim, Count, require

_ACCURATE = 48
"""Bits from which on a missing plan is not due to wide balls."""


def count_loss(claim: Claim, chain: Any, count: Count, work: Work) -> Fraction:
    """Return W / scale + log(1 + slack) if the distributions at all nodes are within W.

    Raises CertificateError: they are not; UndecidedError: more bits are needed.
    """
    single = claim.window == 1 and claim.side_information == "none"
    listed = claim.family.chains is not None and chain.period == 1 and chain.observations is None
    why = "a count has a proof for single records, no side information, and listed chains with one "
    require(single and listed, why + "matrix that are recorded themselves")
    fits = max(count.lengths) == claim.length and len(count.weights) == chain.states
    why = f"a count has one weight per state, and {claim.length} for the longest of its lengths"
    require(fits, why)
    model, within = Model(chain, work), _plans if count.slack else _dominates
    for length in sorted(set(count.lengths)):
        # a distribution per node, state and start, and all comparisons; a stored ball is ten
        k, width = chain.states, length * max(count.weights) + 1
        starts = k if chain.initial_distribution == "any" else 1
        compared = starts * (width + 20) * (6 + 3 * (k - 1) * starts)
        stored = starts * width * (width // 6 + 1) // 10 + 5 * width
        work.spend((2 if count.slack else 1) * length * k * (compared + stored))
        for node, given in distributions_at_nodes(model, length, count.weights):
            never = [all(one.total.is_zero() for one in starts) for starts in given]
            for x, y in permutations([x for x in range(k) if not never[x]], 2):
                moved = within(given[x], given[y], count.W, count.slack)
                why = f"{length} records, node {node}: given states {x + 1} and {y + 1} the "
                require(moved, why + f"distributions of the count are not within W = {count.W}")
    slack = exact((1 + ball(count.slack)).log().upper()) if count.slack else Fraction()
    return slack + (count.W / claim.scale if count.W else 0)


class Given(NamedTuple):
    """Balls around P(N = n, X_i = x) for a start, the same of N ≤ n and N > n, and P(X_i = x).

    All are exactly 0 for an impossible state.
    """

    masses: list[arb]
    below: list[arb]
    above: list[arb]
    total: arb


def distributions_at_nodes(
    model: Model, length: int, weights: list[int]
) -> Iterator[tuple[int, list[list[Given]]]]:
    """Yield every node with the distributions by state and start (every state for any start)."""
    rows, width = model.rows[0], length * max(weights) + 1
    starts = [[arb_poly([p]) for p in row] for row in model.distributions(range(1))]
    forward = [_shifted(polynomials, weights) for polynomials in starts]
    backward = [[arb_poly([1])] * model.k]
    for _ in range(length - 1):
        backward.append(_mixtures(rows, _shifted(backward[-1], weights)))
    for node in range(1, length + 1):
        later = backward.pop()
        yield node, [[_given(past[x], later[x], width) for past in forward] for x in range(model.k)]
        forward = [_shifted(_mixtures(columns(rows), past), weights) for past in forward]


def _mixtures(rows: Table, polynomials: list[arb_poly]) -> list[arb_poly]:
    every = [zip(row, polynomials, strict=True) for row in rows]
    return [sum((one * p for p, one in row if not p.is_zero()), arb_poly([])) for row in every]


def _shifted(polynomials: list[arb_poly], weights: list[int]) -> list[arb_poly]:
    return [polynomial.left_shift(w) for polynomial, w in zip(polynomials, weights, strict=True)]


def _given(past: arb_poly, future: arb_poly, width: int) -> Given:
    """Return the distribution with these two factors; impossible counts are exactly 0."""
    masses, possible = (past * future).coeffs(), (_support(past) * _support(future)).coeffs()
    masses = [p if some else arb(0) for p, some in zip(masses, possible, strict=True)]
    masses += [arb(0)] * (width - len(masses))
    below, above = list(accumulate(masses)), list(accumulate(reversed(masses[1:])))
    return Given(masses, below, [*above[::-1], arb(0)], below[-1])


def _support(polynomial: arb_poly) -> fmpz_poly:
    return fmpz_poly([int(not p.is_zero()) for p in polynomial.coeffs()])


def _dominates(first: list[Given], second: list[Given], reach: int, _slack: Fraction) -> bool:
    """Return whether F(n) ≤ F'(n + reach) for all n and mixtures of starts (see above)."""
    starts = range(len(first))
    entries = [[_differences(first[u], second[v], reach) for v in starts] for u in starts]
    places = range(len(first[0].masses) - reach)  # beyond, F' is 1
    return all(_copositive([[entries[u][v][n] for v in starts] for u in starts]) for n in places)


def _differences(first: Given, second: Given, reach: int) -> list[arb]:
    """Return c_uv for all n: P F' − P' F, or P' G − P G' with G = P − F, the narrower ball."""
    count = max(0, len(first.masses) - reach)
    p, q = first.total, second.total
    below = arb_poly(second.below[reach:]) * p - arb_poly(first.below[:count]) * q
    above = arb_poly(first.above[:count]) * q - arb_poly(second.above[reach:]) * p
    return [min(below[n], above[n], key=arb.rad) for n in range(count)]


def _copositive(entries: list[list[arb]]) -> bool:
    """Return whether the form with these coefficients is ≥ 0 for all mixtures."""
    starts = range(len(entries))
    if not all(_certainly(entries[u][u] >= 0, entries[u][u] < 0) for u in starts):
        return False
    for u, v in combinations(starts, 2):
        size, right = entries[u][v] + entries[v][u], 4 * entries[u][u] * entries[v][v]
        if not size >= 0 and not _certainly(size * size <= right, size * size > right):
            return False
    return True


def _certainly(true: bool, false: bool) -> bool:
    """Return the proved truth value, or raise UndecidedError."""
    decide(true or false)
    return true


def _plans(first: list[Given], second: list[Given], reach: int, slack: Fraction) -> bool:
    """Return whether plans move the first by ≤ ``reach`` into (1 + slack) times the second.

    They exist for every mixture of starts.
    """
    for u, v in combinations_with_replacement(range(len(first)), 2):
        masses = _mixed(first[u], first[v], second[v].total, second[u].total)
        rooms = _mixed(second[u], second[v], first[v].total, first[u].total)
        if not _movable(masses, [room * (1 + ball(slack)) for room in rooms], reach):
            accurate = all(p.rel_accuracy_bits() >= _ACCURATE for p in (*masses, *rooms))
            return _certainly(False, accurate)
    return True


def _mixed(first: Given, second: Given, size: arb, other: arb) -> list[arb]:
    return [p * size + q * other for p, q in zip(first.masses, second.masses, strict=True)]


def _movable(masses: list[arb], rooms: list[arb], reach: int) -> bool:
    """Return whether the masses fit, filling the capacities from the left.

    All masses reach equally far, so no other plan is better.
    """
    rooms = [room.lower() for room in rooms]
    place = 0
    for n, mass in enumerate(masses):
        rest, place = mass.upper(), max(place, n - reach)
        while rest > 0:
            if place > min(n + reach, len(rooms) - 1):
                return False
            moved = rest.min(rooms[place])
            rest, rooms[place] = (rest - moved).upper(), (rooms[place] - moved).lower()
            if rest > 0:
                place += 1
    return True
