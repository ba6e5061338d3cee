import json
import os
import re
import shutil
import signal
import time
import zipfile

import pandas as pd
import pytest
from rocrate.rocrate import ROCrate

import pufferflow as pf
from pufferflow._sources import source_files
from pufferflow.studies.catalogue import jobs, plan
from pufferflow.studies.record import module_of

pytestmark = pytest.mark.xdist_group("workflow")  # runs fork from one process that has loaded what they need


def test_complete_run_has_every_output(finished):
    results = set(finished.results())
    for expected in (
        "report.html",
        "tables/comparison.csv",
        "tables/comparison.md",
        "tables/comparison.tex",
        "tables/table1_activity_bundled.csv",
        "tables/table3_electricity_bundled.tex",
        "tables/worked_examples.md",
        "tables/least_noise_electricity_bundled.csv",
        "figures/least_noise_activity_bundled.svg",
        "figures/composition_synthetic.svg",
        "figures/figure4_upper_synthetic_extended.svg",
        "figures/noisy_max_synthetic.svg",
        "tables/alpha_beta_claims.tex",
        "figures/figure4_upper_synthetic.svg",
        "figures/figure4_lower_activity_bundled.pdf",
        "figures/histogram_electricity_bundled.png",
        "chains/activity_bundled/men_18_54.json",
        "errors/electricity_bundled_releases.csv",
    ):
        assert expected in results
    benchmarks = finished.folder / "results/benchmarks"
    assert (benchmarks / "table2.md").is_file()
    assert "MQMExact ÷ seconds of MQMApprox" in (benchmarks / "table2.html").read_text(encoding="utf-8")
    assert 'href="benchmarks/table2.html"' in (finished.folder / "results/report.html").read_text(encoding="utf-8")
    verdicts = pd.read_csv(finished.folder / "results/tables/comparison.csv")
    # no row claims what it cannot: not of values worked out here, nor of numbers that records enter
    assert "reproduced" not in set(verdicts.loc[verdicts["source"].isin(["restored", "derived here"]), "verdict"])
    reasoned = verdicts[verdicts["verdict"].isin(["differs", "not comparable", "typo in the source"])]
    assert len(reasoned) > 5
    assert reasoned["reason"].notna().all()
    other = verdicts[verdicts["data"].str.contains("bundled")]
    assert other.loc[other["verdict"] == "reproduced", "claim"].str.contains("GroupDP: household").all()


def test_provenance_lists_every_result(finished):
    provenance = json.loads((finished.folder / "results/provenance.json").read_text(encoding="utf-8"))
    recorded = {path.removeprefix("results/"): digest for path, digest in provenance["results_sha256"].items()}
    results = finished.results()
    for folder in ("tables", "figures"):
        for path, digest in results.items():
            if path.startswith(folder):
                assert recorded[path] == digest
    assert recorded["report.html"] == results["report.html"]


def test_the_run_is_a_research_object(finished):
    crate = ROCrate(finished.folder / "results")
    (run,) = crate.get_by_type("CreateAction")
    digests = {file.id: file["sha256"] for file in run["result"]}
    results = finished.results()
    assert digests == {path: results[path] for path in digests}
    assert {"report.html", "tables/comparison.csv"} < set(digests) == {part.id for part in crate.data_entities}
    assert run["instrument"]["softwareVersion"] == pf.__version__


def test_second_run_has_nothing_to_do(finished):
    assert "Nothing to be done" in finished.run("--dry-run")


def test_a_run_asks_for_every_file_that_it_makes(finished):
    """Snakemake makes a deleted file again only where the last rule asks for it."""
    lines = finished.reasons("--forceall")["all"]
    asked = next(line for line in lines if line.startswith("input: ")).removeprefix("input: ").split(", ")
    top = finished.folder / "results/checksums"
    made = {f"results/{path.relative_to(top)}".removesuffix(".sha256") for path in top.rglob("*.sha256")}
    assert made == set(asked)
    files = {f"results/{path}" for path in finished.results() if not path.startswith("checksums/")}
    assert files - made == {path for path in files if path.startswith("results/chains/") and path.endswith(".json")}


def test_an_edited_title_reruns_what_prints_it(copy):
    path = "pufferflow/studies/classical/study.py"
    copy.edit(path, ', "Classical differential privacy"', ', "Differential privacy"')
    planned = copy.planned()
    assert {"show_classical", "write_report"} <= planned
    assert not {"measure_classical", "show_alpha_beta"} & planned


