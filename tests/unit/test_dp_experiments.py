from fractions import Fraction
from functools import cache
from math import comb

import numpy as np
import pandas as pd
import pytest
from cases import counts
from shipped_settings import shipped

from pufferflow.errors import DataError
from pufferflow.reporting.comparison import compare, reported_values, stated_numbers
from pufferflow.reporting.style import save_figure
from pufferflow.studies.alpha_beta import figures as alpha_beta_figure
from pufferflow.studies.alpha_beta import measure as alpha_beta
from pufferflow.studies.alpha_beta import study as alpha_beta_study
from pufferflow.studies.classical import figures as classical_figure
from pufferflow.studies.classical import measure as classical
from pufferflow.studies.classical import study as classical_study
from pufferflow.studies.classical.worked import SmokingStudy
from pufferflow.studies.values import COLUMNS

pytestmark = pytest.mark.xdist_group("dp experiments")  # what its tests share is made once

SMALL = {
    alpha_beta: shipped(
        "alpha_beta",
        prior_factors=[1, 100, 20000],
        rows_grid=[100, 1000],
        domain_tuples_grid=[10**4, 10**8],
        parameter_sets=100,
        publications=20,
    ),
    classical: shipped("classical", epsilons=[0.2, 1, 5], rounds=300, repetitions=200),
}
FIGURES = {alpha_beta: alpha_beta_figure, classical: classical_figure}
STUDIES = {alpha_beta: alpha_beta_study, classical: classical_study}
PREFIX = {alpha_beta: "alpha-beta/", classical: "classical/"}


@cache
def measured(experiment):
    return experiment.measure(SMALL[experiment], 7)


@pytest.fixture(params=list(SMALL), ids=["alpha_beta", "classical"])
def run(request):
    return request.param, *measured(request.param)


def test_tables_are_the_same_on_every_run(run):
    experiment, curves, claims = run
    again = experiment.measure(SMALL[experiment], 7)
    pd.testing.assert_frame_equal(curves, again[0])
    pd.testing.assert_frame_equal(claims, again[1])
    assert list(curves.columns) == experiment.CURVE_COLUMNS
    assert list(claims.columns) == COLUMNS
    other = experiment.measure(SMALL[experiment], 8)[0]
    assert not curves.equals(other)


def test_every_printed_claim_is_computed_and_gets_its_verdict(run):
    experiment, _, claims = run
    table = compare(stated_numbers(claims))
    printed = reported_values()
    keys = printed.loc[printed["key"].str.startswith(PREFIX[experiment]), "key"]
    assert set(keys) <= set(claims["key"])
    assert len(table) == len(keys) > 4
    # what no source states is shown without a verdict
    assert set(table.loc[table["source"] == "derived here", "verdict"]) == {"no verdict"}
    stated = table[table["source"] != "derived here"]
    others = stated[stated["verdict"] != "reproduced"].set_index("claim")["verdict"].to_dict()
    expected = {
        alpha_beta: {
            "αβ on the line d = (γ/(1−γ)) n/√m where the theorem says no private algorithm is useful": "no verdict",
            "with d = k n/m ≤ γ/10, αβ is (d, γ)-private and errs by at most c √(k/γ)·√n with probability .95, with "
            "one c for all k, γ and m": "agrees with the restored value",
        },
        classical: {"bound on the regret of randomised weighted majority": "typo in the source"},
    }
    assert others == expected[experiment]


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
    curves, _ = alpha_beta.measure(SMALL[alpha_beta] | {"prior_factors": [1, 50000]}, 1)
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
    curves, _ = alpha_beta.measure(
        wide | {"prior_factors": [0.1, 0.2], "rows_grid": [100, 1000], "domain_tuples_grid": [10**4]}, 1
    )
    assert not (curves["panel"] == "views").any()
    beliefs = curves[curves["panel"] == "difference"]
    assert beliefs["statistical_difference"].isna().all()
    assert beliefs["difference_bound"].notna().all()
    assert len(alpha_beta_figure.figure(curves).axes) == 3


def smoker_by_fractions(study, ratio, bit_known):
    """The smoker's example with a rational noise ratio, by enumeration; the noise is cut off where none is left."""
    rates = [Fraction(str(rate)) for rate in (study.harmless, study.harmful)]
    half, reach = Fraction(1, 2), 60
    noise = {z: (1 - ratio) / (1 + ratio) * ratio ** abs(z) for z in range(-reach, reach + 1)}

    def seen(rate, bit):
        law = {}
        for ill in range(study.others + 1):
            p = comb(study.others, ill) * rate**ill * (1 - rate) ** (study.others - ill)
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
    study = SmokingStudy(4, float(np.log(3)))
    without, taking_part = (smoker_by_fractions(study, ratio, known) for known in (False, True))
    assert study.risk_before == 0.125
    assert study.risk_without() == pytest.approx(float(without[0]), rel=1e-12)
    for ill in (False, True):
        assert study.risk_with(ill) == pytest.approx(float(taking_part[ill]), rel=1e-12)
    # with all others known the odds of any one answer change by at most 3
    assert 0.2 < study.risk_known(ill=True) < 0.6 / 1.4
    assert 0.2 > study.risk_known(ill=False) > 0.2 / 2.6
    mean = 0.2 * study.risk_known(ill=True) + 0.8 * study.risk_known(ill=False)
    assert mean == pytest.approx(0.2, rel=1e-12)


def test_points_without_an_error_are_on_the_floor():
    curves, _ = classical.measure(SMALL[classical] | {"epsilons": [1, 30], "repetitions": 20}, 7)
    drawn = classical_figure.figure(curves)
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
def test_figures_are_drawn_byte_for_byte(run, panels, tmp_path, only_svg):
    experiment, curves, _ = run
    module = FIGURES[experiment]
    assert "synthetic data" in STUDIES[experiment].CAPTION
    assert len(module.figure(curves).axes) == curves["panel"].nunique()
    shown = curves["panel"].unique()[:panels]
    some = curves[curves["panel"].isin(shown)]
    first, second = (module.figure(some) for _ in range(2))
    assert len(first.axes) == len(shown)
    (one,), (other,) = save_figure(first, tmp_path / "a"), save_figure(second, tmp_path / "b")
    assert one.read_bytes() == other.read_bytes()
    with pytest.raises(DataError, match="no row"):
        module.figure(curves.iloc[:0])
