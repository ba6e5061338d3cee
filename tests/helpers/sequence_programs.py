"""What can be told of a secret, by linear programs over all sequences.

No Markov property, no coupling, no count.

For two values u, u' of a window the best f is e^(c·d) larger at u than at u', d the places where
they differ: what it is at u' extends to every value v of the window by f(v, ·) = e^(c·d(v, u'))
f(u', ·). So the programs run over functions of the records outside of the window that are not
known. :func:`plain_program` takes no such step.
"""

from functools import lru_cache
from itertools import combinations, permutations, product

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import csr_array


def sequence_law(matrix, law, length):
    """Probability of every sequence, shape (k, …, k)."""
    joint = np.asarray(law)
    for _ in range(length - 1):
        joint = joint[..., None] * np.asarray(matrix)
    return joint


def label_law(matrices, law, labels, count):
    """Joint law of the labels of all records, shape (count,) · T; a matrix for each step."""
    n = len(law)
    shows = np.zeros((n, count))
    shows[np.arange(n), labels] = 1
    joint = np.asarray(law)[None, :, None] * shows[None]  # (sequences so far, state now, label now)
    for matrix in matrices:
        flat = joint.transpose(0, 2, 1).reshape(-1, n)
        joint = (flat @ matrix)[:, :, None] * shows[None]
    return joint.sum(axis=1).reshape((count,) * (len(matrices) + 1))


@lru_cache(maxsize=64)
def lipschitz(shape, cost):
    """Limits for :func:`as_rows` of all pairs of sequences of this shape, one record apart."""
    numbers = np.arange(np.prod(shape, dtype=int)).reshape(shape)
    pairs = [
        (np.take(numbers, z, axis).ravel(), np.take(numbers, y, axis).ravel())
        for axis, size in enumerate(shape)
        for z, y in permutations(range(size), 2)
    ]
    above, below = np.concatenate(pairs, axis=1) if pairs else np.empty((2, 0), dtype=int)
    return above, below, np.full(len(above), np.exp(cost))


def as_rows(limits, sizes):
    """Rows f(s) − growth f(s') ≤ 0 for limits (s, s', growth) of functions of so many values."""
    begin = np.cumsum([0, *sizes])
    parts = [
        (s + at, t + at, growth) for (s, t, growth), at in zip(limits, begin[:-1], strict=True)
    ]
    above, below, growth = map(np.concatenate, zip(*parts, strict=True))
    values = np.concatenate([np.ones(len(above)), -growth])
    places = np.tile(np.arange(len(above)), 2), np.concatenate([above, below])
    return csr_array((values, places), shape=(len(above), begin[-1]))


def log_ratios(programs):
    """Largest log (above·f)/(below·f) over f ≥ 0 within limits, for each (above, below, limits).

    Those whose numbers share their first 40 bits are solved once, which moves a result by 4e-12.
    """
    keys = [(_rounded(p), _rounded(q), id(limits)) for p, q, limits in programs]
    distinct = {key: one for key, one in zip(keys, programs, strict=True) if key[0] != key[1]}
    found = dict(zip(distinct, _solved(list(distinct.values())), strict=True))
    return np.array([found.get(key, 0.0) for key in keys])


def _rounded(law):
    """The first 40 of the 52 bits of each number."""
    return (np.ascontiguousarray(law, float).view(np.int64) + (1 << 11) >> 12).tobytes()


def _solved(programs):
    """One program that splits into all of these."""
    if not programs:
        return np.empty(0)
    above, below, limits = zip(*programs, strict=True)
    begin = np.cumsum([0, *map(len, above)])
    rows, above = as_rows(limits, list(map(len, above))), np.concatenate(above)
    below = np.concatenate(below), np.arange(len(above)), begin
    for method in ("highs", "highs-ds", "highs-ipm"):  # one may give up for numerical reasons
        found = linprog(
            -above,
            A_ub=rows,
            b_ub=np.zeros(rows.shape[0]),
            A_eq=csr_array(below, shape=(len(programs), len(above))),
            b_eq=np.ones(len(programs)),
            method=method,
        )
        if found.status == 0:
            return np.log(np.add.reduceat(above * found.x, begin[:-1]))
    assert len(programs) > 1, found.message
    return np.concatenate([_solved([program]) for program in programs])


