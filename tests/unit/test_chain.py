"""Chains: stationary distributions, classes, eigengaps; hidden chains; every family in a file."""

import copy
import json
import pickle
from fractions import Fraction
from inspect import signature

import numpy as np
import pandas as pd
import pytest
from cases import examples
from enumeration import random_matrix, stationary_law
from hypothesis import given
from hypothesis import strategies as st
from sequence_programs import label_law
from written_calls import BUILDERS, built

import pufferflow as pf
from pufferflow.errors import ChainError
from pufferflow.models import confidence_family
from pufferflow.models.files import read_public_model, write_model

THETA_1 = [[0.9, 0.1], [0.4, 0.6]]
IRREVERSIBLE = [[0.1, 0.6, 0.3], [0.5, 0.25, 0.25], [0.2, 0.1, 0.7]]


@examples(20, 60)
@given(st.integers(0, 2**32 - 1))
def test_a_chain_made_of_a_chain_is_the_same(seed):
    matrix = np.random.default_rng(seed).dirichlet(np.ones(7), 7)
    once = pf.MarkovChain(matrix).transition_matrix
    assert once.sum(axis=1) == pytest.approx(np.ones(7), abs=1e-15)
    assert (pf.MarkovChain(once).transition_matrix == once).all()


def test_input_is_copied_and_read_only():
    matrix = np.array(THETA_1)
    chain = pf.MarkovChain(matrix)
    matrix[0] = [0, 1]
    assert chain.transition_matrix[0].tolist() == [0.9, 0.1]
    periodic = pf.PeriodicChain([THETA_1, THETA_1[::-1]])
    for same in (lambda one: one, copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))):
        one, arrays = same(chain), [same(periodic).transition_matrices]
        for array in (one.transition_matrix, one.initial_distribution, one.time_reversal, *arrays):
            with pytest.raises(ValueError, match="read-only"):
                array[0] = 0.5


def test_a_path_is_that_of_a_seed_or_a_generator():
    chain = pf.MarkovChain(THETA_1)
    assert chain.simulate(9, 1).tolist() == chain.simulate(9, np.random.default_rng(1)).tolist()


def test_kinds_of_start():
    stationary, some, given_ = (pf.MarkovChain(THETA_1, s) for s in ("stationary", "any", [0, 1]))
    assert stationary.initial_distribution == pytest.approx([0.8, 0.2], abs=1e-15)
    assert some.initial_distribution is None
    assert given_.initial_distribution.tolist() == [0, 1]
    kinds = {"stationary": stationary, "any": some, "given": given_}
    for kind, chain in kinds.items():
        assert chain.start == kind
        assert chain.initial_support.tolist() == [kind != "given", True]


def test_names_of_states_in_one_order():
    named = pd.DataFrame(THETA_1, index=[*"ab"], columns=[*"ab"])
    half_named = pd.DataFrame(THETA_1, columns=[*"ab"]), named.reset_index(drop=True)
    for frame in (named, pd.DataFrame(THETA_1), *half_named):
        assert pf.MarkovChain(frame).transition_matrix.tolist() == THETA_1
    for start in (pd.Series({"a": 0.7, "b": 0.3}), [0.7, 0.3]):
        assert pf.MarkovChain(named, start).initial_distribution.tolist() == [0.7, 0.3]


@pytest.mark.parametrize("number", range(40))
def test_stationary_distribution_against_rational_elimination(number):
    rng = np.random.default_rng([1, number])
    matrix = random_matrix(rng, int(rng.integers(1, 8)))
    floats = [[float(p) for p in row] for row in matrix]
    exact = stationary_law(matrix)
    if exact is None:
        with pytest.raises(ChainError, match=r"not unique: the chain has \d closed classes"):
            pf.MarkovChain(floats)
        return
    chain = pf.MarkovChain(floats)
    for found, law in zip(chain.stationary_distribution.tolist(), exact, strict=True):
        assert abs(Fraction(found) - law) <= law * Fraction(chain.stationary_error)
    assert Fraction(pf.ChainFamily([chain]).smallest_stationary_probability()) <= min(exact)


