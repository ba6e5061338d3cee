"""All studies, in the order of the report, and the jobs of a run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pufferflow.studies.activity.study import ACTIVITY
from pufferflow.studies.alpha_beta.study import ALPHA_BETA
from pufferflow.studies.base2_exponential.study import BASE2_EXPONENTIAL
from pufferflow.studies.classical.study import CLASSICAL
from pufferflow.studies.cohort.study import COHORT
from pufferflow.studies.electricity.study import ELECTRICITY
from pufferflow.studies.histogram_study.study import HISTOGRAM_STUDY
from pufferflow.studies.least_noise.study import LEAST_NOISE
from pufferflow.studies.noisy_max.study import NOISY_MAX
from pufferflow.studies.other_data.study import OTHER_DATA
from pufferflow.studies.real_data.study import data_steps
from pufferflow.studies.record import Claims, Run, Section, Step, Study
from pufferflow.studies.synthetic.study import SYNTHETIC
from pufferflow.studies.timings.study import TIMINGS
from pufferflow.studies.worked_examples.study import WORKED_EXAMPLES

STUDIES: tuple[Study, ...] = (
    WORKED_EXAMPLES,
    SYNTHETIC,
    ACTIVITY,
    ELECTRICITY,
    OTHER_DATA,
    LEAST_NOISE,
    HISTOGRAM_STUDY,
    NOISY_MAX,
    BASE2_EXPONENTIAL,
    ALPHA_BETA,
    CLASSICAL,
    COHORT,
    TIMINGS,
)


def plan(settings: Mapping[str, Any]) -> tuple[list[Step], list[Claims], list[Section]]:
    """Return the jobs of a run with these settings, its claims, and its notes for the report."""
    enabled = [study for study in STUDIES if settings["experiments"][study.name]["enabled"]]
    run = Run(settings, {study.name: study.dataset for study in enabled if study.dataset})
    steps: list[Step] = []
    for study in enabled:
        if study.name == next(iter(run.datasets), None):
            steps += data_steps(run)
        steps += study.steps(run)
    return steps, [claim for study in enabled for claim in study.claims(run)], [s.note for s in enabled if s.note]
