"""Chains and families are their values, and a fit stands for its family."""

import numpy as np
import pandas as pd
import pytest

import pufferflow as pf

P = [[0.9, 0.1], [0.4, 0.6]]
MAKERS = (
    lambda p: pf.MarkovChain(p),
    lambda p: pf.ChainFamily([pf.MarkovChain(p, "any")]),
    lambda p: pf.IntervalFamily(np.array(p) / 2, np.ones((2, 2)), backward=pf.IntervalFamily(p, p)),
    lambda p: pf.TotalVariationFamily(p, [0.1, 0.2]),
    lambda p: pf.LabelledChain(pf.MarkovChain(p), [0, 1]),
    lambda p: pf.PeriodicChain([p, P]),
    lambda p: pf.BinaryInterval(p[0][1], 0.9),
    lambda p: pf.MixingFamily(5, p[0][1]),
)


@pytest.mark.parametrize("make", MAKERS)
def test_what_is_made_of_the_same_numbers_is_equal_and_has_one_hash(make):
    one, same, other = make(P), make(np.array(P)), make([[0.8, 0.2], [0.4, 0.6]])
    assert one == same
    assert hash(one) == hash(same)
    assert one != other
    assert one != "a chain"
    assert len({one, same, other}) == 2


def test_the_start_is_a_part_of_the_value():
    assert pf.MarkovChain(P) != pf.MarkovChain(P, "any")
    assert pf.MarkovChain(P, [1, 0]) != pf.MarkovChain(P, [0, 1])
    assert pf.IntervalFamily(P, P) != pf.TotalVariationFamily(P, [0.0, 0.0])


def test_an_accountant_says_what_it_accounts_for():
    accountant = pf.Accountant(pf.MarkovChain(P), 100)
    accountant.add(5.0)
    assert "length=100, Protection(window=1, knows='nothing'), 1 releases" in repr(accountant)


def test_a_fit_is_taken_for_its_family():
    fit = pf.fit(pd.DataFrame({"value": list("abbaabab")}), states=["a", "b"])
    of_fit, of_model = pf.mqm_exact(fit, 100, 1.0), pf.mqm_exact(fit.model, 100, 1.0)
    assert of_fit == of_model == pf.mqm_exact(fit.family, 100, 1.0)
    assert pf.Accountant(fit, 10).family == fit.family
    assert pf.privacy_loss(fit, 5, 3.0, pf.CountQuery([1])).loss > 0