def test_chain_on_recurrent_states():
    matrix = [[0.5, 0.25, 0.25, 0], [0, 0.9, 0.1, 0], [0, 0.4, 0.6, 0], [0, 0, 0, 1]]
    for start in ("any", [0, 0.3, 0.7, 0]):
        chain = pf.MarkovChain(matrix, start)
        assert chain.recurrent is chain
    transient = pf.MarkovChain([row[:3] for row in matrix[:3]])
    recurrent = transient.recurrent
    assert (recurrent.transition_matrix.tolist(), recurrent.start) == (THETA_1, "stationary")
    assert recurrent.initial_distribution.tolist() == transient.initial_distribution[1:].tolist()
    assert recurrent.recurrent is recurrent


def test_stationary_probabilities_that_are_tiny_or_beyond_floats():
    tiny, rare = 2.0**-200, 1e-200
    chain = pf.MarkovChain([[0.5, 0.5, 0], [1, 0, tiny], [1, 0, 0]])
    assert chain.stationary_distribution == pytest.approx([2 / 3, 1 / 3, tiny / 3], rel=1e-14)
    transient = pf.MarkovChain([[0.5, 0.5, 0], [0, 0.5, 0.5], [0, 0.5, 0.5]])
    assert transient.stationary_distribution.tolist() == [0, 0.5, 0.5]
    assert transient.initial_support.tolist() == [False, True, True]
    # π is proportional to 1, .5e200, .25e400
    beyond = pf.MarkovChain([[0.5, 0.5, 0], [rare, 0.5, 0.5], [0, rare, 1]])
    assert beyond.stationary_distribution == pytest.approx([0, 2e-200, 1], rel=1e-14)
    assert beyond.eigengap("general") == 0
    assert pf.ChainFamily([beyond]).smallest_stationary_probability() == 0
    with pytest.raises(ChainError, match="needs stationary probabilities of at least 1e-290, not "):
        _ = beyond.time_reversal


@pytest.mark.parametrize("up", [1e-105, 1e-110, 1e-150, 5e-324])
def test_stationary_probabilities_below_floats_raise_no_warning(up):
    """A ladder whose upper steps have stationary probabilities that are subnormal or 0."""
    matrix = [[1 - up, up, 0, 0], [0.5, 0.5 - up, up, 0], [0, 0.5, 0.5 - up, up], [0, 0, 0.5, 0.5]]
    for start in ([0, 0, 0, 1], [0.25] * 4, "any", "stationary"):
        chain = pf.MarkovChain(matrix, start)
        upper = pf.mqm_exact(chain, 9, 1.0).scale
        assert 1 <= pf.leakage(chain, 9, 1.0).scale <= upper <= 9


@pytest.mark.parametrize("matrix", [THETA_1, IRREVERSIBLE])
def test_time_reversal_and_the_printed_product(matrix):
    chain = pf.MarkovChain(matrix)
    pairs = chain.stationary_distribution[:, None] * chain.transition_matrix
    assert chain.stationary_distribution[:, None] * chain.time_reversal == pytest.approx(pairs.T)
    assert chain.is_reversible == (matrix is THETA_1)
    product = np.sort(np.linalg.eigvals(chain.transition_matrix @ chain.time_reversal).real)
    assert chain.eigengap("general") == pytest.approx(1 - product[-2], abs=1e-12)


LINE = [[0.5, 0.5, 0], [0.25, 0.5, 0.25], [0, 0.5, 0.5]]
GAPS = [(THETA_1, 0.75, 1.0), ([[0.8, 0.2], [0.3, 0.7]], 0.75, 1.0), (LINE, 0.75, 1.0)]
GAPS += [([[0.9, 0.1], [0.1, 0.9]], 0.36, 0.4), ([[0.2, 0.8], [0.8, 0.2]], 0.64, 0.8)]
GAPS += [([[1]], 1, 2)]


@pytest.mark.parametrize(("matrix", "general", "reversible"), GAPS)
def test_eigengap(matrix, general, reversible):
    chain = pf.MarkovChain(matrix)
    for kind, gap in (("general", general), ("reversible", reversible)):
        assert chain.eigengap(kind) <= gap
        assert chain.eigengap(kind) == pytest.approx(gap, abs=1e-11)


def test_a_family_has_the_smallest_eigengap_each_chain_by_its_kind():
    line, other = pf.MarkovChain(LINE), pf.MarkovChain(IRREVERSIBLE)
    gaps = line.eigengap("reversible"), other.eigengap("general")
    assert pf.ChainFamily([line, other]).eigengap("auto") == min(gaps)


