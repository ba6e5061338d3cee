import numpy as np
import pandas as pd
import pytest
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
from pufferflow.studies.values import COLUMNS

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


@pytest.fixture(scope="module", params=list(SMALL), ids=["alpha_beta", "classical"])
def run(request):
    return request.param, *request.param.measure(SMALL[request.param], 7)


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
    others = table[table["verdict"] != "reproduced"].set_index("claim")["verdict"].to_dict()
    expected = {
        alpha_beta: {
            "αβ on the line d = (γ/(1−γ)) n/√m where the theorem says no private algorithm is useful": "no verdict"
        },
        classical: {"bound on the regret of randomised weighted majority": "typo in the source"},
    }
    assert others == expected[experiment]


def test_measured_errors_agree_with_exact_ones(run):
    experiment, curves, _ = run
    if experiment is alpha_beta:
        exact, measured, error = curves["rho_expected"], curves["rho_measured"], curves["rho_standard_error"]
    else:
        drawn = curves[curves["standard_error"] > 0]
        exact, measured, error = drawn["expected_error"], drawn["mean_error"], drawn["standard_error"]
    assert len(exact) > 5
    assert (np.abs(exact - measured) < 4.5 * error).all()


def test_a_prior_that_reaches_gamma_is_left_out():
    curves, _ = alpha_beta.measure(SMALL[alpha_beta] | {"prior_factors": [1, 50000]}, 1)
    assert list(curves.loc[curves["panel"] == "k", "prior_factor_k"].unique()) == [1]


def test_privacy_is_what_is_declared_unless_the_noise_is_halved():
    curves, _ = classical.measure(SMALL[classical], 1)
    privacy = curves[curves["panel"] == "privacy"]
    halved = privacy["mechanism"].str.endswith("halved")
    ratio = privacy["expected_error"] / privacy["epsilon"]
    assert len(privacy) == 2 * 4 * 3
    assert (np.abs(ratio[~halved] - 1) < 1e-6).all()
    assert (ratio[halved] > 1.05).all()


def test_figures_are_drawn_byte_for_byte(run, tmp_path, only_svg):
    experiment, curves, _ = run
    module = FIGURES[experiment]
    assert "synthetic data" in STUDIES[experiment].CAPTION
    drawn = module.figure(curves)
    (first,), (second,) = (
        save_figure(figure, tmp_path / name) for name, figure in (("a", drawn), ("b", module.figure(curves)))
    )
    assert first.read_bytes() == second.read_bytes()
    assert len(drawn.axes) == curves["panel"].nunique()
    some = curves[curves["panel"] == curves["panel"].iloc[0]]
    assert len(module.figure(some).axes) == 1
    with pytest.raises(DataError, match="no row"):
        module.figure(curves.iloc[:0])
