"""The workflow as its users run it: complete, edited, killed, with own data and mistakes."""

import ast
import json
import os
import re
import signal
import subprocess
import time
import zipfile
from pathlib import Path

import pytest

from reproduction.code import source_files

pytestmark = pytest.mark.xdist_group("workflow")  # they share one complete run

ROOT = Path(__file__).parents[2]
SCRIPTS = sorted(path.name for path in (ROOT / "workflow/scripts").glob("*.py"))
OF_PAPER = {
    *("run_mechanism", "measure_errors", "print_tables", "draw_figure4_histograms"),
    *("compare_paper", "write_report", "record_provenance", "all"),
}
"""What errors of a data set reach."""


def test_a_complete_run_is_recorded_and_leaves_nothing_to_do(finished):
    results = finished.folder / "results"
    provenance = json.loads((results / "provenance.json").read_text(encoding="utf-8"))
    recorded, made = provenance["results_sha256"], finished.results()
    for path, digest in made.items():
        if path.startswith(("tables", "figures")) and "cohort" not in path:
            assert recorded[f"results/{path}"] == digest, path
    assert len(provenance["samples_sha256"]) == 2
    assert {
        "tables/errors_activity_bundled.tex",
        "tables/comparison_related.md",
        "beyond/cohort.csv",
    } <= made.keys()
    assert {"related.html", "beyond.html", "tables/table2.csv"} <= recorded.keys() | {
        path.relative_to(results).as_posix() for path in results.rglob("*")
    }
    assert "Nothing to be done" in finished.run("--dry-run", "--", "all", "cohort")


def test_the_rulegraph_of_the_paper_is_small_and_its_targets_have_names(finished):
    targets = ("paper", "figure4", "table1", "table2", "table3")
    nodes = re.findall(
        r'label\s*=\s*"([^"]+)"', finished.run("--rulegraph", "--forceall", *targets)
    )
    assert 5 <= len(nodes) <= 18 + len(targets) - 1, nodes
    assert {"draw_figure4_synthetic", "draw_figure4_histograms"} <= {*nodes}
    assert {"print_tables", "time_mechanisms"} <= {*nodes}


def test_rules_are_plain_and_scripts_read_what_their_rule_gives():
    """No loop makes rules, nothing private of Snakemake is used, no script reads all the config."""
    files, named = [ROOT / "workflow/Snakefile", *(ROOT / "workflow/rules").glob("*.smk")], []
    for path in files:
        text = path.read_text(encoding="utf-8")
        assert not re.search(r"^[ \t]+rule\b|^\s*run:", text, re.MULTILINE), path
        for module in re.findall(r"^\s*(?:from|import) (snakemake[\w.]*)", text, re.MULTILINE):
            assert module in ("snakemake.utils", "snakemake.exceptions"), path
        for rule in re.split(r"^rule ", text, flags=re.MULTILINE)[1:]:
            assert '"""' in rule.split("input:")[0].split("output:")[0], (path, rule[:40])
            for script in re.findall(r'"\.\./scripts/(\w+\.py)"', rule):
                named.append(script)
                assert f'code=code_of("{script}")' in rule, script
                assert "log:" in rule, script
    assert set(named) == set(SCRIPTS)
    for script in SCRIPTS:
        tree = ast.parse((ROOT / "workflow/scripts" / script).read_text(encoding="utf-8"))
        names = [
            node for node in ast.walk(tree) if isinstance(node, ast.Name) and node.id == "snakemake"
        ]
        assert len(names) == 1, script  # with job(snakemake)


def test_an_edited_setting_reruns_what_uses_it(copy):
    """test_measuring.py and test_beyond.py test of the scripts that no other digit changes."""
    copy.edit("tiny.yaml", "electricity: { epsilons: [1]", "electricity: { epsilons: [2, 1]")
    copy.edit("tiny.yaml", "pieces: 2", "pieces: 3")
    planned = copy.reasons("--", "all", "cohort")
    assert set(planned) == OF_PAPER | {"measure_cohort", "gather_cohort", "cohort"}
    lines = [line for name in OF_PAPER & set(planned) for line in planned[name]]
    outputs = [line for line in lines if line.startswith("output: ")]
    assert not any("activity" in line and "comparison" not in line for line in outputs), outputs


