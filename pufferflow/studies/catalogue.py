"""All studies, in the order of the report, and the steps and jobs of a run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
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
from pufferflow.studies.record import RESULTS, Claims, Job, Run, Section, Step, Study
from pufferflow.studies.synthetic.study import SYNTHETIC
from pufferflow.studies.timings.study import TIMINGS
from pufferflow.studies.wider_guarantees.study import WIDER_GUARANTEES
from pufferflow.studies.worked_examples.study import WORKED_EXAMPLES

STUDIES: tuple[Study, ...] = (
    WORKED_EXAMPLES,
    SYNTHETIC,
    ACTIVITY,
    ELECTRICITY,
    OTHER_DATA,
    LEAST_NOISE,
    WIDER_GUARANTEES,
    HISTOGRAM_STUDY,
    NOISY_MAX,
    BASE2_EXPONENTIAL,
    ALPHA_BETA,
    CLASSICAL,
    COHORT,
    TIMINGS,
)


def plan(settings: Mapping[str, Any]) -> tuple[list[Step], list[Claims], list[Section]]:
    """Return what a run with these settings does, its claims, and its notes for the report."""
    enabled = [study for study in STUDIES if settings["experiments"][study.name]["enabled"]]
    run = Run(settings, {study.name: study.dataset for study in enabled if study.dataset})
    steps: list[Step] = []
    for study in enabled:
        if study.name == next(iter(run.datasets), None):
            steps += _assigned("data", data_steps(run))
        steps += _assigned(study.name, study.steps(run))
    claims = [replace(claim, inputs=run.placed(claim.inputs)) for study in enabled for claim in study.claims(run)]
    return [_placed(step, run) for step in steps], claims, [study.note for study in enabled if study.note]


def jobs(steps: Iterable[Step], results: str = RESULTS) -> list[Job]:
    """Return the jobs that do these steps, with their logs in ``results``."""
    gathered: dict[str, list[Step]] = {}
    for step in steps:
        gathered.setdefault(step.job, []).append(step)
    return [Job(name, tuple(parts), results) for name, parts in gathered.items()]


def _placed(step: Step, run: Run) -> Step:
    """Give a step the files of this run's folder."""
    inputs = step.inputs if step.given else run.placed(step.inputs)
    section = step.section and replace(step.section, data_from=run.placed(step.section.data_from))
    return replace(step, inputs=inputs, outputs=run.placed(step.outputs), section=section)


def _assigned(study: str, steps: Iterable[Step]) -> Iterator[Step]:
    """Give each step its job: one draws and prints all that a study shows in a usual run."""
    for step in steps:
        shows = step.kind in ("plot", "render") and step.usual
        yield replace(step, job=step.job or (f"show_{study}" if shows else step.name))