def largest_loss(joint, cost, window=1, side_information="none"):
    """Largest log E[f | W = u, K] / E[f | W = u', K] over f > 0 that change by ≤ e^cost per record.

    ``joint`` has the probability of every sequence, one axis per record; W are ``window``
    consecutive records, u and u' what they can be; K are no records, or with ``side_information``
    "any" any sets of others and all values that they can have together with u and u'.
    """
    window = min(window, joint.ndim)
    apart, programs = [], []
    for start in range(joint.ndim - window + 1):
        secret = range(start, start + window)
        others = [t for t in range(joint.ndim) if t not in secret]
        values = list(product(*(range(joint.shape[t]) for t in secret)))
        sizes = range(1 if side_information == "none" else len(others) + 1)
        for known in (chosen for size in sizes for chosen in combinations(others, size)):
            free = tuple(joint.shape[t] for t in others if t not in known)
            laws = np.moveaxis(joint, [*known, *secret], range(len(known) + window))
            for given in laws.reshape(-1, len(values), int(np.prod(free, dtype=int))):
                possible = [(u, f / f.sum()) for u, f in zip(values, given, strict=True) if f.any()]
                for (u, above), (v, below) in permutations(possible, 2):
                    apart.append(sum(x != y for x, y in zip(u, v, strict=True)))
                    programs.append((above, below, lipschitz(free, cost)))
    # at least that of one record, as if every record could have two values
    return max([cost, *(cost * np.array(apart) + log_ratios(programs))])


def largest_loss_of_counts(joint, cost, window=1):
    """As :func:`largest_loss` with ``side_information="any"``.

    All sets of known records, all their values, all counts.

    Counts of sets that change with time attain it (Theorem 10 of docs/leakage.md); nothing else is
    taken from there. Every record outside of the window is counted in one of the proper sets of its
    values, or known to have one of them: a matrix along its axis of the law works out all of these
    choices at once.
    """
    length = joint.ndim
    window = min(window, length)
    worst = cost
    for start in range(length - window + 1):
        told, plain = joint, joint
        for axis in range(length):
            if not start <= axis < start + window:
                sets = np.array(list(product([0, 1], repeat=joint.shape[axis]))[1:-1])
                known = np.eye(joint.shape[axis])
                told = along(np.concatenate([np.exp(cost * sets), known]), told, axis)
                plain = along(np.concatenate([np.ones(sets.shape), known]), plain, axis)
        secret = tuple(range(start, start + window))
        shape = [joint.shape[t] for t in secret]
        told, plain = (
            np.moveaxis(law, secret, range(window)).reshape(np.prod(shape), -1)
            for law in (told, plain)
        )
        with np.errstate(divide="ignore", invalid="ignore"):
            logs = np.log(told / plain)  # NaN where the values cannot occur together
        values = list(product(*map(range, shape)))
        for u, v in permutations(range(len(logs)), 2):
            apart = sum(x != y for x, y in zip(values[u], values[v], strict=True))
            differences = logs[u] - logs[v]
            if not np.isnan(differences).all():
                worst = max(worst, cost * apart + float(np.nanmax(differences)))
    return worst


def along(matrix, law, axis):
    return np.moveaxis(np.tensordot(matrix, law, (1, axis)), 0, axis)


def plain_program(joint, cost):
    """:func:`largest_loss` of single records to who knows none, over functions of all records."""
    places = np.indices(joint.shape).reshape(joint.ndim, -1)
    programs, limits = [], lipschitz(joint.shape, cost)
    for place in places:
        laws = [joint.ravel() * (place == x) for x in range(place.max() + 1)]
        laws = [law / law.sum() for law in laws if law.any()]
        programs += [(*both, limits) for both in permutations(laws, 2)]
    return max([cost, *log_ratios(programs)])