def test_a_second_run_in_the_folder_is_told_of_the_first_in_one_sentence(project):
    first = project.start("--quiet", "all", cores=1)
    while not (project.folder / "results/logs").exists():
        assert first.poll() is None, first.communicate()[0][-4000:]
        time.sleep(0.1)
    os.killpg(first.pid, signal.SIGSTOP)  # it need not work meanwhile
    output = project.run(fails=True)
    assert f"another run (process {first.pid}) works in {project.folder}; wait until it ends" in output
    assert len(output.splitlines()) < 6
    assert "Traceback" not in output
    project.run("--dry-run")  # looking is allowed
    os.killpg(first.pid, signal.SIGKILL)
    first.communicate()
    # what the killed run has locked needs nobody's hand
    assert list((project.folder / ".snakemake/locks").glob("*.lock"))
    project.run("--", "results/samples/electricity_bundled.json", cores=1)


def test_a_run_prints_a_line_a_job_and_logs_say_what_was_done(finished):
    printed = (finished.folder / "run.txt").read_text(encoding="utf-8").splitlines()
    steps, _, _ = plan(finished.settings)
    names = {job.name for job in jobs(steps) if job.usual}
    lines = [line.split() for line in printed if re.match(r" *\d+/\d+  ", line)]
    assert names < {name for _, name, *_ in lines}
    assert [count for count, *_ in lines] == [f"{n}/{len(lines)}" for n in range(1, len(lines) + 1)]
    assert len(printed) < len(lines) + 12
    assert max(map(len, printed)) < 400
    log = (finished.folder / "results/logs/measure_synthetic.log").read_text(encoding="utf-8")
    assert "pufferflow.studies.synthetic.measure:" in log
    assert "epsilons = [0.5, 1]" in log
    assert re.search(r"-> results/errors/synthetic.csv: \d+ rows", log)


def test_results_of_other_settings_go_to_another_folder(finished):
    settings = finished.settings
    usual, claims, _ = plan(settings)
    moved, moved_claims, _ = plan({**settings, "results_dir": "results/tried"})
    for step, other in zip(usual, moved, strict=True):
        assert [path.replace("results/", "results/tried/", 1) for path in step.outputs.values()] == [
            *other.outputs.values()
        ]
        assert (step.timed, step.settings) == (other.timed, other.settings)
    for claim, other in zip(claims, moved_claims, strict=True):
        assert all(path.startswith("results/tried/") for path in other.inputs.values())
        assert len(claim.inputs) == len(other.inputs)
    assert all(job.log.startswith("results/tried/logs/") for job in jobs(moved, "results/tried"))


def test_snakemakes_own_report_holds_every_shown_file_with_its_caption(copy):
    copy.run("--report", "report.zip")
    with zipfile.ZipFile(copy.folder / "report.zip") as archive:
        page = next(name for name in archive.namelist() if name.endswith("report.html"))
        text = archive.read(page).decode("utf-8")
    steps, _, _ = plan(copy.settings)
    shown = [step for step in steps if step.section]
    assert len(shown) > 20
    for step in shown:
        name = step.outputs["svg" if step.kind == "plot" else "csv"].rpartition("/")[2]
        assert name in text, name
    assert "In the shaded region no Laplace noise on the counts of the states is private" in text


@pytest.mark.parametrize("again", [1, pytest.param(4, marks=pytest.mark.long)])
def test_deleted_intermediates_are_made_again(copy, finished, again):
    made_by = {
        "related/histogram_study_claims.csv": "measure_histogram_study",
        "related/classical_claims.csv": "measure_classical",
        "errors/synthetic.csv": "measure_synthetic",
        "scales/composition_synthetic.csv": "compute_composition_synthetic",
        "samples/activity_bundled.csv": "ingest_activity_bundled",
        "chains/electricity_bundled.csv": "fit_electricity_bundled",
        "errors/electricity_bundled_releases.csv": "measure_electricity_bundled",
    }
    for path in made_by:
        (copy.folder / "results" / path).unlink()
    assert set(made_by.values()) <= copy.planned()
    for path in list(made_by)[again:]:  # some need much of the run again
        shutil.copy2(finished.folder / "results" / path, copy.folder / "results" / path)
    copy.run()
    assert copy.results() == finished.results()
    for path in (copy.folder / "results/chains/activity_bundled").glob("men*.json"):
        path.unlink()
    output = copy.run("--dry-run", fails=True)
    assert "men_18_54.json is missing; delete results/chains/activity_bundled as a whole and run snakemake" in output
    assert "Traceback" not in output


