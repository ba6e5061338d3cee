"""Worked values, options, errors and results of the mechanisms."""

import json
import math

import numpy as np
import plain_influence
import pytest

import pufferflow as pf
from pufferflow.errors import ParameterError
from pufferflow.mechanisms import MECHANISMS, find_mechanism
from pufferflow.mechanisms.quilts import MixingQuilts

THETA_1 = pf.MarkovChain([[0.9, 0.1], [0.4, 0.6]], [1, 0])
THETA_2 = pf.MarkovChain([[0.8, 0.2], [0.3, 0.7]], [0.9, 0.1])
THETA = pf.ChainFamily([THETA_1, THETA_2])


def symmetric(stay, start="stationary"):
    return pf.MarkovChain([[stay, 1 - stay], [1 - stay, stay]], start)


# -- worked values ---------------------------------------------------------------------------------


def test_composition_example_of_three_nodes():
    quilts = plain_influence.quilts([[0.9, 0.1], [0.4, 0.6]], [0.8, 0.2], 3)[1]
    assert [card for card, _ in quilts.values()] == [3, 2, 2, 1]  # none, right, left, both
    influences = [math.log(influence) for _, influence in quilts.values()]
    assert influences == pytest.approx([0, math.log(6), math.log(6), math.log(36)])
    scores = [plain_influence.score(*quilt, 10) for quilt in quilts.values()]
    assert scores == pytest.approx([0.3, 0.243658, 0.243658, 0.155849], abs=5e-7)


@pytest.mark.parametrize(
    ("family", "convention", "node", "nodes", "influence", "scale"),
    [
        (THETA_1, "published", 8, (3, 13), 0.308858, 13.02192350),
        (THETA_1, "exact", 8, (1, 13), 0.149532, 12.934051),
        (THETA_2, "published", 6, (None, 10), 0.154151, 10.64019298),
        (THETA_2, "exact", 6, (None, 10), 0.154151, 10.64019298),
        (THETA, "published", 8, (3, 13), 0.308858, 13.02192350),
        (THETA, "exact", 8, (1, 13), 0.149532, 12.934051),
        (
            pf.MarkovChain(THETA_1.transition_matrix, "any"),
            "published",
            8,
            (3, 13),
            0.308858,
            13.02192,
        ),
        (pf.MarkovChain(THETA_1.transition_matrix, "any"), "exact", 8, (3, 13), 0.308858, 13.02192),
    ],
)
def test_running_example(family, convention, node, nodes, influence, scale):
    result = pf.mqm_exact(family, 100, 1.0, convention=convention)
    assert result.node == node
    left, right = result.quilt
    assert (None if left is None else node - left, node + right) == nodes
    assert result.influence == pytest.approx(influence, abs=5e-7)
    assert result.scale == pytest.approx(scale, abs=5e-6 if scale == 13.02192 else 5e-7)


def test_the_chain_that_decides():
    assert pf.mqm_exact(THETA, 100, 1.0).chain == 0
    assert pf.mqm_exact(pf.ChainFamily([THETA_2, THETA_1]), 100, 1.0).chain == 1
    # π_min and g may come from different chains
    assert pf.mqm_approx(THETA, 100, 1.0).chain is None


@pytest.mark.parametrize(
    ("eigengap", "scale", "quilt"),
    [
        ("general", 31.70976, (15, 13)),
        ("reversible", 23.50596, (11, 10)),
        ("auto", 23.50596, (11, 10)),
    ],
)
def test_running_example_approximately(eigengap, scale, quilt):
    result = pf.mqm_approx(THETA, 100, 1.0, eigengap=eigengap)
    assert result.scale == pytest.approx(scale, abs=5e-6)
    assert result.quilt == quilt
    # T ≥ 8a*: the same for every longer chain
    assert pf.mqm_approx(THETA, 10**9, 1.0, eigengap=eigengap).scale == pytest.approx(
        result.scale, rel=1e-12
    )


