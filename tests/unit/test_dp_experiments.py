from fractions import Fraction
from functools import cache
from math import comb
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml
from cases import counts

from pufferflow.drawing import style
from pufferflow.errors import DataError
from reproduction.comparison import comparison_table, reported_values, stated_rows
from reproduction.related import alpha_beta, alpha_beta_figures, classical, classical_figures, tables
from reproduction.related.printed import values_table
from reproduction.tidy import SCHEMAS

pytestmark = pytest.mark.xdist_group("dp experiments")  # what its tests share is made once

ROOT = Path(__file__).parents[2]
SHIPPED = yaml.safe_load((ROOT / "config/config.yaml").read_text(encoding="utf-8"))["related"]
SMALL = {
    alpha_beta: SHIPPED["alpha_beta"]
    | {
        "prior_factors": [1, 100, 20000],
        "rows_grid": [100, 1000],
        "domain_tuples_grid": [10**4, 10**8],
        "parameter_sets": 100,
        "publications": 20,
    },
    classical: SHIPPED["classical"] | {"epsilons": [0.2, 1, 5], "rounds": 300, "repetitions": 200},
}
FIGURES = {alpha_beta: alpha_beta_figures, classical: classical_figures}
NAMES = {alpha_beta: "alpha_beta", classical: "classical"}


@cache
def measured(experiment):
    return tables(experiment.measure(SMALL[experiment], 7))


@pytest.fixture(params=list(SMALL), ids=["alpha_beta", "classical"])
def run(request):
    return request.param, *measured(request.param)


def test_tables_are_the_same_on_every_run(run):
    experiment, curves, claims = run
    again = tables(experiment.measure(SMALL[experiment], 7))
    pd.testing.assert_frame_equal(curves, again[0])
    pd.testing.assert_frame_equal(claims, again[1])
    assert list(curves.columns) == list(SCHEMAS["related"])
    assert list(claims.columns) == list(SCHEMAS["values"])
    other = tables(experiment.measure(SMALL[experiment], 8))[0]
    assert not curves.equals(other)


def test_every_stated_claim_is_computed_and_gets_its_verdict(run):
    experiment, _, claims = run
    name = NAMES[experiment]
    table = comparison_table(stated_rows(claims, name), "comparison_related").data
    reported = reported_values(name)
    assert set(reported["key"]) <= set(claims["key"])
    # what no source states is in the table of values alone
    assert table["claim"].tolist() == reported["claim"].tolist()
    assert len(claims) > len(table) > 4
    printed = values_table(claims, name)
    assert len(printed.display) == len(claims)
    assert (printed.display["published"] == "–").sum() == len(claims) - len(table)
    others = table[table["verdict"] != "reproduced"].set_index("claim")["verdict"].to_dict()
    expected = {
        alpha_beta: {
            "with d = k n/m ≤ γ/10, αβ is (d, γ)-private and errs by at most c √(k/γ)·√n with probability .95, with "
            "one c for all k, γ and m": "restored",
        },
        classical: {"bound on the regret of randomised weighted majority": "differs"},
    }
    assert others == expected[experiment]


def test_values_of_the_impossibility_line_are_those_of_the_comparison():
    _, claims = measured(alpha_beta)
    computed = claims.set_index("key")["computed"]
    found = [float(computed[f"alpha-beta/extremes/{power}"]) for power in (4, 6, 8, 12)]
    assert found == pytest.approx([0.39446, 0.3946, 0.3946, 0.3946], abs=5e-5)
    assert float(computed["alpha-beta/difference-one"]) == pytest.approx(1.4545, abs=5e-5)
    assert float(computed["alpha-beta/difference-source"]) == pytest.approx(1.4222, abs=5e-5)


def test_measured_errors_agree_with_exact_ones(run):
    experiment, curves, _ = run
    if experiment is alpha_beta:
        drawn = curves[curves["rho_measured"].notna()]
        exact, measured, error = drawn["rho_expected"], drawn["rho_measured"], drawn["rho_standard_error"]
    else:
        drawn = curves[curves["standard_error"] > 0]
        exact, measured, error = drawn["expected_error"], drawn["mean_error"], drawn["standard_error"]
    assert len(exact) > 5
    assert (np.abs(exact - measured) < 4.5 * error).all()


def test_a_prior_that_reaches_gamma_is_left_out():
    curves, _ = tables(alpha_beta.measure(SMALL[alpha_beta] | {"prior_factors": [1, 50000]}, 1))
    assert list(curves.loc[curves["panel"] == "k", "prior_factor_k"].unique()) == [1]


