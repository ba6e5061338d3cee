"""Planning: the errors are those of releases, and what is planned suffices and is not more than needed."""

import json
import math

import numpy as np
import pytest

import pufferflow as pf
from pufferflow import cli
from pufferflow.models import write_model
from pufferflow.publishing.noise import DiscreteLaplace, add_seeded_noise, count_scale
from pufferflow.publishing.planning import error_curves, grid_around

pytestmark = pytest.mark.usefixtures("scales_once")
CHAIN = pf.MarkovChain([[0.8, 0.1, 0.1], [0.2, 0.7, 0.1], [0.3, 0.3, 0.4]])
NAMES = ("mqm-exact", "group-dp", "leakage")
KINDS = ("bin", "bins", "total")


def error(epsilon, length, kind, name, confidence=0.9, records=None):
    scale = count_scale(pf.MECHANISMS[name](CHAIN, length, epsilon).scale)
    return pf.error_quantile(scale, 3, records or length, confidence=confidence, kind=kind)


@pytest.fixture(scope="module")
def noise():
    """Of scale 12.5, in three bins."""
    rng = np.random.default_rng(2)
    return np.abs(np.array([add_seeded_noise([0] * 3, 12.5, rng) for _ in range(20_000)]))


@pytest.mark.parametrize("kind", KINDS)
def test_errors_are_those_of_drawn_noise(kind, noise):
    drawn = {"bin": noise[:, 0], "bins": noise.max(axis=1), "total": noise.sum(axis=1)}[kind] / 1000
    for confidence in (0.5, 0.9, 0.99):
        bound = pf.error_quantile(12.5, 3, 1000, confidence=confidence, kind=kind)
        within, below = (drawn <= bound).mean(), (drawn < bound).mean()
        slack = 5 * np.sqrt(confidence * (1 - confidence) / len(drawn))
        assert within > confidence - slack
        assert below < confidence + slack


@pytest.mark.parametrize("kind", KINDS)
def test_the_planned_epsilon_suffices_and_is_the_smallest(kind):
    for plan in pf.plan_release(CHAIN, 0.02, confidence=0.9, kind=kind, length=5000, mechanisms=NAMES):
        assert error(plan.epsilon, 5000, kind, plan.mechanism) <= 0.02
        assert error(plan.epsilon * (1 - 1e-3), 5000, kind, plan.mechanism) > 0.02 * (1 - 1e-3)


@pytest.mark.parametrize("kind", KINDS)
def test_the_planned_length_suffices(kind):
    for plan in pf.plan_release(CHAIN, 0.02, confidence=0.9, kind=kind, epsilon=1.0, mechanisms=NAMES):
        if plan.mechanism == "group-dp":  # its noise grows as fast as the records
            assert (plan.length, plan.reason) == (None, "no length reaches it")
        else:
            assert error(1.0, plan.length, kind, plan.mechanism) <= 0.02
            assert error(1.0, int(0.98 * plan.length), kind, plan.mechanism) > 0.02


def test_the_planned_number_of_records_suffices():
    for plan in pf.plan_release(CHAIN, 0.01, confidence=0.9, epsilon=1.0, length=100, mechanisms=NAMES):
        assert error(1.0, 100, "bin", plan.mechanism, records=plan.records) <= 0.01
        assert error(1.0, 100, "bin", plan.mechanism, records=plan.records - 1) > 0.01


def test_all_mechanisms_are_listed_with_what_is_wrong_with_them():
    found = {plan.mechanism: plan for plan in pf.plan_release(CHAIN, 0.02, length=5000)}
    assert found["entry-dp"].reason == "not private for correlated records"
    assert found["gk16"].epsilon is None
    assert "not applicable" in found["gk16"].reason
    assert "wasserstein" not in found
    intervals = pf.IntervalFamily(CHAIN.transition_matrix - 0.01, CHAIN.transition_matrix + 0.01)
    found = {plan.mechanism: plan for plan in pf.plan_release(intervals, 0.02, length=5000)}
    assert found["mqm-exact"].epsilon > 0
    assert "not applicable" in found["mqm-approx"].reason


