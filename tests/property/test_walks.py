"""Nodes that a kernel takes at once, against a plain loop that takes one after the other."""

import numpy as np
from cases import examples
from hypothesis import given
from hypothesis import strategies as st
from random_chains import chains

from pufferflow._util.protection import Protection
from pufferflow.bounds._step_kernels import beyond_stationary
from pufferflow.bounds.distribution_sets import ExactRows, ReweightedRows, costs_of
from pufferflow.bounds.loss import ProcessLoss
from pufferflow.bounds.process import of_chain


def one_by_one(loss, side, cost):
    """Plain twin of the early nodes of a side, or of all: node by node, each set on its own."""
    process, chain = loss._process, side.side
    k, around = len(process.distance), process.around
    away, costs = 1 - np.eye(k), cost * process.distance
    cap = chain.blocks.caps(around * cost * (1 + 1e-12) * away, cost, costs)
    found, early = [np.zeros((k, k))], chain.early
    for step in range(early.count if early else around):
        beside, image = costs_of(found[-1], costs), cap
        if early is None:
            image = np.minimum(image, chain.sets[0].bound(beside))
        else:
            there = early.possible[step + 1]
            rows, error, _, spreads, _ = early._exact
            if early._which[step] >= 0:
                image = np.minimum(
                    image, ReweightedRows(early._roots[early._which[step]], cap).bound(beside)
                )
                for block in chain.blocks.pairwise:
                    if block.steps <= step + 1:
                        before = costs_of(found[step + 1 - block.steps], costs)
                        image = np.minimum(
                            image, block.rows.bound(before) + block.extra(cost) * away
                        )
            if spreads[step] < np.inf:
                known = ExactRows(rows[min(step, len(rows) - 1)], 0.0, there).bound(beside)
                more = 2 * np.log1p(error * np.expm1(min(beside.max(), 700)))
                image = np.minimum(
                    image, known + more + beyond_stationary(*spreads[step : step + 2], beside.max())
                )
            image = np.where(there[:, None] & there, image, 0.0)
        found.append(image * away)
    return np.array(found)


@given(chains(), st.integers(1, 60), st.sampled_from([1e-3, 0.1, 1.0, 20.0]), st.booleans())
@examples(20, 300)
def test_nodes_one_after_another_are_taken_as_one_by_one(chain, length, cost, informed):
    """But for what trees that are nearly the best leave: the kernel takes all nodes at once."""
    loss = ProcessLoss(of_chain(chain, length, Protection(1, "any" if informed else "none")))
    for side in (loss._forward, loss._backward):
        wanted = one_by_one(loss, side, cost)
        found = np.array(side.tables(cost)[: len(wanted)])
        assert (found >= wanted * (1 - 1e-9) - 1e-13).all()
        assert (found <= wanted * (1 + 1e-5) + 1e-5 * cost).all()