def test_views_and_beliefs_are_those_of_the_library():
    curves, _ = measured(alpha_beta)
    views = curves[curves["panel"] == "views"]
    assert views["posterior_same"].tolist()[:3] == pytest.approx([0.5, 0.9, 81 / 82])
    assert views["posterior_together"].tolist() == pytest.approx([0.5] * len(views))
    beliefs = curves[curves["panel"] == "difference"].sort_values("prior_factor_k")
    assert len(beliefs) == 3
    assert beliefs["statistical_difference"].is_monotonic_decreasing
    assert (beliefs["statistical_difference"] <= beliefs["difference_bound"]).all()
    # no such panels where they make no sense, or sums would be too wide
    wide = SMALL[alpha_beta] | {"gamma": 0.05, "rows": 10**14, "domain_tuples": 10**15, "query_shares": [1]}
    curves, _ = tables(
        alpha_beta.measure(
            wide | {"prior_factors": [0.1, 0.2], "rows_grid": [100, 1000], "domain_tuples_grid": [10**4]}, 1
        )
    )
    assert not (curves["panel"] == "views").any()
    beliefs = curves[curves["panel"] == "difference"]
    assert beliefs["statistical_difference"].isna().all()
    assert beliefs["difference_bound"].notna().all()
    assert len(alpha_beta_figures.figure(curves).axes) == 3


def smoker_by_fractions(others, ratio, bit_known):
    """The smoker's example with a rational noise ratio, by enumeration; the noise is cut off where none is left."""
    rates = [Fraction("0.05"), Fraction("0.2")]
    half, reach = Fraction(1, 2), 60
    noise = {z: (1 - ratio) / (1 + ratio) * ratio ** abs(z) for z in range(-reach, reach + 1)}

    def seen(rate, bit):
        law = {}
        for ill in range(others + 1):
            p = comb(others, ill) * rate**ill * (1 - rate) ** (others - ill)
            for z, q in noise.items():
                law[ill + bit + z] = law.get(ill + bit + z, 0) + p * q
        return law

    laws = {(rate, bit): seen(rate, bit if bit_known else 0) for rate in rates for bit in (0, 1)}
    total = {}
    for bit in (0, 1):
        for y, p in laws[rates[1], bit].items():
            weights = {
                (rate, b): half * (rate if b else 1 - rate) * laws[rate, b].get(y, 0) for rate in rates for b in (0, 1)
            }
            risk = sum(weights[rate, 1] for rate in rates) / sum(weights.values())
            total[bit] = total.get(bit, 0) + p * risk
    return total


def test_the_smoker_by_fractions():
    ratio = Fraction(1, 3)
    without, taking_part = (smoker_by_fractions(4, ratio, known) for known in (False, True))
    known = {}
    for ill in (False, True):
        risks = classical.smoker(4, float(np.log(3)), ill=ill)
        assert risks["before the study"] == 0.125
        assert risks["after it, without his record"] == pytest.approx(float(without[ill]), rel=1e-12)
        assert risks["with his record"] == pytest.approx(float(taking_part[ill]), rel=1e-12)
        known[ill] = risks["with it, all others known"]
    # with all others known the odds of any one answer change by at most 3
    assert 0.2 < known[True] < 0.6 / 1.4
    assert 0.2 > known[False] > 0.2 / 2.6
    mean = 0.2 * known[True] + 0.8 * known[False]
    assert mean == pytest.approx(0.2, rel=1e-12)


def test_points_without_an_error_are_on_the_floor():
    curves, _ = tables(classical.measure(SMALL[classical] | {"epsilons": [1, 30], "repetitions": 20}, 7))
    drawn = classical_figures.figure(curves)
    for panel, mechanism in ((0, "Laplace"), (1, "exponential")):
        none = curves[(curves["mechanism"] == mechanism) & (curves["mean_error"] == 0)]
        assert none["epsilon"].tolist()[-1] == 30
        axes = drawn.axes[panel]
        floors = [
            line for line in axes.lines if len(line.get_ydata()) and set(line.get_ydata()) == {axes.get_ylim()[0]}
        ]
        assert [max(line.get_xdata()) for line in floors] == [30]


def test_privacy_is_what_is_declared_unless_the_noise_is_halved():
    curves, _ = measured(classical)
    privacy = curves[curves["panel"] == "privacy"]
    halved = privacy["mechanism"].str.endswith("halved")
    ratio = privacy["expected_error"] / privacy["epsilon"]
    assert len(privacy) == 2 * 4 * 3
    assert (np.abs(ratio[~halved] - 1) < 1e-6).all()
    assert (ratio[halved] > 1.05).all()


@pytest.mark.parametrize("panels", counts(1, 99))
def test_figures_are_drawn_byte_for_byte(run, panels, tmp_path, monkeypatch):
    experiment, curves, _ = run
    monkeypatch.setattr(style, "METADATA", {"svg": style.METADATA["svg"]})
    module = FIGURES[experiment]
    caption = ROOT / f"workflow/report/{NAMES[experiment]}.rst"
    assert "synthetic data" in caption.read_text(encoding="utf-8")
    assert len(module.figure(curves).axes) == curves["panel"].nunique()
    shown = curves["panel"].unique()[:panels]
    some = curves[curves["panel"].isin(shown)]
    first, second = (module.figure(some) for _ in range(2))
    assert len(first.axes) == len(shown)
    (one,), (other,) = style.save_figure(first, tmp_path / "a"), style.save_figure(second, tmp_path / "b")
    assert one.read_bytes() == other.read_bytes()
    with pytest.raises(DataError, match="no row"):
        module.figure(curves.iloc[:0])
