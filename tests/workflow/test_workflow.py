"""The workflow as its users run it: complete, edited, interrupted, with their own data and with mistakes."""

import ast
import json
import os
import re
import signal
import subprocess
import time
import zipfile
from itertools import pairwise
from pathlib import Path

import pytest

from reproduction.code import source_files

pytestmark = pytest.mark.xdist_group("workflow")  # they share one complete run

ROOT = Path(__file__).parents[2]
SCRIPTS = sorted(path.name for path in (ROOT / "workflow/scripts").glob("*.py"))
OF_PAPER = {
    "run_mechanism",
    "measure_errors",
    "print_tables",
    "draw_figure4_histograms",
    "compare_paper",
    "write_report",
    "record_provenance",
    "all",
}
"""What errors of a data set reach."""


def test_a_complete_run_has_every_output(finished):
    for expected in (
        "report.html",
        "related.html",
        "beyond.html",
        "provenance.json",
        "scales/activity_bundled/mqm-exact.csv",
        "scales/synthetic/leakage.csv",
        "errors/electricity_bundled_releases.csv",
        "examples/flu_network.csv",
        "timings/mechanisms.csv",
        "tables/errors_activity_bundled.tex",
        "tables/errors_electricity_bundled.md",
        "tables/table2.csv",
        "tables/comparison.csv",
        "tables/comparison_related.md",
        "tables/authors_code.csv",
        "tables/least_noise_electricity_bundled.csv",
        "figures/figure4_upper_synthetic.svg",
        "figures/histograms_activity_bundled.pdf",
        "figures/histograms_electricity_bundled.pdf",
        "figures/noisy_max_synthetic.svg",
        "figures/composition_synthetic.svg",
        "beyond/cohort.csv",
    ):
        assert (finished.folder / "results" / expected).is_file(), expected


def test_a_second_run_has_nothing_to_do(finished):
    assert "Nothing to be done" in finished.run("--dry-run", "--", "all", "cohort")


def test_provenance_lists_every_table_figure_and_page(finished):
    provenance = json.loads((finished.folder / "results/provenance.json").read_text(encoding="utf-8"))
    results, recorded = finished.results(), provenance["results_sha256"]
    assert results
    for path, digest in results.items():
        if path.startswith(("tables", "figures")) and "cohort" not in path:
            assert recorded[f"results/{path}"] == digest, path
    assert set(provenance["samples_sha256"]) == {
        "results/samples/activity_bundled.json",
        "results/samples/electricity_bundled.json",
    }


def test_the_rulegraph_of_the_paper_is_small_and_its_targets_have_names(finished):
    graph = finished.run("--rulegraph", "--forceall", "paper")
    nodes = re.findall(r'label\s*=\s*"([^"]+)"', graph)
    assert 5 <= len(nodes) <= 18, nodes
    for target, made in {
        "figure4": {"draw_figure4_synthetic", "draw_figure4_histograms"},
        "table1": {"print_tables", "measure_errors", "run_mechanism"},
        "table2": {"time_mechanisms"},
        "table3": {"print_tables"},
    }.items():
        assert made <= finished.planned("--forceall", "--", target), target


def test_rules_are_plain():
    """No loop makes rules, no work is named by a string, and nothing private of Snakemake is used."""
    files = [ROOT / "workflow/Snakefile", *(ROOT / "workflow/rules").glob("*.smk")]
    for path in files:
        text = path.read_text(encoding="utf-8")
        assert not re.search(r"^[ \t]+rule\b", text, re.MULTILINE), path
        assert not re.search(r"^\s*run:", text, re.MULTILINE), path
        for module in re.findall(r"^\s*(?:from|import) (snakemake[\w.]*)", text, re.MULTILINE):
            assert module in ("snakemake.utils", "snakemake.exceptions"), path
        rules = re.split(r"^rule ", text, flags=re.MULTILINE)[1:]
        for rule in rules:
            assert '"""' in rule.split("input:")[0].split("output:")[0], (path, rule[:40])
            if "script:" in rule:
                (script,) = re.findall(r'"\.\./scripts/(\w+\.py)"', rule)
                assert f'code=code_of("{script}")' in rule, script
                assert "log:" in rule, script
    assert {script for path in files for script in re.findall(r"scripts/(\w+\.py)", path.read_text())} == set(SCRIPTS)


@pytest.mark.parametrize(
    ("deleted", "rule"),
    [
        ("related/classical_values.csv", "measure_classical"),
        ("errors/synthetic.csv", "measure_errors_synthetic"),
        ("samples/activity_bundled.csv", "discretise_data"),
        ("scales/electricity_bundled/mqm-exact.csv", "run_mechanism"),
        ("beyond/least_noise_synthetic.csv", "measure_least_noise"),
    ],
)
def test_a_deleted_table_of_a_stage_is_made_again(copy, deleted, rule):
    (copy.folder / "results" / deleted).unlink()
    assert rule in copy.planned()


