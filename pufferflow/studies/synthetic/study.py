"""Figure 4, upper row: binary chains of the class [α, 1 − α]."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from pufferflow.reporting.style import in_order
from pufferflow.studies.record import Claims, Run, Section, Step, Study, plot

HERE = "pufferflow.studies.synthetic"
SCALES = "results/scales/synthetic.csv"
EXTENDED = "results/scales/synthetic_extended.csv"
LIMITS = "results/scales/synthetic_gk16_limits.csv"
ERRORS = "results/errors/synthetic.csv"
EXTENDED_ERRORS = "results/errors/synthetic_extended.csv"
GROWTH = "results/errors/synthetic_growth.csv"
JOB = "measure_synthetic"


def _steps(run: Run) -> Iterator[Step]:
    own = run.own("synthetic")
    settings = {**run.own("synthetic", without=("extension", "growth", "repetitions")), "options": run.options}
    outputs = {"scales": SCALES, "limits": LIMITS}
    work = f"{HERE}.measure:measure_scales"
    yield Step("compute_synthetic_scales", "measure", work, {}, outputs, settings, priority=1, job=JOB)
    yield _errors(run, "measure_synthetic_errors", SCALES, ERRORS)
    caption = (
        f"L1 error of the released mean of a binary chain of length {own['length']} against the class parameter α. "
        f"Lines are expected errors, points means over {own['repetitions']} simulated chains with one standard error. "
        "Left of the dashed line GK16 does not apply."
    )
    title = "Figure 4, upper row: synthetic chains"
    section = Section(title, "synthetic", caption, "synthetic", settings=own, lead=True)
    inputs = {"errors": ERRORS, "limits": LIMITS}
    yield plot("figure4_upper_synthetic", f"{HERE}.figures:synthetic_error", inputs, section)
    yield from _growth(run)
    if not own["extension"]:
        return
    yield Step(
        "compute_extended_synthetic_scales",
        "measure",
        f"{HERE}.measure:extended",
        {"scale_table": SCALES},
        {"scales": EXTENDED},
        {"mechanisms": own["extension"], "options": run.options},
        job=JOB,
    )
    yield _errors(run, "measure_extended_synthetic_errors", EXTENDED, EXTENDED_ERRORS)
    caption = (
        "Figure 4, upper row, with mechanisms the paper does not draw. Leakage holds for the whole class and every "
        "query; the Wasserstein Mechanism only for the mean, and here for a grid of chains of the class."
    )
    title = "Figure 4, upper row, with further mechanisms"
    section = Section(title, "synthetic-extended", caption, "synthetic", settings=own)
    inputs = {"errors": EXTENDED_ERRORS, "limits": LIMITS}
    yield plot("figure4_upper_synthetic_extended", f"{HERE}.figures:synthetic_error", inputs, section)


def _growth(run: Run) -> Iterator[Step]:
    own = run.own("synthetic")
    settings = {
        **own["growth"],
        "epsilons": own["epsilons"],
        "mechanisms": in_order(["group-dp", *own["mechanisms"]]),
        "options": run.options,
    }
    grown = {"table": GROWTH}
    yield Step("measure_synthetic_growth", "measure", f"{HERE}.measure:growth", {}, grown, settings, job=JOB)
    caption = (
        f"Noise scale for a 1-Lipschitz query of binary chains of the class α = {own['growth']['alpha']:g} against "
        "their length T. The scale of a quilt mechanism stops growing once its widest quilt fits (Theorem 4.10), so "
        "the error of a mean falls as 1/T; that of GroupDP grows with T and its error stays at 1/ε."
    )
    section = Section("Longer chains (Theorem 4.10)", "synthetic-growth", caption, "synthetic", settings=own["growth"])
    yield plot("growth_synthetic", f"{HERE}.figures:growth", {"table": GROWTH}, section)


def _errors(run: Run, name: str, scales: str, errors: str) -> Step:
    settings = {"repetitions": run.own("synthetic")["repetitions"], "seed": run.seed}
    inputs, outputs = {"scale_table": scales}, {"errors": errors}
    return Step(name, "measure", f"{HERE}.measure:errors", inputs, outputs, settings, job=JOB)


def _claims(_run: Run) -> Iterable[Claims]:
    return [Claims(f"{HERE}.claims:synthetic_claims", {"errors": ERRORS, "limits": LIMITS, "growth": GROWTH})]


SYNTHETIC = Study("synthetic", _steps, _claims)
