"""Bounds of what several steps of chains between bounds tell, against products of matrices drawn from them."""

import numpy as np
import pytest
from cases import examples
from hypothesis import given
from hypothesis import strategies as st
from interval_families import draw, family

import pufferflow as pf
from pufferflow.coupling.blocks import Blocks, blocks_of_sets

SEEDS = st.integers(0, 2**32 - 1)
WIDTHS = st.sampled_from([0.0, 1e-9, 0.001, 0.01, 0.03, 0.1, 0.3, 1.0])
STICKY = st.sampled_from([0.0, 0.5, 0.9])


def cross_ratios(rows):
    """Log of the largest P(x, z) P(x', z') / (P(x', z) P(x, z')) by x and x'; 0/0 is no event."""
    with np.errstate(divide="ignore", invalid="ignore"):
        table = np.nanmax(np.log(rows[:, None, :] / rows[None, :, :]), axis=2)
    np.fill_diagonal(table, 0)
    return table + table.T


@pytest.mark.parametrize("columns", [False, True])
@given(SEEDS, st.integers(1, 5), WIDTHS, STICKY, st.sampled_from([0.0, 0.3]), st.sampled_from([2, 9, 200]))
@examples(6, 120)
def test_every_product_of_steps_is_within_the_bounds(columns, seed, k, width, sticky, zeros, length):
    rng = np.random.default_rng(seed)
    box = family(rng, k, width, sticky, zeros)
    blocks = {int(block.steps): block for block in blocks_of_sets(box.rows, length, columns=columns)}
    assert all(1 < steps <= length for steps in blocks)
    for trial in range(4):
        product = np.eye(k)
        matrix = draw(box, rng, corner=True)
        for n in range(1, max(blocks, default=1) + 1):
            # one chain, and others at every step
            product = product @ (matrix if trial < 2 else draw(box, rng, corner=trial % 2))
            if n in blocks:
                exact = cross_ratios(product.T if columns else product)
                slack = 1e-12 * n / product[product > 0].min()
                assert (exact <= np.minimum(blocks[n].limit, blocks[n].rows.limit) + slack).all()


@given(SEEDS, st.integers(2, 4), WIDTHS, STICKY, st.sampled_from([1e-3, 0.3, 4.0]))
@examples(6, 60)
def test_blocks_are_about_as_good_as_one_known_chain(seed, k, width, sticky, cost):
    """Of a family of one chain they are the bounds of Lemma 6; of more chains they are no smaller."""
    rng = np.random.default_rng(seed)
    box = family(rng, k, width, sticky)
    one = draw(box, rng, corner=False)
    alone = pf.IntervalFamily(one, one)
    cap = np.where(np.eye(k) > 0, 0.0, 1000 * cost)
    small, large = (
        Blocks(blocks_of_sets(theta.rows, 1000, columns=True), pairwise=True).caps(cap, cost, cost)
        for theta in (alone, box)
    )
    assert (small <= large * (1 + 1e-5) + 1e-9).all()
    assert (large <= cap).all()