def test_one_more_epsilon_reruns_what_uses_it_and_changes_no_other_digit(copy, finished):
    copy.edit("tiny.yaml", "electricity: { epsilons: [1]", "electricity: { epsilons: [2, 1]")
    planned = copy.reasons()
    assert set(planned) == OF_PAPER
    outputs = [line for lines in planned.values() for line in lines if line.startswith("output: ")]
    assert not any("activity" in line and "comparison" not in line for line in outputs), outputs
    scales, errors = "results/scales/electricity_bundled/mqm-exact.csv", "results/errors/electricity_bundled.csv"
    copy.run("--", scales, errors)
    for table in (scales, errors):
        before = (finished.folder / table).read_text(encoding="utf-8").splitlines()
        after = (copy.folder / table).read_text(encoding="utf-8").splitlines()
        column = before[0].split(",").index("epsilon")
        assert [line for line in after if line.split(",")[column] != "2.0"] == before
        assert len(after) > len(before)


def test_an_edit_that_is_taken_back_leaves_nothing_to_do(copy):
    copy.edit("tiny.yaml", "epsilons: [0.5, 1]\n  alphas", "epsilons: [0.5, 2, 1]\n  alphas")
    assert "run_mechanism_synthetic" in copy.planned()
    copy.edit("tiny.yaml", "epsilons: [0.5, 2, 1]\n  alphas", "epsilons: [0.5, 1]\n  alphas")
    assert "Nothing to be done" in copy.run("--dry-run")


@pytest.mark.parametrize(
    ("source", "reruns", "stays"),
    [
        (
            "pufferflow/mechanisms/weak_correlation.py",
            {"run_mechanism", "run_mechanism_synthetic"},
            {"discretise_data", "fit_chains", "measure_classical"},
        ),
        ("pufferflow/influence/_kernels.py", {"run_mechanism"}, {"discretise_data"}),
        ("pufferflow/drawing/style.py", {"draw_figure4_synthetic", "draw_related"}, {"run_mechanism"}),
        ("workflow/reproduction/page.css", {"write_report"}, {"compare_paper", "draw_figure4_synthetic"}),
        ("workflow/reproduction/reported/pufferfish.csv", {"compare_paper", "print_tables"}, {"measure_errors"}),
        ("workflow/reproduction/reported/classical.csv", {"compare_related"}, {"measure_classical"}),
    ],
)
def test_an_edited_source_reruns_what_depends_on_it(copy, source, reruns, stays):
    path = copy.folder / source
    path.write_bytes(path.read_bytes() + b"\n")
    planned = copy.planned()
    assert reruns <= planned
    assert not stays & planned


def test_params_change_exactly_where_a_script_reaches_the_edited_file(copy):
    source = "pufferflow/dp/alpha_beta.py"
    reach = {
        script.removesuffix(".py")
        for script in SCRIPTS
        if copy.folder / source in source_files(script, copy.folder / "workflow")
    }
    copy.edit(source, "import annotations", "import annotations  # edited")
    changed = {
        name
        for name, lines in copy.reasons("--", "all", "cohort").items()
        if any(line.startswith("reason: ") and "Params have changed" in line for line in lines)
    }
    assert changed == reach != set()


SOME = (
    "results/chains/electricity_bundled.csv",
    "results/scales/activity_bundled/mqm-exact.csv",
    "results/examples/values.csv",
    "results/figures/figure4_upper_synthetic.svg",
)


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_a_killed_run_goes_on_to_the_same_bytes_on_one_core(finished, project, how):
    process = project.start("--quiet", "all", "--", *SOME, cores=1)
    while not len(list((project.folder / "results").rglob("*.csv"))) > 2:
        assert process.poll() is None, process.communicate()[0][-4000:]
        time.sleep(0.05)
    os.killpg(process.pid, how)
    try:
        process.communicate(timeout=60)
    except subprocess.TimeoutExpired:  # Snakemake itself may wait for ever for a lock after SIGTERM
        how = signal.SIGKILL
        os.killpg(process.pid, how)
        process.communicate()
    if how == signal.SIGKILL:  # nobody could take the lock away
        assert "--unlock" in project.run("--", *SOME, fails=True)
        project.run("--unlock")
    project.run("--", *SOME, cores=1)
    made = project.results()
    assert made.items() <= finished.results().items()
    assert len(made) > 20
    assert not [path for path in (project.folder / "results").rglob("*") if path.name.endswith((".part", ".tmp"))]


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("datasets:", "experiments: 1\ndatasets:", r"config: unknown key 'experiments' in the top level"),
        ("stop: 0.4", "stop: 0.6", r"config: synthetic\.alphas\.stop is 0\.6; it must be less than 0\.5"),
        ("epsilons: [1]", "epsilons: [-1]", r"epsilons\[0\] is -1; it must be greater than 0"),
    ],
)
def test_a_bad_setting_is_one_sentence(copy, old, new, sentence):
    copy.edit("tiny.yaml", old, new)
    output = copy.run("--dry-run", fails=True)
    assert re.search(sentence, output)
    assert "Traceback" not in output


