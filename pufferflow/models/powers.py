"""Powers of transition matrices with their exact supports, and possible values in a window."""

import numpy as np

from pufferflow._util.types import Bools, Floats


def followed(possible: Bools, edges: Bools, steps: int) -> Bools:
    """Return the states that can follow the ``possible`` ones of each row after ``steps``."""
    power = edges  # floats are exact here: sums of k ones
    while steps:
        if steps & 1:
            possible = (possible.astype(np.float32) @ power) > 0
        steps >>= 1
        if steps:
            power = (power.astype(np.float32) @ power) > 0
    return possible


def matrix_power(rows: Floats, n: int) -> tuple[Floats, Bools]:
    """Return the n-th power of a matrix, and the mask of its positive entries."""
    support = followed(np.eye(len(rows), dtype=np.bool_), rows > 0, n)
    return np.linalg.matrix_power(rows, n), support


def largest_after(table: Floats, last: Bools) -> Floats:
    """Return the largest entry of a table of pairs of last values, by pairs of first values."""
    ends = np.array([table[following].max(axis=0) for following in last])
    return np.array([ends[:, following].max(axis=1) for following in last]).T


class Supports:
    """States that the nodes 1, 2, … of a chain can have, up to node ``length``.

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
        """Return the states that a node can have, shape (k,)."""
        if node > len(self._early):
            node = self.settled + (node - self.settled) % self.period
        return self._early[node - 1]