# -- hidden chains ---------------------------------------------------------------------------------

CHAIN = pf.MarkovChain(THETA_1)
ORDER_2 = np.array([[[0.9, 0.1], [0.5, 0.5]], [[0.3, 0.7], [0.2, 0.8]]])


def joint(family, length):
    chain = family.chain
    matrices = [chain.transition_matrix] * (length - 1)
    return label_law(matrices, chain.initial_distribution, family.observations, family.states)


def test_order_2_and_hidden_states_have_their_distributions():
    law = joint(pf.HiddenChain.of_order(ORDER_2), 4)
    assert law.sum() == pytest.approx(1)
    pairs = law.sum(axis=(2, 3))
    np.testing.assert_allclose(law, np.einsum("xy,xyz,yzu->xyzu", pairs, ORDER_2, ORDER_2))
    emission = np.array([[0.9, 0.1, 0], [0.2, 0.3, 0.5]])
    pi, p = CHAIN.stationary_distribution, CHAIN.transition_matrix
    expected = np.einsum("a,ab,bc,ax,by,cz->xyz", pi, p, p, emission, emission, emission)
    np.testing.assert_allclose(joint(pf.HiddenChain.hidden(CHAIN, emission), 3), expected)


def test_durations_have_their_law():
    family = pf.HiddenChain.with_durations([[0, 1], [1, 0]], [[0.2, 0, 0.8], [0.5, 0.5, 0]], [1, 0])
    law = joint(family, 5)
    expected, lasts = np.zeros_like(law), {0: {1: 0.2, 3: 0.8}, 1: {1: 0.5, 2: 0.5}}
    visits = [((), 0, 1.0)]
    while visits:
        seen, state, chance = visits.pop()
        for n, share in lasts[state].items():
            now = (*seen, *[state] * n)
            if len(now) >= 5:
                expected[now[:5]] += chance * share
            else:
                visits.append((now, 1 - state, chance * share))
    np.testing.assert_allclose(law, expected, atol=1e-15)


def test_windows_of_never_observed_records_are_left_out():
    counts = np.zeros((3, 3, 3))
    counts[0, 0, 2] = counts[0, 2, 0] = counts[2, 0, 0] = 4
    chain, states = pf.fit_chain(counts, order=2)
    assert isinstance(chain, pf.HiddenChain)
    assert states.tolist() == [0, 2]
    assert chain.chain.states == 3
    np.testing.assert_array_equal(chain.chain.transition_matrix.sum(axis=1), 1)


# -- model files -----------------------------------------------------------------------------------

NEVER_LEFT = confidence_family([[5, 1, 0], [0, 0, 0], [2, 2, 2]])
BALL = pf.TotalVariationFamily(THETA_1, [0.02, 0.0])
BALLS = pf.TotalVariationFamily(THETA_1, 0.1, backward=BALL)


def parts(one):
    """All that a family is made of, not the document that is written."""
    if isinstance(one, tuple):
        return list(map(parts, one))
    if not type(one).__module__.startswith("pufferflow"):
        return np.asarray(one).tolist()
    names = ["start", *signature(type(one)).parameters]
    return [type(one).__name__, *(parts(getattr(one, name, None)) for name in names)]


@pytest.mark.parametrize("family", [*BUILDERS, NEVER_LEFT, BALLS])
def test_a_written_model_is_read_back_exactly(tmp_path, family):
    family = built(family) if isinstance(family, str) else family
    family = family if not isinstance(family, pf.MarkovChain) else pf.ChainFamily([family])
    again = read_public_model(write_model(tmp_path / "model.json", family)).family
    assert parts(again) == parts(family)
    assert again.document() == family.document()
    backward = getattr(family, "backward", None) is not None
    assert backward == ("forwards and backwards" in family.description())


def test_files_of_others(tmp_path):
    chains = [{"transition_matrix": THETA_1, "initial_distribution": [1, 0]}]
    text = json.dumps({"chains": [*chains, {"transition_matrix": THETA_1}]})
    (tmp_path / "bom.json").write_bytes(b"\xef\xbb\xbf" + text.encode())
    found = read_public_model(tmp_path / "bom.json").family.chains
    assert [chain.start for chain in found] == ["given", "stationary"]