def test_bad_data_is_one_sentence_and_leaves_no_half_result(copy):
    (copy.folder / "mine.csv").write_text("participant,time,state\na,2024-01-01T00:00,x\n", encoding="utf-8")
    copy.edit("tiny.yaml", "datasets:", "datasets:\n  mine: { kind: activity, source: file, path: mine.csv }")
    output = copy.run("--", "paper", fails=True)
    assert re.search(r"pufferflow: error: .*mine\.csv", output)
    assert "Traceback" not in output
    assert not list((copy.folder / "results/samples").glob("mine_file*"))


OWN = """
datasets:
  walks: { kind: activity, source: file, path: walks.csv }
  house_2: { kind: power, source: file, path: house.csv, bin_watts: 500, bins: 3, epsilons: [0.5, 1] }
"""


def test_own_data_sets_by_an_overlay_alone(copy):
    rows = ["participant,time,state,group"]
    for who, group in (("007", "young"), ("b", "young"), ("c", "old")):
        for minute in range(90):
            state = "walk" if (minute * 7 + len(group)) % 5 < 2 else "sit"
            rows.append(f"{who},2024-01-01T{minute // 60:02d}:{minute % 60:02d},{state},{group}")
    (copy.folder / "walks.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    rows = ["time,watts"]
    rows += [f"2024-01-01T{m // 60:02d}:{m % 60:02d},{(m * 37) % 1300}" for m in range(300)]
    (copy.folder / "house.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    (copy.folder / "own.yaml").write_text(OWN, encoding="utf-8")
    overlay = ("--configfile", "config/config.yaml", "tiny.yaml", "own.yaml", "--")
    copy.run(*overlay, "paper")
    results = copy.folder / "results"
    assert "young" in (results / "tables/errors_walks_file.md").read_text(encoding="utf-8")
    assert ",007," in (results / "scales/walks_file/mqm-exact.csv").read_text(encoding="utf-8")
    assert (results / "figures/histograms_house_2_file.svg").is_file()
    page = (results / "report.html").read_text(encoding="utf-8")
    for shown in ("walks", "house_2", "data from a file of the user"):
        assert shown in page
    assert "walks" not in (results / "tables/comparison.csv").read_text(encoding="utf-8")

    with (copy.folder / "walks.csv").open("a", encoding="utf-8") as stream:
        stream.write("c,2024-01-01T01:30,sit,old\n")
    os.utime(copy.folder / "walks.csv", (time.time() + 5, time.time() + 5))
    planned = copy.reasons(*overlay, "paper")
    assert "discretise_data" in planned
    assert not any("house_2" in line for line in planned["discretise_data"])


def test_snakemakes_own_report_holds_figures_and_tables_with_captions(copy):
    copy.run("--report", "report.zip")
    with zipfile.ZipFile(copy.folder / "report.zip") as archive:
        page = min((name for name in archive.namelist() if name.endswith("report.html")), key=len)
        text = archive.read(page).decode("utf-8")
    for shown in ("figure4_upper_synthetic.svg", "comparison.csv", "histograms_activity_bundled.svg"):
        assert shown in text, shown


def test_settings_for_a_small_run_in_a_folder_of_its_own(project):
    words = ("--directory", ".test", "--configfile", "config/config.yaml", "config/quick.yaml", "--")
    project.run(*words, "results/chains/activity_bundled.csv")
    assert (project.folder / ".test/results/chains/activity_bundled.csv").is_file()
    assert not (project.folder / "results").exists()


def test_scripts_read_nothing_but_what_their_rule_gives():
    """A script that read the whole config would be silently stale after an edit."""
    for script in SCRIPTS:
        tree = ast.parse((ROOT / "workflow/scripts" / script).read_text(encoding="utf-8"))
        names = [node for node in ast.walk(tree) if isinstance(node, ast.Name) and node.id == "snakemake"]
        assert len(names) == 1, script  # with job(snakemake)


def test_pages_have_their_parts_in_order(finished):
    page = (finished.folder / "results/report.html").read_text(encoding="utf-8")
    anchors = re.findall(r'<section id="([\w-]+)"', page)
    assert anchors[:2] == ["differences", "figure4-upper"]
    assert anchors[-1] == "provenance"
    assert len(anchors) == len(set(anchors)) > 7
    positions = [page.index(f'href="#{anchor}"') for anchor in anchors]
    assert all(a < b for a, b in pairwise(sorted(positions)))
    for name in ("report", "related", "beyond"):
        text = (finished.folder / f"results/{name}.html").read_text(encoding="utf-8")
        assert "<script" not in text
        assert "http" not in re.sub(r'xmlns(:\w+)?="[^"]*"|<!DOCTYPE[^>]*>', "", text).replace("https://doi", "")
        assert "prefers-color-scheme" in text
        for target in re.findall(r'href="#([\w-]+)"', re.sub(r"<svg.*?</svg>", "", text, flags=re.DOTALL)):
            assert f'id="{target}"' in text, target
