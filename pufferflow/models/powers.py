"""Powers of transition matrices with their exact supports, and what can follow within a window."""

from __future__ import annotations

import numpy as np

from pufferflow._util.types import Bools, Floats


def followed(possible: Bools, edges: Bools, steps: int) -> Bools:
    """Which states can follow those that are ``possible`` after so many more steps along ``edges``, shape (k, k)."""
    power = edges
    while steps:
        if steps & 1:
            possible = (possible.astype(np.float32) @ power) > 0
        steps >>= 1
        if steps:
            power = (power.astype(np.float32) @ power) > 0
    return possible


def followers(matrix: Floats, window: int) -> Bools:
    """Which values the last record of a window can have after each value of the first one, shape (k, k)."""
    return followed(np.eye(len(matrix), dtype=np.bool_), matrix > 0, window - 1)


def largest_after(table: Floats, last: Bools) -> Floats:
    """Largest entry of a table of pairs of last values, by the pairs of first values that they can follow."""
    ends = np.array([table[following].max(axis=0) for following in last])
    return np.array([ends[:, following].max(axis=1) for following in last]).T


def matrix_power(rows: Floats, n: int) -> tuple[Floats, Bools]:
    """Return the n-th power of a matrix, n ≥ 1, and which of its entries are exactly positive."""
    values, support = rows, rows > 0
    result: tuple[Floats, Bools] | None = None
    while n:
        if n & 1:
            result = (
                (values, support)
                if result is None
                else (np.dot(result[0], values), (result[1].astype(np.float32) @ support) > 0)
            )
        n >>= 1
        if n:
            values, support = np.dot(values, values), (support.astype(np.float32) @ support) > 0
    assert result is not None
    return result


class Supports:
    """States that the nodes 1, 2, … of a chain can take, looked at up to node ``length``.

    From node ``settled`` on they repeat with period ``period``.
    """

    def __init__(self, initial: Bools, edges: Bools, length: int) -> None:
        self.settled, self.period = length + 1, 1
        self._early, known = [initial], {initial.tobytes(): 1}
        while len(known) < length:
            following = followed(self._early[-1], edges, 1)
            node = known.setdefault(following.tobytes(), len(known) + 1)
            if len(self._early) == len(known):  # it was there
                self.settled, self.period = node, len(known) + 1 - node
                break
            self._early.append(following)

    def at(self, node: int) -> Bools:
        """States that a node can take, shape (k,)."""
        if node > len(self._early):
            node = self.settled + (node - self.settled) % self.period
        return self._early[node - 1]