@pytest.mark.parametrize(
    ("mechanism", "chain", "scales"),
    [
        (pf.mqm_exact, symmetric(0.6), (29.762, 3.572, 0.239)),
        (pf.mqm_exact, symmetric(0.9), (251.371, 31.738, 1.525)),
        (pf.mqm_exact, pf.MarkovChain([[0.9, 0.1], [0.4, 0.6]]), (93.073, 12.840, 0.706)),
        (pf.mqm_exact, symmetric(0.5), (5, 1, 0.2)),
        (pf.mqm_exact, symmetric(0.9, "any"), (None, 33.6293, None)),
        (pf.mqm_exact, symmetric(0.6, "any"), (None, 3.9480, None)),
        (pf.mqm_approx, symmetric(0.9), (None, 49.2202, None)),
        (pf.mqm_approx, symmetric(0.6), (None, 11.5368, None)),
        (pf.mqm_approx, symmetric(0.5), (None, 8.9730, None)),
        (pf.gk16, symmetric(0.6), (None, 3.8873, None)),
        (pf.gk16, symmetric(0.5), (10, 2, 0.4)),
    ],
)
def test_reference_scales_of_binary_chains(mechanism, chain, scales):
    for epsilon, scale in zip((0.2, 1, 5), scales, strict=True):
        if scale is not None:
            assert mechanism(chain, 100, epsilon).scale == pytest.approx(scale, abs=5e-4)


@pytest.mark.parametrize(
    ("epsilon", "alpha", "exact", "approximate", "gk16"),
    [
        (1, 0.1, 0.3363, 0.6864, None),
        (1, 0.2, 0.1422, 0.2963, None),
        (1, 0.3, 0.0722, 0.1772, None),
        (1, 0.36, 0.0475, 0.1405, 0.0748),
        (1, 0.4, 0.0395, 0.1211, 0.0389),
        (0.2, 0.1, 2.5905, 4.3555, None),
        (0.2, 0.3, 0.5966, 1.2097, None),
        (0.2, 0.4, 0.3261, 0.8490, 0.1944),
        (5, 0.1, 0.0210, 0.0987, None),
        (5, 0.3, 0.0041, 0.0216, None),
        (5, 0.4, 0.0026, 0.0135, 0.0078),
    ],
)
def test_errors_of_the_synthetic_class(epsilon, alpha, exact, approximate, gk16):
    family = pf.BinaryInterval(alpha, 1 - alpha)
    for mechanism, error in ((pf.mqm_exact, exact), (pf.mqm_approx, approximate), (pf.gk16, gk16)):
        scale = mechanism(family, 100, epsilon).scale
        assert scale is None if error is None else scale / 100 == pytest.approx(error, abs=5.001e-5)


def test_limit_of_gk16():
    # with the interior entries at the ends too it would be 0.32186; an arbitrary start makes the
    # first one larger
    for epsilon in (0.01, 1, 5):
        assert pf.gk16(pf.BinaryInterval(0.32260, 1 - 0.32260), 100, epsilon).scale is None
        assert pf.gk16(pf.BinaryInterval(0.32261, 1 - 0.32261), 100, epsilon).scale is not None


# -- the eigengap of a chain whose PP* is reducible ------------------------------------------------


@pytest.mark.parametrize("rare", [1 / 8, 1 / 64])
def test_the_printed_eigengap_would_be_too_large(rare):
    chain = pf.MarkovChain([[rare, 1 - rare, 0], [0, 0, 1], [rare, 1 - rare, 0]])
    product = np.linalg.eigvals(chain.transition_matrix @ chain.time_reversal).real
    printed_gap = min(1 - abs(value) for value in product if value < 1 - 1e-9)
    assert printed_gap == pytest.approx(1)
    length, epsilon = 1000, 1.0
    smallest = float(chain.stationary_distribution.min())
    printed = MixingQuilts(smallest, printed_gap, length, epsilon, 1).worst_node().score
    exact = pf.mqm_exact(chain, length, epsilon).scale
    assert printed < exact / 1.9
    assert pf.mqm_approx(chain, length, epsilon).scale >= exact


# -- results ---------------------------------------------------------------------------------------


def test_registry():
    assert MECHANISMS["mqm-exact"] is pf.mqm_exact is find_mechanism("mqm-exact").scale
    with pytest.raises(ParameterError, match=r"mechanism 'laplace' is unknown; choose from .*gk16"):
        find_mechanism("laplace")


@pytest.mark.parametrize("name", ["entry-dp", "group-dp", "gk16", "mqm-approx", "mqm-exact"])
def test_results_name_their_setting_and_are_plain_json(name):
    result = MECHANISMS[name](symmetric(0.6), [5, 50], 1)
    assert (result.mechanism, result.length, result.status, result.reason) == (name, 50, "ok", "")
    fields = json.loads(json.dumps(result.to_dict()))
    assert list(fields) == [
        "mechanism", "epsilon", "length", "scale", "status", "reason", "node", "quilt", "influence",
        "chain", "count", "window", "side_information",
    ]  # fmt: skip
    assert fields["scale"] == result.scale
    assert type(result.scale) is float