def test_deleted_tables_are_made_again_and_an_edited_source_reruns_the_scripts_that_reach_it(copy):
    deleted = {
        "related/classical_values.csv": "measure_related",
        "errors/synthetic.csv": "measure_errors_synthetic",
        "samples/activity_bundled.csv": "discretise_data",
        "scales/electricity_bundled/mqm-exact.csv": "run_mechanism",
        "beyond/least_noise_synthetic.csv": "measure_least_noise",
    }
    for path in deleted:
        (copy.folder / "results" / path).unlink()
    source, folder = "pufferflow/dp/alpha_beta.py", copy.folder / "workflow"
    reach = {
        s.removesuffix(".py") for s in SCRIPTS if copy.folder / source in source_files(s, folder)
    }
    copy.edit(source, "import annotations", "import annotations  # edited")
    planned = copy.reasons("--", "all", "cohort")
    assert set(deleted.values()) <= set(planned)
    changed = {
        name
        for name, lines in planned.items()
        if any(line.startswith("reason: ") and "Params have changed" in line for line in lines)
    }
    assert changed == reach != set()


SOME = (
    "results/chains/electricity_bundled.csv",
    "results/scales/activity_bundled/mqm-exact.csv",
    "results/examples/values.csv",
)


@pytest.mark.parametrize(
    "how", [pytest.param(signal.SIGTERM, marks=pytest.mark.long), signal.SIGKILL]
)
def test_a_killed_run_goes_on_to_the_same_bytes_on_one_core(finished, project, how):
    process = project.start("--quiet", "all", "--", *SOME, cores=1)
    while not len(list((project.folder / "results").rglob("*.csv"))) > 1:
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
        project.run("--unlock")
    project.run("--", *SOME, cores=1)
    made = project.results()
    assert made.items() <= finished.results().items()
    assert len(made) > 8
    assert not [
        path
        for path in (project.folder / "results").rglob("*")
        if path.name.endswith((".part", ".tmp"))
    ]


def test_bad_settings_and_bad_data_are_one_sentence_and_leave_no_half_result(copy):
    (copy.folder / "mine.csv").write_text("participant,time,state\na,2024-01-01T00:00,S3CRET\n")
    mine = "  mine: { kind: activity, source: file, path: mine.csv }"
    copy.edit("tiny.yaml", "datasets:", f"datasets:\n{mine}")
    output = copy.run("--", "results/samples/mine_file.json", fails=True)
    assert re.search(r"pufferflow: error: .*mine\.csv", output)
    (log,) = (copy.folder / "results/logs").rglob("*mine_file*.log")
    assert "mine.csv" in log.read_text(encoding="utf-8")
    assert "S3CRET" not in output + log.read_text(encoding="utf-8")
    assert not list((copy.folder / "results/samples").glob("mine_file*"))
    copy.edit("tiny.yaml", "stop: 0.4", "stop: 0.6")
    output += copy.run("--dry-run", fails=True)
    assert "config: synthetic.alphas.stop is 0.6; it must be less than 0.5" in output
    assert "Traceback" not in output


OWN = """
datasets:
  walks: { kind: activity, source: file, path: walks.csv, mechanisms: [mqm-exact] }
  house_2:
    { kind: power, source: file, path: house.csv, bin_watts: 500, bins: 3, epsilons: [1],
      mechanisms: [mqm-exact] }
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


def test_snakemakes_own_report_holds_figures_and_tables_with_captions(finished, tmp_path):
    finished.run("--report", str(tmp_path / "report.zip"))
    with zipfile.ZipFile(tmp_path / "report.zip") as archive:
        page = min((name for name in archive.namelist() if name.endswith("report.html")), key=len)
        text = archive.read(page).decode("utf-8")
    for shown in (
        "figure4_upper_synthetic.svg",
        "comparison.csv",
        "histograms_activity_bundled.svg",
    ):
        assert shown in text, shown


def test_pages_have_their_parts_in_order_and_load_nothing(finished):
    page = (finished.folder / "results/report.html").read_text(encoding="utf-8")
    anchors = re.findall(r'<section id="([\w-]+)"', page)
    assert anchors[:2] == ["differences", "figure4-upper"]
    assert anchors[-1] == "provenance"
    assert len(anchors) == len(set(anchors)) > 7
    for name in ("report", "related", "beyond"):
        text = (finished.folder / f"results/{name}.html").read_text(encoding="utf-8")
        assert "<script" not in text
        assert "http" not in re.sub(r'xmlns(:\w+)?="[^"]*"|<!DOCTYPE[^>]*>', "", text).replace(
            "https://doi", ""
        )
        for target in re.findall(
            r'href="#([\w-]+)"', re.sub(r"<svg.*?</svg>", "", text, flags=re.DOTALL)
        ):
            assert f'id="{target}"' in text, target
