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
from scipy.sparse import block_diag, csr_array


def sequence_law(matrix, law, length):
    """Probability of every sequence, shape (k, …, k)."""
    joint = np.array(law, dtype=float)
    for _ in range(length - 1):
        joint = joint[..., None] * matrix
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
    """Rows f(s) − e^cost f(s') ≤ 0 for all sequences s, s' of this shape, one record apart."""
    numbers = np.arange(np.prod(shape, dtype=int)).reshape(shape)
    pairs = [
        (np.take(numbers, z, axis).ravel(), np.take(numbers, y, axis).ravel())
        for axis, size in enumerate(shape)
        for z, y in permutations(range(size), 2)
    ]
    above, below = (
        np.concatenate([pair[side] for pair in pairs] or [np.empty(0, int)]) for side in (0, 1)
    )
    values = np.concatenate([np.ones(len(above)), np.full(len(above), -np.exp(cost))])
    places = np.concatenate([np.arange(len(above))] * 2), np.concatenate([above, below])
    return csr_array((values, places), shape=(len(above), numbers.size))


def largest_ratio(above, below, shape, cost):
    """Largest log (above·f)/(below·f) over f > 0 that change by at most e^cost per record."""
    return largest_of_ratios([(above, below)], shape, cost)


def largest_of_ratios(pairs, shape, cost):
    """The largest of these for pairs of distributions: one program that splits into one a pair."""
    pairs = [(above, below) for above, below in pairs if not np.array_equal(above, below)]
    if not shape or not pairs:
        return 0.0
    above, below = (np.array(laws) for laws in zip(*pairs, strict=True))
    rows = block_diag([lipschitz(shape, cost)] * len(pairs), format="csr")
    for method in ("highs", "highs-ds", "highs-ipm"):  # one may give up for numerical reasons
        found = linprog(
            -above.ravel(),
            A_ub=rows,
            b_ub=np.zeros(rows.shape[0]),
            A_eq=block_diag(below[:, None], format="csr"),
            b_eq=np.ones(len(pairs)),
            bounds=(0, None),
            method=method,
        )
        if found.status == 0:
            return float(np.log((above * found.x.reshape(above.shape)).sum(axis=1).max()))
    if len(pairs) == 1:
        raise AssertionError(found.message)
    return max(largest_of_ratios([pair], shape, cost) for pair in pairs)


def largest_loss(joint, cost, window=1, side_information="none"):
    """Largest log E[f | W = u, K] / E[f | W = u', K] over f > 0 that change by ≤ e^cost per record.

    ``joint`` has the probability of every sequence, one axis a record; W are ``window`` consecutive
    records, u and u' what they can be; K are no records, or with ``side_information`` "any" any
    sets of others and all values that they can have together with u and u'.
    """
    length = joint.ndim
    window = min(window, length)
    worst = cost  # at least, as if every record could have two values
    for start in range(length - window + 1):
        secret = tuple(range(start, start + window))
        others = [t for t in range(length) if t not in secret]
        sizes = range(1 if side_information == "none" else len(others) + 1)
        for known in (set_ for size in sizes for set_ in combinations(others, size)):
            worst = max(worst, _of_window(joint, secret, known, cost))
    return worst


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
                told = _along(np.concatenate([np.exp(cost * sets), known]), told, axis)
                plain = _along(np.concatenate([np.ones(sets.shape), known]), plain, axis)
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


def _along(matrix, law, axis):
    return np.moveaxis(np.tensordot(matrix, law, (1, axis)), 0, axis)


def _of_window(joint, secret, known, cost):
    """The same for one window and one set of known records."""
    sizes = [joint.shape[t] for t in secret]
    free = tuple(joint.shape[t] for t in range(joint.ndim) if t not in secret and t not in known)
    laws = np.moveaxis(joint, [*known, *secret], range(len(known) + len(secret)))
    values = list(product(*map(range, sizes)))
    worst = 0.0
    for given in laws.reshape(-1, len(values), int(np.prod(free, dtype=int))):
        possible = [u for u in range(len(values)) if given[u].sum() > 0]
        pairs = {}
        for u, v in permutations(possible, 2):
            apart = sum(x != y for x, y in zip(values[u], values[v], strict=True))
            both = given[u] / given[u].sum(), given[v] / given[v].sum()
            pairs.setdefault(apart, []).append(both)
        for apart, laws in pairs.items():
            worst = max(worst, cost * apart + largest_of_ratios(laws, free, cost))
    return worst


def plain_program(joint, cost):
    """:func:`largest_loss` of single records to who knows none, over functions of all records."""
    places = np.indices(joint.shape).reshape(joint.ndim, -1)
    flat, worst = joint.ravel(), cost
    for place in places:
        laws = [flat * (place == x) for x in range(place.max() + 1)]
        laws = [law / law.sum() for law in laws if law.sum() > 0]
        for above, below in permutations(laws, 2):
            worst = max(worst, largest_ratio(above, below, joint.shape, cost))
    return worst
