"""The workflow as its users run it: complete, edited, killed, with own data and mistakes."""

import ast
import copy
import json
import os
import re
import signal
import subprocess
import time
import zipfile
from functools import reduce
from pathlib import Path

import pytest
import yaml
from snakemake.utils import update_config

from pufferflow.errors import ConfigError
from pufferflow.mechanisms import MECHANISMS
from reproduction.code import source_files
from reproduction.settings import SCHEMA, complete, describe

ROOT = Path(__file__).parents[2]
SCRIPTS = sorted(path.name for path in (ROOT / "workflow/scripts").glob("*.py"))
OF_PAPER = {
    *("run_mechanism", "measure_errors", "print_tables", "draw_figure4_histograms"),
    *("compare_paper", "write_report", "record_provenance", "all"),
}
"""What errors of a data set reach."""
OF_OTHERS = """
    compute_examples draw_figures_synthetic run_mechanism_synthetic measure_errors_synthetic
    measure_related write_related measure_other_data
"""


def test_a_complete_run_is_recorded(finished):
    record, made = json.loads(finished.text("provenance.json")), finished.results()
    recorded = record["results_sha256"]
    for path, digest in made.items():
        if path.startswith(("tables", "figures")) and "cohort" not in path:
            assert recorded[f"results/{path}"] == digest, path
    assert len(record["samples_sha256"]) == 3
    pages = {f"results/{name}.html" for name in ("report", "related", "beyond")}
    assert pages | {"results/tables/table2.csv"} <= recorded.keys()
    assert {"tables/comparison_related.md", "beyond/cohort.csv"} <= made.keys()


def test_the_rulegraph_of_the_paper_is_small_and_its_targets_have_names(finished):
    targets = ("paper", "figure4", "table1", "table2", "table3")
    nodes = re.findall(
        r'label\s*=\s*"([^"]+)"', finished.run("--rulegraph", "--forceall", *targets)
    )
    assert 5 <= len(nodes) <= 18 + len(targets) - 1, nodes
    assert {"draw_figures_synthetic", "draw_figure4_histograms"} <= {*nodes}
    assert {"print_tables", "time_mechanisms"} <= {*nodes}


def test_rules_are_plain_and_scripts_read_what_their_rule_gives():
    """No loop makes rules, nothing private of Snakemake is used, no script reads all the config."""
    named = []
    for path in [ROOT / "workflow/Snakefile", *(ROOT / "workflow/rules").glob("*.smk")]:
        text = path.read_text(encoding="utf-8")
        assert not re.search(r"^[ \t]+rule\b|^\s*run:", text, re.MULTILINE), path
        used = set(re.findall(r"^\s*(?:from|import) (snakemake[\w.]*)", text, re.MULTILINE))
        assert used <= {"snakemake.utils", "snakemake.exceptions"}, path
        for rule in re.split(r"^rule ", text, flags=re.MULTILINE)[1:]:
            assert re.match(r'\w+:\n    """', rule), (path, rule[:40])
            for script in re.findall(r'"\.\./scripts/(\w+\.py)"', rule):
                named.append(script)
                assert f'code=code_of("{script}")' in rule, script
    assert sorted(named) == SCRIPTS
    for script in SCRIPTS:  # with job(snakemake), and nowhere else
        tree = ast.parse((ROOT / "workflow/scripts" / script).read_text(encoding="utf-8"))
        assert [getattr(node, "id", "") for node in ast.walk(tree)].count("snakemake") == 1, script


def test_an_edited_setting_and_edited_data_rerun_what_uses_them_and_nothing_else(copy):
    """test_shown.py and test_beyond.py test of the scripts that no other digit changes."""
    copy.edit("tiny.yaml", "electricity: {", "electricity: { epsilons: [2, 1],")
    copy.edit("tiny.yaml", "pieces: 2", "pieces: 3")
    with (copy.folder / "walks.csv").open("a", encoding="utf-8") as stream:
        stream.write("c,2024-01-02T21:00,sit,old\n")
    os.utime(copy.folder / "walks.csv", (time.time() + 5, time.time() + 5))
    planned = copy.reasons("--", "all", "cohort")
    assert set(planned) >= OF_PAPER | {"measure_cohort", "gather_cohort", "cohort"}
    assert not set(OF_OTHERS.split()) & set(planned)
    of_data = {"discretise_data": False, "fit_chains": False, "run_mechanism": True}
    for rule, electricity in (of_data | {"measure_errors": True, "print_tables": True}).items():
        made = " ".join(line for line in planned[rule] if line.startswith("output: "))
        assert "walks" in made
        assert ("electricity" in made) == electricity
        assert "activity" not in made


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
    reach = {s[:-3] for s in SCRIPTS if copy.folder / source in source_files(s, folder)}
    copy.edit(source, "\nimport ", "\n# edited\nimport ")
    planned = copy.reasons("--", "all", "cohort")
    assert set(deleted.values()) <= set(planned)
    changed = "Params have changed"
    assert {name for name in planned if changed in " ".join(planned[name])} == reach != set()