def test_damaged_intermediates_are_refused_until_deleted(copy, finished):
    results = copy.folder / "results"
    half, edited = results / "related/histogram_study_synthetic.csv", results / "samples/electricity_bundled.json"
    lines = half.read_text(encoding="utf-8").splitlines(keepends=True)
    half.write_text("".join(lines[:3]), encoding="utf-8")
    text = edited.read_text(encoding="utf-8")
    edited.write_text(text.replace('"segment_lengths":[', '"segment_lengths":[7,', 1), encoding="utf-8")
    targets = ("--", "results/figures/histogram_study_synthetic.svg", "results/chains/electricity_bundled.csv")
    output = copy.run("--keep-going", *targets, fails=True)
    assert (
        "pufferflow: error: results/related/histogram_study_synthetic.csv is not as the run made it "
        f"(2 rows, not {len(lines) - 1}); delete it and run snakemake again"
    ) in output
    assert "pufferflow: error: results/samples/electricity_bundled.json is not as the run made it" in output
    assert "Traceback" not in output
    for path in (half, edited):
        path.unlink()
    copy.run(*targets)
    assert copy.results().items() <= finished.results().items()
    assert all((copy.folder / target).is_file() for target in targets[1:])


def test_a_damaged_figure_does_not_get_into_the_report(copy):
    figure = copy.folder / "results/figures/histogram_electricity_bundled.svg"
    figure.write_bytes(figure.read_bytes()[:1000])
    output = copy.run("--", "results/report.html", fails=True)
    assert "histogram_electricity_bundled.svg is not as the run made it" in output


SOME = (
    "results/chains/electricity_bundled.csv",
    "results/chains/activity_bundled.csv",
    "results/tables/worked_examples.md",
    "results/figures/histogram_study_synthetic.svg",
)


@pytest.mark.parametrize(
    ("targets", "kills"), [(SOME, (12,)), pytest.param((), (1, 15, 40, 150), marks=pytest.mark.long)]
)
def test_killed_run_goes_on_to_the_same_bytes_on_one_core(finished, project, targets, kills):
    for files in kills:  # while it makes what comes after so many
        process = project.start("--quiet", "all", "--", *targets, cores=1)
        while len(list((project.folder / "results").rglob("*.*"))) < files:
            assert process.poll() is None, process.communicate()[0][-4000:]
            time.sleep(0.1)
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
    project.run("--", *targets, cores=1)
    made = project.results()
    assert made.items() <= finished.results().items()
    assert len(made) > 30 if targets else made == finished.results()


SCALES_AND_ERRORS = ("results/scales/synthetic.csv", "results/errors/synthetic.csv")


@pytest.mark.parametrize("targets", [SCALES_AND_ERRORS, pytest.param((), marks=pytest.mark.long)])
def test_further_epsilon_reruns_what_uses_it_and_changes_no_other_digit(copy, finished, targets):
    copy.edit("tiny.yaml", "epsilons: [0.5, 1]", "epsilons: [0.5, 2, 1]")
    assert copy.planned() == {
        "all",
        "measure_synthetic",
        "show_synthetic",
        "compare_results",
        "write_report",
        "record_provenance",
    }
    copy.run("--", *targets)
    for table in SCALES_AND_ERRORS:
        before = (finished.folder / table).read_text(encoding="utf-8").splitlines()
        after = (copy.folder / table).read_text(encoding="utf-8").splitlines()
        column = before[0].split(",").index("epsilon")
        assert [line for line in after if line.split(",")[column] != "2.0"] == before
        assert len(after) > len(before)
    unchanged = finished.results()
    changed = {path for path, digest in copy.results().items() if unchanged.get(path) != digest}
    own = {"report.html", "checksums/report.html.sha256"}
    assert all("synthetic" in path or "comparison" in path or path in own for path in changed)


@pytest.mark.parametrize(
    ("source", "reruns", "stays"),
    [
        (
            "mechanisms/weak_correlation.py",
            {"measure_synthetic", "measure_activity_bundled"},
            {"ingest_activity_bundled", "fit_activity_bundled"},
        ),
        pytest.param(
            "studies/synthetic/figures.py",
            {"show_synthetic"},
            {"measure_synthetic", "show_activity", "compare_results"},
            marks=pytest.mark.long,  # figures of another study are below
        ),
        (
            "datasets/bundled/activity_nhanes2003_sample.json",
            {"ingest_activity_bundled"},
            {"measure_worked_examples"},
        ),
        ("influence/_kernels.py", {"measure_activity_bundled"}, {"ingest_activity_bundled"}),
    ],
)
def test_edited_source_reruns_what_depends_on_it(copy, source, reruns, stays):
    path = copy.folder / "pufferflow" / source
    path.write_bytes(path.read_bytes() + b"\n")
    planned = copy.planned()
    assert reruns <= planned
    assert not stays & planned


