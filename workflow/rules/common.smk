# All helper functions of the workflow; the other files hold rules only.
from dataclasses import asdict
from pathlib import Path

from snakemake.exceptions import WorkflowError
from snakemake.logging import logger

from pufferflow._sources import source_digest
from pufferflow.errors import PufferflowError
from pufferflow.studies.catalogue import jobs, plan
from pufferflow.studies.checksums import missing_files
from pufferflow.studies.folder import hold
from pufferflow.studies.record import TABLE_FORMATS, TIMES_PAGE, module_of
from pufferflow.studies.run_log import one_line_a_job
from pufferflow.studies.settings import check_settings
from pufferflow.studies.warm_jobs import run_scripts_in_forks

WORKFLOW = Path(str(workflow.current_basedir)).parent

try:
    if workflow.is_main_process and not workflow.output_settings.dryrun:
        hold(Path.cwd() / ".snakemake")
        one_line_a_job(logger)
        if workflow.resource_settings.nodes is None:  # not on a cluster
            run_scripts_in_forks()
    check_settings(config, WORKFLOW / "schemas/config.schema.yaml")
except PufferflowError as error:
    raise WorkflowError(str(error)) from None

STEPS, CLAIMS, NOTES = plan(config)
RESULTS = config["results_dir"].rstrip("/")
JOBS = jobs(STEPS, RESULTS)
SHOWN = [step for step in STEPS if step.section and not step.timed]
TIMED = [step for step in STEPS if step.timed]
SAMPLES = {
    step.settings["dataset"]: step.outputs["sample"]
    for step in STEPS
    if step.kind == "ingest"
}
for step in STEPS:
    if step.kind == "fit" and (
        gone := missing_files(Path(step.outputs["models"]), Path(RESULTS))
    ):
        raise WorkflowError(
            f"{gone[0]} is missing; delete {step.outputs['models']} as a whole and run snakemake again"
        )


def sources_of(kind, *works):
    """Digest of all that a job runs, so that an edit of the package runs it again."""
    script = WORKFLOW / f"scripts/{kind}.py"
    return source_digest(script, modules=[module_of(work) for work in works])


def outputs_of(job):
    """Outputs of a job, the files that the report shows marked for Snakemake's own."""
    return [marked(step, name) for step in job.steps for name in step.outputs]


def marked(step, name):
    """An output of a step with what Snakemake has to know of it."""
    path = step.outputs[name]
    if step.kind == "fit" and name == "models":
        return directory(path)
    if step.section and name == ("svg" if step.kind == "plot" else "csv"):
        return in_report(path, step.section.title)
    return path


def in_report(path, title):
    """A file for Snakemake's own report."""
    return report(
        path,
        caption="../report/caption.rst",
        category=title.partition(":")[0],
        labels={"file": Path(path).stem},
    )


def told(step):
    """What a script has to know of a step."""
    return {
        "work": step.work,
        "inputs": dict(step.inputs),
        "outputs": dict(step.outputs),
        "settings": dict(step.settings),
        "published": step.published,
    }


def captions_of(job):
    """Captions of the figures that a job draws, by their titles."""
    sections = [step.section for step in job.steps if step.section]
    return {section.title: section.caption for section in sections if section.caption}


def shown_of(step):
    """What the report says of a job."""
    return {"file": step.shown, **asdict(step.section)}


def every_file():
    """All files of a complete run, intermediate ones too: Snakemake makes a deleted one again only if asked for it."""
    made = [path for job in JOBS if job.usual for path in job.outputs]
    used = [
        path
        for step in STEPS
        if step.kind == "stream"
        for path in step.inputs.get("chunks", ())
    ]
    return [path for path in [*made, *used] if "{" not in path]


def final_results():
    """Rendered tables and figures that belong to a complete run."""
    folders = (f"{RESULTS}/tables/", f"{RESULTS}/figures/")
    return [path for path in every_file() if path.startswith(folders)]