@pytest.mark.parametrize(
    "how", [pytest.param(signal.SIGTERM, marks=pytest.mark.long), signal.SIGKILL]
)
def test_a_killed_run_goes_on_to_the_same_bytes_on_one_core(finished, copy, how):
    """What a scale leads to is made again by other processes, killed between two figures."""
    drawn = "histograms_walks_2_file", "errors_walks_2_file"
    figures = [copy.made / f"figures/{name}.svg" for name in drawn]
    for path in (*figures, copy.made / "scales/walks_2_file/mqm-exact.csv"):
        path.unlink()
    process = copy.start("--quiet", "all", cores=1)
    while not any(path.exists() for path in figures):
        assert process.poll() is None, process.communicate()[0][-4000:]
        time.sleep(0.05)
    os.killpg(process.pid, how)
    try:
        process.communicate(timeout=60)
    except subprocess.TimeoutExpired:  # Snakemake itself may wait for ever for a lock after SIGTERM
        how = signal.SIGKILL
        os.killpg(process.pid, how)
        process.communicate()
    assert not all(path.exists() for path in figures)
    # nobody could take the lock away; a user types --unlock first
    copy.run(*(["--nolock"] if how == signal.SIGKILL else []), cores=1)
    assert copy.results() == finished.results()
    assert not [path for path in copy.made.rglob("*") if path.suffix in (".part", ".tmp")]


def test_bad_settings_and_bad_data_are_one_sentence_and_leave_no_half_result(copy):
    (copy.folder / "mine.csv").write_text("participant,time,state\na,2024-01-01T00:00,S3CRET\n")
    mine = "  mine: { kind: activity, source: file, path: mine.csv }"
    copy.edit("tiny.yaml", "datasets:", f"datasets:\n{mine}")
    output = copy.run("--", "results/samples/mine_file.json", fails=True)
    assert re.search(r"pufferflow: error: .*mine\.csv", output)
    (log,) = (copy.made / "logs").rglob("*mine_file*.log")
    assert "mine.csv" in log.read_text(encoding="utf-8")
    assert "S3CRET" not in output + log.read_text(encoding="utf-8")
    assert not list((copy.made / "samples").glob("mine_file*"))
    copy.edit("tiny.yaml", "timings: { repeats: 3 }", "timings: { repeat: 3 }")
    output += copy.run("--dry-run", fails=True)
    assert "config: unknown key 'repeat' in timings; allowed are epsilon, mechanisms" in output
    assert "Traceback" not in output


def test_snakemakes_own_report_holds_figures_and_tables_with_captions(finished):
    with zipfile.ZipFile(finished.folder / "report.zip") as archive:
        page = min((name for name in archive.namelist() if name.endswith("report.html")), key=len)
        text = archive.read(page).decode("utf-8")
    for shown in ("figure4_upper_synthetic", "histograms_activity_bundled"):
        assert f"{shown}.svg" in text
    assert "comparison.csv" in text


# -- settings --------------------------------------------------------------------------------------

CONFIG = yaml.safe_load((ROOT / "config/config.yaml").read_text(encoding="utf-8"))


def changed(path, value):
    config, (*parents, last) = copy.deepcopy(CONFIG), path.split(".")
    reduce(dict.get, parents, config)[last] = value
    return config


def test_settings_of_a_quick_run_are_valid():
    config = copy.deepcopy(CONFIG)
    update_config(config, yaml.safe_load((ROOT / "config/quick.yaml").read_text(encoding="utf-8")))
    complete(config)


def test_bad_settings_are_one_sentence_each(golden):
    """A line of the stored table: a setting, as in YAML, and what is said of it."""

    def refused(setting):
        path, value = setting.split(": ", 1)
        with pytest.raises(ConfigError) as caught:
            complete(changed(path, yaml.safe_load(value)))
        return str(caught.value).replace(", ".join(MECHANISMS), "(mechanisms)")

    golden("bad_settings.txt", refused)


def test_settings_take_exactly_the_registered_mechanisms():
    every = list(MECHANISMS)
    complete(changed("synthetic.mechanisms", every))
    complete(changed("datasets.activity.mechanisms", [*every, "participant-dp"]))
    complete(changed("timings.mechanisms", every))
    with pytest.raises(ConfigError, match=f"choose from {', '.join(every)}$"):
        complete(changed("timings.mechanisms", ["mine"]))


def test_the_schema_is_closed_and_describes_every_setting():
    """Objects are closed in the schema itself, and every key has a description."""

    def objects(rule):
        if isinstance(rule, dict) and "properties" in rule and rule.get("type") == "object":
            yield rule
        for child in rule.values() if isinstance(rule, dict) else ():
            yield from objects(child)

    rules = yaml.safe_load(SCHEMA.read_text(encoding="utf-8"))
    found = [rule for rule in objects(rules) if rule is not rules["$defs"]["dataset"]]
    assert len(found) > 20
    for rule in found:
        assert rule["additionalProperties"] is False
        assert set(rule["required"]) == set(rule["properties"])
        for name, child in rule["properties"].items():
            shared = rules["$defs"].get(child.get("$ref", "").rpartition("/")[2], {})
            assert "description" in child or "description" in shared or "properties" in child, name


def test_the_table_of_settings_is_current():
    readme = (ROOT / "config/README.md").read_text(encoding="utf-8")
    table = describe()
    assert table.count("\n") > 60
    assert f"\n\n{table}\n" in readme, "run `make settings`"
