"""What the workflow measures of αβ, of classical mechanisms and of the base-2 exponential one."""

import itertools
import math
from fractions import Fraction
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml
from cases import counts, examples
from hypothesis import given
from hypothesis import strategies as st

from pufferflow import dp
from pufferflow.drawing import style
from pufferflow.errors import DataError
from reproduction.comparison import comparison_table, reported_values, stated_rows
from reproduction.related import (
    alpha_beta,
    alpha_beta_figures,
    base2_figures,
    classical,
    classical_figures,
    tables,
)
from reproduction.related import base2_exponential as base2

pytestmark = pytest.mark.xdist_group("dp experiments")  # what its tests share is made once

ROOT = Path(__file__).parents[2]
SHIPPED = yaml.safe_load((ROOT / "config/config.yaml").read_text(encoding="utf-8"))["related"]
SMALLER = {
    "alpha_beta": {
        "prior_factors": [1, 100, 20000],
        "rows_grid": [100, 1000],
        "domain_tuples_grid": [10**4, 10**8],
        "parameter_sets": 100,
        "publications": 20,
    },
    "classical": {"epsilons": [0.2, 1, 5], "rounds": 300, "repetitions": 200},
    "base2_exponential": {"noise_epsilons": [0.5, 2], "noise_draws": 50, "ranges": [1000, 2000]},
}
MODULES = {"alpha_beta": alpha_beta, "classical": classical, "base2_exponential": base2}
FIGURES = dict(zip(MODULES, (alpha_beta_figures, classical_figures, base2_figures), strict=True))
DIFFERING = {"alpha_beta": {"restored"}, "classical": {"differs"}}
DIFFERING["base2_exponential"] = {"differs", "not comparable"}


@cache
def measured(name, seed=7):
    return tables(MODULES[name].measure(SHIPPED[name] | SMALLER[name], seed))


@pytest.mark.parametrize("name", MODULES)
def test_tables_are_the_same_on_every_run_and_all_claims_are_computed(name):
    curves, values = measured(name)
    again = tables(MODULES[name].measure(SHIPPED[name] | SMALLER[name], 7))
    pd.testing.assert_frame_equal(curves, again[0])
    pd.testing.assert_frame_equal(values, again[1])
    assert not curves.equals(measured(name, 8)[0])
    table = comparison_table(stated_rows(values, name), "comparison_related").data
    reported = reported_values(name)
    assert values["key"].is_unique
    assert table["claim"].tolist() == reported["claim"].tolist()
    assert set(table["verdict"]) == {"reproduced", *DIFFERING[name]}


@pytest.mark.parametrize("name", MODULES)
@pytest.mark.parametrize("panels", counts(1, 99))
def test_figures_are_drawn_byte_for_byte(name, panels, tmp_path, monkeypatch):
    monkeypatch.setattr(style, "METADATA", {"svg": style.METADATA["svg"]})
    curves, figure = measured(name)[0], FIGURES[name].figure
    some = (
        curves
        if name == "base2_exponential"
        else curves[curves["panel"].isin(curves["panel"].unique()[:panels])]
    )
    (one,), (other,) = (style.save_figure(figure(some), tmp_path / name) for name in "ab")
    assert one.read_bytes() == other.read_bytes()
    with pytest.raises(DataError, match="no row"):
        figure(curves.iloc[:0])


def test_measured_errors_agree_with_exact_ones():
    drawn = measured("alpha_beta")[0].dropna(subset="rho_measured")
    off = drawn["rho_expected"] - drawn["rho_measured"]
    assert (off.abs() < 4.5 * drawn["rho_standard_error"]).all()
    drawn = measured("classical")[0].query("standard_error > 0")
    off = drawn["expected_error"] - drawn["mean_error"]
    assert (off.abs() < 4.5 * drawn["standard_error"]).all()
    assert len(off) > 5


def test_views_and_beliefs_are_those_of_the_library():
    curves, values = measured("alpha_beta")
    views = curves[curves["panel"] == "views"]
    assert views["posterior_same"].tolist()[:3] == pytest.approx([0.5, 0.9, 81 / 82])
    assert views["posterior_together"].tolist() == pytest.approx([0.5] * len(views))
    beliefs = curves[curves["panel"] == "difference"]
    assert (beliefs["statistical_difference"] <= beliefs["difference_bound"]).all()
    computed = values.set_index("key")["computed"]
    found = [
        computed[f"alpha-beta/{key}"]
        for key in ("extremes/12", "difference-one", "difference-source")
    ]
    assert [float(x) for x in found] == pytest.approx([0.3946, 1.4545, 1.4222], abs=5e-5)
    # no such panel where it makes no sense, and no sum that is too wide
    wide = {"gamma": 0.05, "rows": 10**14, "domain_tuples": 10**15, "query_shares": [1]}
    wide |= {"prior_factors": [0.1, 50000], "rows_grid": [100], "domain_tuples_grid": [10**4]}
    curves, _ = tables(alpha_beta.measure(SHIPPED["alpha_beta"] | SMALLER["alpha_beta"] | wide, 1))
    assert set(curves["prior_factor_k"].dropna()) <= {0.1, 4.0}
    assert not (curves["panel"] == "views").any()
    assert curves["statistical_difference"].isna().all()


