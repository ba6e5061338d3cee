"""The workflow on a real SLURM: the same bytes as on one machine, whatever dies on the way."""

import shutil
import subprocess
import tempfile
import time
from pathlib import Path

import pytest

CLUSTER = Path(__file__).with_name("cluster.sh")
COHORT = """
beyond:
  cohort: { participants: 40, pieces: 2, epsilons: [0.5, 1] }
"""
TARGETS = ("--", "cohort")
SLURM = ("--workflow-profile", "workflow/profiles/slurm")
SLURM += ("--slurm-init-seconds-before-status-checks", "3")


@pytest.fixture
def cluster():
    """Calls of cluster.sh, which has a SLURM of one node on this machine."""
    possible = subprocess.run([CLUSTER, "check"], capture_output=True, text=True)
    if possible.returncode:
        pytest.skip(f"no SLURM here: {possible.stdout.strip()}")
    folder = tempfile.mkdtemp(prefix="slurm-")

    def call(word):
        done = subprocess.run([CLUSTER, word, folder], capture_output=True, text=True, timeout=600)
        assert done.returncode == 0, done.stderr

    call("start")
    yield call
    call("stop")
    shutil.rmtree(folder)


def running():
    """Ids of the running jobs of the cohort, whose rule the executor names in the comment."""
    listed = ["squeue", "--noheader", "--states=RUNNING", "--format=%i %k"]
    rows = subprocess.run(listed, capture_output=True, text=True, check=True).stdout.splitlines()
    jobs = (row.split(" ", 1) for row in rows)
    return {number for number, comment in jobs if comment.startswith("rule_measure_cohort")}


def await_true(found, process):
    for _ in range(600):
        if value := found():
            return value
        assert process.poll() is None, process.communicate()[0][-4000:]
        time.sleep(0.2)
    raise AssertionError("it did not happen within two minutes")


def test_same_bytes_after_a_crashed_node_and_a_cancelled_job(cluster, projects):
    for project in projects:
        (project.folder / "tiny.yaml").write_text(COHORT, encoding="utf-8")

    local, remote = projects
    process = remote.start(*SLURM, "--retries", "0", *TARGETS)
    try:
        lost = await_true(running, process)
        cluster("crash")
        cluster("resume")
        # SLURM itself runs the lost jobs again
        (victim, *_) = await_true(lambda: lost & running(), process)
        subprocess.run(["scancel", victim], check=True)
        local.run(*TARGETS)
        output, _ = process.communicate(timeout=900)
    finally:
        process.kill()
    assert process.returncode != 0, "a cancelled job must fail the run"
    assert f"SLURM-job '{victim}' failed" in output, output[-4000:]
    assert not (remote.folder / "results/beyond/cohort.csv").exists()

    remote.run(*SLURM, *TARGETS)
    assert remote.results() == local.results()
    assert "Nothing to be done" in remote.run("--dry-run", *TARGETS)