@pytest.mark.parametrize(
    "options",
    [
        {"accuracy": 0, "length": 10},
        {"accuracy": 0.1},
        {"accuracy": 0.1, "length": 0},
        {"accuracy": 0.1, "length": 10, "confidence": 1},
        {"accuracy": 0.1, "length": 10, "kind": "mean"},
        {"accuracy": 0.1, "length": 10, "records": 0},
        {"accuracy": 0.1, "epsilon": 1.0, "records": 10},
        {"accuracy": 0.1, "length": 10, "mechanisms": ["wasserstein"]},
        {"accuracy": 0.1, "length": 10, "mechanisms": ["no"]},
        {"accuracy": 0.1, "epsilon": -1.0},
    ],
)
def test_bad_options(options):
    with pytest.raises(pf.ParameterError):
        pf.plan_release(CHAIN, **options)


def test_curves_fall_and_are_missing_where_a_mechanism_is_not_applicable():
    table = error_curves(CHAIN, grid_around(1.0, 5), length=1000)
    assert table[table["mechanism"] == "gk16"]["error"].isna().all()
    for name in NAMES:
        assert (np.diff(table[table["mechanism"] == name]["error"]) < 0).all()


def test_on_the_command_line(tmp_path, capsys, only_svg):
    model = write_model(tmp_path / "m.json", CHAIN)
    asked = ["plan", "--chain", str(model), "--accuracy", "0.01", "--confidence", "0.95", "--length", "10000"]
    assert cli.main([*asked, "--figure", str(tmp_path / "plan.png")]) == 0
    out = capsys.readouterr().out
    assert out.splitlines()[-1] == f"wrote {tmp_path}/plan.svg"
    assert out.startswith("error of one bin <= 0.01 with probability 0.95:")
    assert (tmp_path / "plan.svg").exists()
    assert cli.main([*asked, "--json", "--mechanism", "mqm-exact"]) == 0
    (plan,) = json.loads(capsys.readouterr().out)
    assert plan["epsilon"] == pf.plan_release(CHAIN, 0.01, length=10000, mechanisms=["mqm-exact"])[0].epsilon
    assert cli.main(["plan", "--chain", str(model), "--accuracy", "0.01"]) == 2
    assert cli.main(["plan", "--chain", str(model), "--accuracy", "0.01", "--epsilon", "1", "--figure", "x"]) == 2


EXTREMES = [
    *({"accuracy": accuracy, "length": 100} for accuracy in (1e-300, 1e91, 1e300)),
    *({"accuracy": 0.01, "length": length, "confidence": 1e-91} for length in (100, 2**62)),
    *({"accuracy": 0.01, "length": 100, "records": 2**62, "confidence": c} for c in (5e-324, 1 - 2**-53)),
    *({"accuracy": accuracy, "epsilon": 1.0} for accuracy in (1e-300, 1e91)),
    *({"accuracy": 1e-300, "epsilon": epsilon, "length": 100} for epsilon in (1e-6, 1e90)),
]


LONG = [options for options in EXTREMES if options["accuracy"] > 1 or options.get("confidence", 0) > 0.5]
"""Of sums: their noise is sought in many steps."""


@pytest.mark.parametrize(
    ("options", "kind"),
    [
        pytest.param(options, kind, marks=pytest.mark.long if kind == "total" and options in LONG else ())
        for options in EXTREMES
        for kind in KINDS
    ],
)
@pytest.mark.filterwarnings("error")
def test_every_plan_is_made_or_says_why_not(options, kind):
    """Whatever finite numbers are asked for: once an ε sought among scales that double without end."""
    for plan in pf.plan_release(CHAIN, kind=kind, mechanisms=["mqm-approx", "group-dp", "leakage"], **options):
        asked = "epsilon" if "epsilon" not in options else "records"
        assert getattr(plan, asked) is not None or "no " in plan.reason or "not applicable" in plan.reason


@pytest.mark.parametrize("scale", [3.5, 2.0**60])
def test_quantiles_of_the_largest_noise_are_the_smallest_that_suffice(scale):
    law = DiscreteLaplace(scale)
    for confidence in (1e-91, 0.5, 1 - 2**-53):
        excess = -math.expm1(math.log(confidence))
        h = law.quantile(confidence)
        assert law.tail(h) <= excess
        assert h == 0 or law.tail(h * (1 - 1e-9) - 1) > excess * (1 - 1e-12)
        assert law.total_quantile(confidence, 3) >= h
