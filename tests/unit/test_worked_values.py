"""Values of papers and of calculations by hand, to the digits that worked.txt gives."""

import ast
from pathlib import Path

import numpy as np
import pytest
from written_calls import called

import pufferflow as pf
from pufferflow.audit import CountQuery

TEXT = Path(__file__).with_name("worked.txt").read_text("utf-8").replace("\n    ", " ")
THETA_1 = pf.MarkovChain([[0.9, 0.1], [0.4, 0.6]], [1, 0])
THETA_2 = pf.MarkovChain([[0.8, 0.2], [0.3, 0.7]], [0.9, 0.1])
ANY_1, STATIONARY_1 = (pf.MarkovChain(THETA_1.transition_matrix, s) for s in ("any", "stationary"))
THETA = pf.ChainFamily([THETA_1, THETA_2])
THREE = pf.MarkovChain([[0.5, 0.3, 0.2], [0.2, 0.6, 0.2], [0.3, 0.3, 0.4]])
EARLY = pf.MarkovChain([[0.75, 0.25], [1 - 0.003322259136212625, 0.003322259136212625]], [0, 1])
FLIPPING, SLOW = (pf.MarkovChain(m) for m in ([[0.2, 0.8], [0.9, 0.1]], [[0.99, 0.01], [0.3, 0.7]]))
UNLIKELY = pf.MarkovChain([[0, 1e-300, 1], [1, 0, 0], [1, 0, 0]], [1, 0, 0])
HALF, SWAP = pf.BinaryInterval(0.5, 0.5), pf.MarkovChain([[0, 1], [1, 0]], "any")
ROUND = pf.MarkovChain(np.eye(3)[[1, 2, 0]])
SELDOM = pf.MarkovChain([[1, 0, 0], [0, 1, 0], [5e-324, 0.25, 0.75]], "any")
TURNED = [[0.9, 0.1, 0], [0.2, 0.7, 0.1], [0.3, 0, 0.7]]
PAIRS = pf.HiddenChain.of_order([[[0.9, 0.1], [0.5, 0.5]], [[0.3, 0.7], [0.2, 0.8]]])
UNIT, COIN, HALVES = [[1, 0], [0, 1]], [["3/4", "1/4"], [0.25, 0.75]], [["1/2", "1/2"]] * 2
TOSSES, CERTAIN = (pf.dp.FiniteMechanism({"yes": p, "no": p[::-1]}) for p in (COIN[0], [1, 0]))
STEPS = pf.dp.FiniteMechanism({i: [f"{9 - i}/9", f"{i}/9"] for i in range(3)}, [(0, 1), (1, 2)])
ZERO, ONE = CountQuery({0}), CountQuery({1})
EPSILONS, ALPHAS = (0.2, 1.0, 5.0), (0.1, 0.2, 0.3, 0.36, 0.4)


def symmetric(stay, start="stationary"):
    return pf.MarkovChain([[stay, 1 - stay], [1 - stay, stay]], start)


def synthetic(alpha):
    return pf.BinaryInterval(alpha, 1 - alpha)


def hidden(transitions, observations, yes=(1, 0), no=(0, 1)):
    return pf.hmm.HiddenMarkovModel(transitions, observations, {"yes": yes, "no": no})


def fits(length, alpha):
    return pf.gk16(synthetic(alpha), length, 1.0).scale is not None


def independent(start):
    return pf.MarkovChain([[0.2, 0.3, 0.5]] * 3, start)


def counted(*rows):
    """The family of these counts, and of a state that was never left."""
    return pf.models.confidence_family([*rows, [0] * len(rows[0])])


def going_round(move):
    return pf.MarkovChain((1 - move) * ROUND.transition_matrix + move * np.eye(3), [0.2, 0.3, 0.5])


def lazy(states):
    return pf.MarkovChain(0.9 * np.eye(states) + 0.1 / states)


def longer(mechanism, matrix, start, **options):
    """Scales of a billion records and of more, over that of a million."""
    chain = pf.MarkovChain(matrix, start)
    long, *more = (mechanism(chain, n, 0.5, **options).scale for n in (10**6, 10**9, 10**18))
    return [scale / long for scale in more]


def least(chain, length, epsilon):
    """Number of records whose noise is a lower bound."""
    return pf.lower_bound(chain, length, epsilon).scale * epsilon


def informed(family, length, window=1):
    return pf.leakage(family, length, 1.0, window=window, side_information="any").scale


def share_of_lower_bounds(chain, epsilon, **options):
    lower = pf.lower_bound(chain, 100, epsilon, **options).scale
    return lower / pf.leakage(chain, 100, epsilon).scale


def agrees(found, text):
    """Equal, or for numbers with a point within half a unit of the last digit."""
    if "." not in text:
        return found == ast.literal_eval(text)
    return abs(found - float(text)) <= 0.5001 * 10.0 ** -len(text.partition(".")[2])


@pytest.mark.parametrize("line", [line for line in TEXT.splitlines() if line and line[0] != "#"])
def test_known_value(line):
    call, _, text = line.rpartition(" = ")
    found = called(call, globals())
    wanted = text.strip("[]").split(", ") if isinstance(found, list) else [text]
    several = found if isinstance(found, list) else [found]
    assert all(agrees(*pair) for pair in zip(several, wanted, strict=True)), found
