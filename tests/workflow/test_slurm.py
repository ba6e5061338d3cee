"""The workflow on a real SLURM: the same bytes as on one machine, whatever dies on the way."""

import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

import pytest

T = TypeVar("T")
CLUSTER = Path(__file__).with_name("cluster.sh")
COHORT = """
beyond:
  cohort: { participants: 40, pieces: 2, epsilons: [0.5, 1] }
"""
TARGETS = ("--", "cohort")
SLURM = ("--workflow-profile", "workflow/profiles/slurm")
SLURM += ("--slurm-init-seconds-before-status-checks", "3")


class Cluster:
    """A SLURM of one node on this machine, see cluster.sh."""

    def __init__(self, folder: str) -> None:
        self.folder = folder

    def do(self, what: str) -> str:
        done = subprocess.run(
            [str(CLUSTER), what, self.folder], capture_output=True, text=True, timeout=600
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def running(self, rule: str) -> list[str]:
        """Ids of the running jobs of a rule, which the executor names in the comment."""
        listed = subprocess.run(
            ["squeue", "--noheader", "--states=RUNNING", "--format=%i %k"],
            capture_output=True,
            text=True,
            check=True,
        )
        rows = [line.split(" ", 1) for line in listed.stdout.splitlines()]
        return [number for number, comment in rows if comment.startswith(f"rule_{rule}")]


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    possible = subprocess.run([str(CLUSTER), "check"], capture_output=True, text=True)
    if possible.returncode:
        pytest.skip(f"no SLURM here: {possible.stdout.strip()}")
    folder = tempfile.mkdtemp(prefix="slurm-")
    found = Cluster(folder)
    found.do("start")
    try:
        yield found
    finally:
        found.do("stop")
        shutil.rmtree(folder)


def await_true(what: Callable[[], T], process: subprocess.Popen[str]) -> T:
    for _ in range(600):
        if found := what():
            return found
        assert process.poll() is None, process.communicate()[0][-4000:]
        time.sleep(0.2)
    raise AssertionError("it did not happen within two minutes")


def test_same_bytes_after_a_crashed_node_and_a_cancelled_job(cluster, project, tmp_path):
    local, remote = type(project)(tmp_path / "local"), project
    for copy in (local, remote):
        (copy.folder / "tiny.yaml").write_text(COHORT, encoding="utf-8")

    process = remote.start(*SLURM, "--retries", "0", *TARGETS)
    try:
        await_true(lambda: cluster.running("measure_cohort"), process)
        lost = cluster.running("measure_cohort")
        cluster.do("crash")
        cluster.do("resume")
        # SLURM itself runs the lost jobs again
        (victim, *_) = await_true(
            lambda: set(lost) & set(cluster.running("measure_cohort")), process
        )
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