@pytest.mark.parametrize("epsilon", [0.2, 1.0, 3.0, 0.7])
def test_baselines_and_one_record(epsilon):
    assert pf.group_dp(THETA, [7, 100, 3], epsilon).scale == pytest.approx(100 / epsilon, rel=1e-15)
    assert pf.mechanisms.entry_dp(THETA, [7, 100], epsilon).scale == pytest.approx(
        1 / epsilon, rel=1e-15
    )
    for name in ("group-dp", "mqm-exact", "mqm-approx", "entry-dp", "gk16"):
        scale, records = MECHANISMS[name](symmetric(0.9), 1, epsilon).scale, 1 + (name == "gk16")
        assert scale == pytest.approx(records / epsilon, rel=1e-14)
    assert pf.gk16(pf.MarkovChain([[0, 1], [1, 0]]), 1, 1.0).scale == 2


def test_release_adds_laplace_noise_of_the_scale():
    result, values = pf.group_dp(None, 10, 2.0), np.zeros((200, 500))
    assert result.noise_scale(0.5) == 2.5
    noise = result.release(values, 0.5, np.random.default_rng(1))
    assert np.abs(noise).mean() == pytest.approx(2.5, rel=0.02)
    assert not values.any()
    assert (noise == result.release(values, 0.5, np.random.default_rng(1))).all()
    with pytest.raises(ParameterError, match="lipschitz is -1; it must be a positive number"):
        result.release([1.0], -1, np.random.default_rng(1))
    none = pf.gk16(symmetric(0.9), 100, 1.0)
    assert (none.scale, none.status) == (None, "not applicable")
    with pytest.raises(
        ParameterError, match=r"gk16 is not applicable .*norm.*; choose another mechanism"
    ):
        none.release([1.0], 1, np.random.default_rng(1))


# -- errors; test_arguments has those of all functions ---------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        *(
            ({"epsilon": e}, f"epsilon is {e!r}; it must be a positive number")
            for e in (0, math.nan, "much", math.inf)
        ),
        ({"epsilon": 1e-100}, "epsilon is 1e-100; it must lie between"),
        *(
            (
                {"length": length},
                f"length is {shown}; it must be an integer from 1 to {2**62}, or a list of such",
            )
            for length, shown in (
                (0, "0"),
                ("7", "'7'"),
                (2**63, str(2**63)),
                ([5, -3], "a list"),
                ([], "a list"),
            )
        ),
        *(
            (bad, next(iter(bad)))
            for bad in ({"window": 0}, {"window": 1.5}, {"side_information": "everything"})
        ),
        ({"convention": "printed"}, "is 'printed'; choose from exact, published"),
        ({"family": [[1.0]]}, "family is a list; give a MarkovChain"),
    ],
)
def test_bad_arguments(options, message):
    with pytest.raises(ParameterError, match=message):
        pf.mqm_exact(**{"family": THETA, "length": 5, "epsilon": 1.0} | options)
    if "convention" not in options and "family" not in options:
        with pytest.raises(ParameterError, match=message):
            pf.group_dp(**{"family": THETA, "length": 5, "epsilon": 1.0} | options)


@pytest.mark.parametrize(
    ("call", "options", "message"),
    [
        (
            pf.mqm_approx,
            {"epsilon": 1.0, "eigengap": "large"},
            "'large'; choose from auto, general, reversible",
        ),
        (pf.leakage, {"epsilon": 1.0, "max_states": -1}, "max_states"),
        (pf.leakage_loss, {"scale": 0.0}, "scale"),
        (pf.leakage_loss, {"scale": 1.0, "window": 0}, "window"),
    ],
)
def test_other_errors(call, options, message):
    with pytest.raises(ParameterError, match=message):
        call(THETA, 5, **options)


def test_early_nodes_of_a_given_start_are_searched_however_long_the_chain():
    """Node 6 is the worst, while all nodes far from the start agree on a smaller scale."""
    chain = pf.MarkovChain([[0.75, 0.25], [0.9966777408637875, 0.003322259136212625]], [0, 1])
    short, long = (pf.mqm_exact(chain, length, 1.0) for length in (60, 10**18))
    assert long.scale == pytest.approx(short.scale, rel=1e-9)
    assert long.node == short.node == 6
    plain = plain_influence.quilts(chain.transition_matrix.tolist(), [0.0, 1.0], 30)
    assert short.scale == pytest.approx(plain_influence.noise_scale(plain, 1.0), rel=1e-9)
