"""Figure 4, upper row: binary chains of the class [α, 1 − α]."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from pufferflow.studies.record import Claims, Run, Section, Step, Study, plot

HERE = "pufferflow.studies.synthetic"
SCALES = "results/scales/synthetic.csv"
EXTENDED = "results/scales/synthetic_extended.csv"
LIMITS = "results/scales/synthetic_gk16_limits.csv"
ERRORS = "results/errors/synthetic.csv"
EXTENDED_ERRORS = "results/errors/synthetic_extended.csv"


def _steps(run: Run) -> Iterator[Step]:
    own = run.own("synthetic")
    settings = {**run.own("synthetic", without=("extension", "repetitions")), "options": run.options}
    outputs = {"scales": SCALES, "limits": LIMITS}
    yield Step("compute_synthetic_scales", "measure", f"{HERE}.measure:measure_scales", {}, outputs, settings)
    yield _errors(run, "measure_synthetic_errors", SCALES, ERRORS)
    caption = (
        f"Figure 4, upper row: L1 error of the released mean of a binary chain of length {own['length']} against the "
        f"class parameter α. Lines are expected errors, points means over {own['repetitions']} simulated chains with "
        "one standard error. Left of the dashed line GK16 does not apply."
    )
    title = "Synthetic chains (Figure 4, upper row)"
    section = Section(title, "synthetic", caption, "synthetic", settings=own)
    inputs = {"errors": ERRORS, "limits": LIMITS}
    yield plot("figure4_upper_synthetic", f"{HERE}.figures:synthetic_error", inputs, section)
    if not own["extension"]:
        return
    yield Step(
        "compute_extended_synthetic_scales",
        "measure",
        f"{HERE}.measure:extended",
        {"scale_table": SCALES},
        {"scales": EXTENDED},
        {"mechanisms": own["extension"], "options": run.options},
    )
    yield _errors(run, "measure_extended_synthetic_errors", EXTENDED, EXTENDED_ERRORS)
    caption = (
        "Figure 4, upper row, with mechanisms the paper does not draw. Leakage holds for the whole class and every "
        "query; the Wasserstein Mechanism only for the mean, and here for a grid of chains of the class."
    )
    title = "Synthetic chains with further mechanisms"
    section = Section(title, "synthetic-extended", caption, "synthetic", settings=own)
    inputs = {"errors": EXTENDED_ERRORS, "limits": LIMITS}
    yield plot("figure4_upper_synthetic_extended", f"{HERE}.figures:synthetic_error", inputs, section)


def _errors(run: Run, name: str, scales: str, errors: str) -> Step:
    settings = {"repetitions": run.own("synthetic")["repetitions"], "seed": run.seed}
    return Step(name, "measure", f"{HERE}.measure:errors", {"scale_table": scales}, {"errors": errors}, settings)


def _claims(_run: Run) -> Iterable[Claims]:
    return [Claims(f"{HERE}.claims:ordinal_claims", {"errors": ERRORS, "limits": LIMITS})]


SYNTHETIC = Study("synthetic", _steps, _claims)