def smoker_by_fractions(others, ratio, taking_part):
    """The insurer's mean risk, by whether the smoker is ill, with noise of a rational ratio."""
    rates, noise = [Fraction("0.05"), Fraction("0.2")], {}
    for z in range(-60, 61):
        noise[z] = (1 - ratio) / (1 + ratio) * ratio ** abs(z)

    def outputs(rate, bit):
        law = {}
        for ill, (z, q) in itertools.product(range(others + 1), noise.items()):
            p = math.comb(others, ill) * rate**ill * (1 - rate) ** (others - ill)
            law[ill + bit + z] = law.get(ill + bit + z, 0) + p * q
        return law

    laws = {(r, bit): outputs(r, bit * taking_part) for r in rates for bit in (0, 1)}
    risks = []
    for told in (0, 1):
        risks.append(0)
        for y, p in laws[rates[1], told].items():
            joint = [[(r if b else 1 - r) * laws[r, b].get(y, 0) for r in rates] for b in (0, 1)]
            risks[told] += p * sum(joint[1]) / sum(map(sum, joint))
    return risks


def test_the_smoker_by_fractions():
    found = [classical.smoker(4, math.log(3), ill=ill) for ill in (False, True)]
    for taking_part, name in enumerate(("after it, without his record", "with his record")):
        exact = smoker_by_fractions(4, Fraction(1, 3), taking_part)
        assert [risks[name] for risks in found] == pytest.approx(list(map(float, exact)), rel=1e-12)
    assert found[0]["before the study"] == 0.125
    # with all others known the odds of any one answer change by at most 3
    known = [risks["with it, all others known"] for risks in found]
    assert 0.2 / 2.6 < known[0] < 0.2 < known[1] < 0.6 / 1.4
    assert 0.2 * known[1] + 0.8 * known[0] == pytest.approx(0.2, rel=1e-12)


def test_privacy_is_what_is_declared_unless_the_noise_is_halved():
    privacy = measured("classical")[0].query("panel == 'privacy'")
    halved = privacy["mechanism"].str.endswith("halved")
    ratio = privacy["expected_error"] / privacy["epsilon"]
    assert (np.abs(ratio[~halved] - 1) < 1e-6).all()
    assert (ratio[halved] > 1.05).all()
    assert halved.sum() == 4 * 3


@pytest.mark.parametrize("name", ["zero", "swapped", "truncated"])
def test_attacks_break_the_naive_mechanism_and_not_ours(name):
    attack = base2.all_attacks(30)[name]
    naive, exact = (base2.distributions(attack, mechanism) for mechanism in ("naive", "base-2"))
    assert base2.privacy_loss(*naive.values()) == math.inf
    assert naive["with Alice"][attack.watched] == 1 > 0.7 > naive["without Alice"][attack.watched]
    assert base2.privacy_loss(*exact.values()) <= attack.epsilon
    last = base2.all_attacks(30)["last"]  # the truncated attack depends on the order of the sum
    assert base2.privacy_loss(*base2.distributions(last, "naive").values()) <= last.epsilon


def test_random_bits_taken_are_those_expected():
    rows = measured("base2_exponential")[0].query("panel == 'random bits' and outcomes == 100")
    for row in rows.itertuples():
        utilities = [0] * 100 if row.outcome == "all equal" else range(100)
        mechanism, taken = dp.Base2Exponential(dp.Eta(1, 1), 0, 100, 100, insecure_seed=3), []
        draw = mechanism._random.getrandbits
        mechanism._random.getrandbits = lambda k, draw=draw, taken=taken: taken.append(k) or draw(k)
        if row.mechanism == base2.STORED:  # s of p bits at once, while it is not below the total
            total = sum(mechanism.weights(utilities))
            for _ in range(20):
                while mechanism._random.getrandbits((total - 1).bit_length()) >= total:
                    pass
        else:
            mechanism.sampler = row.mechanism
            mechanism.release(utilities, 20)
        assert 0.5 * row.expected_bits < sum(taken) / 20 < 2 * row.expected_bits


@examples(10, 80)
@given(
    st.lists(st.integers(-50, 50) | st.floats(-1e6, 1e6), min_size=2, max_size=2),
    st.floats(0.05, 1e4),
    st.integers(1, 9),
)
def test_possible_outputs_are_those_of_every_uniform_number(values, scale, bits):
    """Of Laplace noise in doubles; the exact mechanisms have no output that one value rules out."""
    draws = list(itertools.product((-1, 1), range(1, 2**bits + 1)))
    every = [{base2.naive_laplace(v, scale, *drawn, bits) for drawn in draws} for v in values]
    for output in every[0] | every[1]:
        for near in (output, math.nextafter(output, math.inf)):
            assert base2.possible(near, values[0], scale, bits) == (near in every[0])
    exact = dp.Base2Laplace(dp.Eta(1, 2), -3, 3, 1)
    assert all(p > 0 for value in (0, 1) for p in exact.probabilities(value))
