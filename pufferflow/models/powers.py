"""Powers of transition matrices with their exact supports, and what can follow within a window."""

from __future__ import annotations

import numpy as np

from pufferflow._util.types import Bools, Floats


def followed(possible: Bools, edges: Bools, steps: int) -> Bools:
    """Which states can follow the ``possible`` ones of each row after so many more steps."""
    power = edges
    while steps:
        if steps & 1:
            possible = (possible.astype(np.float32) @ power) > 0
        steps >>= 1
        if steps:
            power = (power.astype(np.float32) @ power) > 0
    return possible


def matrix_power(rows: Floats, n: int) -> tuple[Floats, Bools]:
    """Return the n-th power of a matrix, and which of its entries are exactly positive."""
    support = followed(np.eye(len(rows), dtype=np.bool_), rows > 0, n)
    return np.linalg.matrix_power(rows, n), support


def followers(matrix: Floats, window: int) -> Bools:
    """Which values the last record of a window can have, by that of the first, shape (k, k)."""
    return followed(np.eye(len(matrix), dtype=np.bool_), matrix > 0, window - 1)


def largest_after(table: Floats, last: Bools) -> Floats:
    """Largest entry of a table of pairs of last values, by the pairs of first ones before them."""
    ends = np.array([table[following].max(axis=0) for following in last])
    return np.array([ends[:, following].max(axis=1) for following in last]).T