@pytest.mark.parametrize(
    ("source", "old", "new"),
    [
        ("studies/classical/measure.py", "import annotations", "import annotations  # edited"),
        pytest.param(
            *("mechanisms/weak_correlation.py", "import numpy as np", "import numpy as np  # edited"),
            marks=pytest.mark.long,
        ),
        ("reporting/report.js", '"use strict";', '"use strict"; //'),
        pytest.param(
            *("related/dp/alpha_beta.py", "import annotations", "import annotations  # edited"), marks=pytest.mark.long
        ),
        ("studies/alpha_beta/figures.py", "import annotations", "import annotations  # edited"),
    ],
)
def test_edited_source_reruns_exactly_the_rules_whose_scripts_reach_it(copy, finished, source, old, new):
    steps, claims, _ = plan(copy.settings)
    all_jobs = {job.name: (job.script, [step.work for step in job.steps]) for job in jobs(steps) if job.usual} | {
        "compare_results": ("compare", [claim.work for claim in claims]),
        "write_report": ("report", []),
        "write_times": ("times", []),
        "record_provenance": ("provenance", []),
    }
    assert set(all_jobs) == {path.stem for path in (copy.folder / "results/logs").iterdir()}
    # the same sources, which are parsed once for all cases
    package, scripts = finished.folder / "pufferflow", finished.folder / "workflow/scripts"
    reach = {
        name
        for name, (script, works) in all_jobs.items()
        if str(package / source) in source_files(scripts / f"{script}.py", package, map(module_of, works))
    }
    assert reach
    copy.edit(f"pufferflow/{source}", old, new)
    reasons = {name: [line for line in lines if line.startswith("reason: ")] for name, lines in copy.reasons().items()}
    changed = {name for name, lines in reasons.items() if any("Params have changed" in line for line in lines)}
    assert changed
    assert changed <= reach <= set(reasons)
    # the others only because of what these make
    for name in set(reasons) - reach:
        assert all(line.startswith("reason: Input files updated by another job") for line in reasons[name]), name


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("experiments:", "experimentz: 1\nexperiments:", r"config: unknown key 'experimentz'"),
        ("stop: 0.4", "stop: 0.6", r"config: experiments\.synthetic\.alphas\.stop is 0\.6; it must be less than 0\.5"),
    ],
)
def test_bad_config_is_one_sentence(copy, old, new, sentence):
    copy.edit("tiny.yaml", old, new)
    output = copy.run("--dry-run", fails=True)
    assert re.search(sentence, output)
    assert "Traceback" not in output


def test_bad_data_is_one_sentence_and_leaves_no_half_result(copy):
    (copy.folder / "mine.csv").write_text("participant,time,state\na,2024-01-01T00:00,x\n", encoding="utf-8")
    copy.edit("tiny.yaml", "experiments:", "datasets:\n  activity: { source: file, path: mine.csv }\nexperiments:")
    output = copy.run(fails=True)
    assert re.search(r"pufferflow: error: .*mine\.csv", output)
    assert "Traceback" not in output
    assert not list((copy.folder / "results/samples").glob("activity_file*"))


CHAINS = "results/chains/activity_file.csv"


@pytest.mark.parametrize("targets", [(CHAINS,), pytest.param((), marks=pytest.mark.long)])
def test_own_activity_file_is_labelled_and_reruns_when_edited(copy, targets):
    rows = ["participant,time,state,group"]
    for who, group in (("a", "young"), ("b", "young"), ("c", "old")):
        for minute in range(90):
            state = "walk" if (minute * 7 + len(group)) % 5 < 2 else "sit"
            rows.append(f"{who},2024-01-01T{minute // 60:02d}:{minute % 60:02d},{state},{group}")
    (copy.folder / "mine.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    copy.edit("tiny.yaml", "experiments:", "datasets:\n  activity: { source: file, path: mine.csv }\nexperiments:")
    copy.run("--", *targets)
    shown = ("results/report.html", "results/tables/table1_activity_file.md")
    for path in targets or shown:
        assert "young" in (copy.folder / path).read_text(encoding="utf-8")
    with (copy.folder / "mine.csv").open("a", encoding="utf-8") as stream:
        stream.write("c,2024-01-01T01:30,sit,old\n")
    os.utime(copy.folder / "mine.csv", (time.time() + 5, time.time() + 5))
    assert "ingest_activity_file" in copy.planned()
