"""Running the workflow in a copy of the project, package included, so that tests may edit anything."""

import compileall
import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path
from py_compile import PycInvalidationMode
from typing import Any

import pytest
import yaml
from snakemake.utils import update_config
from warm_snakemake import run_snakemake

ROOT = Path(__file__).parents[2]
PARTS = ("Snakefile", "config", "workflow", "profiles", "pufferflow")

# a complete run, every experiment, in the least time
TINY = """
experiments:
  synthetic:
    epsilons: [0.5, 1]
    alphas: { start: 0.1, stop: 0.4, step: 0.1 }
    length: 30
    growth: { lengths: [10, 30] }
    repetitions: 20
  activity:
    repetitions: 20
    releases: 3
  electricity:
    epsilons: [1]
    repetitions: 20
    releases: 3
  other_data:
    epsilons: [1]
    mechanisms: [group-dp]
    step_minutes: [60]
  least_noise:
    epsilons: [1]
    mechanisms: [mqm-exact, leakage]
    stay: [[0.9, 0.6]]
    length: 20
    exact_loss: { epsilons: [1], longest: 20 }
    composed_releases: 2
  wider_guarantees:
    enabled: false # the quick run of .ci/run has it
  cohort:
    enabled: true
    simulated: { participants: 8 }
    chunks: 2
    epsilons: [0.5, 1]
  timings:
    repeats: 1
  histogram_study:
    chains: 1
    length: 4
    epsilons: [1]
    growth_lengths: [4]
  noisy_max:
    grid: 3
    queries: 2
    timed_queries: [1]
  base2_exponential:
    attack_draws: 50
    sampler_draws: 1000
    loss_outcomes: [2, 4]
    rounding_granularities: [0.5]
    time_outcomes: [100]
    time_ranges: [1000, 2000]
    time_granularities: [1]
    time_repeats: 1
    noise_epsilons: [1]
    noise_draws: 20
    precision_outcomes: [50]
  alpha_beta:
    prior_factors: [1, 10]
    rows_grid: [100]
    domain_tuples_grid: [1000000]
    repetitions: 5
    parameter_sets: 20
    publications: 5
  classical:
    epsilons: [1]
    people: 50
    rounds: 100
    repetitions: 5
"""

UNSTABLE = ("benchmarks", "logs", "provenance.json", "ro-crate-metadata.json")


def is_stable(path: Path) -> bool:
    """Whether a result, or its checksum, must not change from run to run."""
    first, *inside = path.parts
    return (inside[0].removesuffix(".sha256") if first == "checksums" else first) not in UNSTABLE


class Project:
    """A copy of the project in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True)
        for part in PARTS:
            source = ROOT / part
            if source.is_dir():
                shutil.copytree(source, folder / part, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy(source, folder / part)
        # a job need not compile what it imports, and an edit is seen by what it says, however soon it comes
        compileall.compile_dir(folder / "pufferflow", quiet=1, invalidation_mode=PycInvalidationMode.CHECKED_HASH)
        (folder / "tiny.yaml").write_text(TINY, encoding="utf-8")

    @classmethod
    def at(cls, folder: Path) -> "Project":
        """The project that is in a folder already."""
        project = cls.__new__(cls)
        project.folder = folder
        return project

    @property
    def settings(self) -> dict[str, Any]:
        """The settings a run takes: the project's, and over them the least run's."""
        loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
        settings = yaml.load((self.folder / "config/config.yaml").read_text(encoding="utf-8"), Loader=loader)
        update_config(settings, yaml.load(TINY, Loader=loader))
        return settings

    @staticmethod
    def words(*arguments: str, cores: int) -> list[str]:
        return ["--cores", str(cores), "--configfile", "tiny.yaml", *arguments]

    @property
    def environment(self) -> dict[str, str]:
        return {**os.environ, "PYTHONPATH": str(self.folder), "PYTHONDONTWRITEBYTECODE": "1"}

    def start(self, *arguments: str, cores: int = 2) -> subprocess.Popen:
        """Snakemake as a user starts it, while the test goes on."""
        return subprocess.Popen(
            [sys.executable, "-m", "snakemake", *self.words(*arguments, cores=cores)],
            cwd=self.folder,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def run(self, *arguments: str, cores: int = 2, fails: bool = False) -> str:
        """All that a run prints."""
        code, output = run_snakemake(self.folder, self.words(*arguments, cores=cores), self.environment)
        assert (code != 0) == fails, output[-4000:]
        return output

    def reasons(self, *arguments: str) -> dict[str, list[str]]:
        """What a run would say now of each rule that it would execute: inputs, outputs, reasons, a line each."""
        found: dict[str, list[str]] = {}
        for line in self.run("--dry-run", "--quiet", "progress", *arguments).splitlines():
            if line.split()[:1] in (["rule"], ["localrule"]):
                lines = found.setdefault(line.split()[1].rstrip(":"), [])
            elif line.startswith("    ") and found:
                lines.append(line.strip())
        return found

    def planned(self) -> set[str]:
        """Rules that a run would execute now."""
        return set(self.reasons())

    def results(self) -> dict[str, str]:
        """SHA-256 of every result that must not change from run to run."""
        top = self.folder / "results"
        return {
            path.relative_to(top).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
            for path in sorted(top.rglob("*"))
            if path.is_file() and is_stable(path.relative_to(top)) and not path.name.startswith(".")
        }

    def edit(self, path: str, old: str, new: str) -> None:
        text = (self.folder / path).read_text(encoding="utf-8")
        assert old in text
        (self.folder / path).write_text(text.replace(old, new, 1), encoding="utf-8")


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A project with a complete uninterrupted run on two cores; do not change it, take a copy.

    The first worker that wants it makes it for all.
    """
    own = tmp_path_factory.getbasetemp()
    shared = (own.parent if "PYTEST_XDIST_WORKER" in os.environ else own) / "finished"
    with shared.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if shared.exists():
            return Project.at(shared)
        project = Project(own / "making")
        (project.folder / "run.txt").write_text(project.run(), encoding="utf-8")
        project.folder.rename(shared)
        return Project.at(shared)


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """A project in which nothing has run."""
    return Project(tmp_path / "project")


@pytest.fixture
def copy(finished: Project, tmp_path: Path) -> Project:
    """The finished project once more, to change at will."""
    shutil.copytree(finished.folder, tmp_path / "project", symlinks=True, copy_function=shutil.copy2)
    return Project.at(tmp_path / "project")
