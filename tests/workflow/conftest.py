"""Running the workflow in a copy of the project, package included, so that tests may edit it."""

import compileall
import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path
from py_compile import PycInvalidationMode

import pytest
from forks import SERVER, snakemake

ROOT = Path(__file__).parents[2]
PARTS = ("Snakefile", "config", "workflow", "profiles", "pufferflow")
FILES = ["--configfile", "config/config.yaml", "tiny.yaml"]

PYTHON = "of this interpreter"
"""A folder whose name has spaces, as a user's may have."""

TIMED = ("timings", "table2", "report.html", "provenance.json", "logs")
"""Files with measured seconds in them, which no two runs share."""


def walks():
    """A table of three people every half hour of two days, one called like a number."""
    rows = ["participant,time,state,group"]
    for who, group in (("007", "young"), ("b", "young"), ("c", "old")):
        for place in range(90):
            state = "walk" if (place * 7 + len(group)) % 5 < 2 else "sit"
            time = f"2024-01-0{1 + place // 48}T{place % 48 // 2:02d}:{place % 2 * 30:02d}"
            rows.append(f"{who},{time},{state},{group}")
    return "\n".join(rows) + "\n"


class Project:
    """A copy of the project in a folder of its own, with a data set of its user's own."""

    def __init__(self, folder):
        self.folder, self.made = folder, folder / "results"

    @classmethod
    def new(cls, folder):
        folder.mkdir(parents=True)
        for part in PARTS:
            source = ROOT / part
            if source.is_dir():
                shutil.copytree(source, folder / part, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy(source, folder / part)
        # a job need not compile what it imports; an edit is seen by its content, however soon
        by_content = PycInvalidationMode.CHECKED_HASH
        for part in ("pufferflow", "workflow/reproduction"):
            compileall.compile_dir(folder / part, quiet=1, invalidation_mode=by_content)
        shutil.copy(Path(__file__).with_name("tiny.yaml"), folder)
        (folder / "walks.csv").write_text(walks(), encoding="utf-8")
        # where a run is set up alone there is none, and every job would load it with pandas
        (folder / "pyarrow.py").write_text("raise ImportError", encoding="utf-8")
        (folder / PYTHON).symlink_to(sys.prefix)
        return cls(folder)

    def start(self, *arguments, cores=2):
        """Start Snakemake as a user does, while the test goes on."""
        words = [*FILES, "--cores", str(cores), *arguments]
        return subprocess.Popen(
            [str(self.folder / PYTHON / "bin/python"), "-m", "snakemake", *words],
            cwd=self.folder,
            env={**os.environ, "PYTHONPATH": str(self.folder), "PYTHONDONTWRITEBYTECODE": "1"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def run(self, *arguments, cores=2, fails=False):
        """All that a run prints."""
        words = [*FILES, "--cores", str(cores), *arguments]
        process = SERVER.Process(target=snakemake, args=(self.folder, words))
        process.start()
        process.join()
        output = (self.folder / "printed").read_text(encoding="utf-8")
        assert (process.exitcode != 0) == fails, output[-4000:]
        return output

    def reasons(self, *arguments):
        """For each rule that a run would execute now, the lines on its jobs."""
        found = {}
        for line in self.run("--dry-run", "--quiet", "progress", *arguments).splitlines():
            if line.split()[:1] in (["rule"], ["localrule"]):
                lines = found.setdefault(line.split()[1].rstrip(":"), [])
            elif line.startswith("    ") and found:
                lines.append(line.strip())
        return found

    def text(self, path):
        return (self.made / path).read_text(encoding="utf-8")

    def results(self):
        """The SHA-256 of every result that must not change from run to run."""
        return {
            path.relative_to(self.made).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
            for path in sorted(self.made.rglob("*"))
            if path.is_file()
            and not any(part.startswith(TIMED) for part in path.relative_to(self.made).parts)
            and not path.name.startswith(".")
        }

    def edit(self, path, old, new):
        text = (self.folder / path).read_text(encoding="utf-8")
        assert old in text
        (self.folder / path).write_text(text.replace(old, new, 1), encoding="utf-8")


@pytest.fixture
def golden():
    """Compare a text with a stored one; with GOLDEN=write in the environment, store it.

    Of a table it is made line by line, from what stands before the arrow.
    """

    def check(name, text):
        path = Path(__file__).with_name("golden") / name
        if callable(text):
            given = (line.partition(" → ")[0] for line in path.read_text("utf-8").splitlines())
            text = "".join(f"{one} → {text(one)}\n" for one in given)
        if os.environ.get("GOLDEN") == "write":
            path.write_text(text, encoding="utf-8")
        assert text == path.read_text(encoding="utf-8")

    return check


@pytest.fixture(scope="session")
def finished(tmp_path_factory):
    """A project with a complete uninterrupted run on two cores; do not change it, take a copy.

    The first worker that wants it makes it for all. Most tests here read its tables; with
    FINISHED=<folder> in the environment that of an earlier run, which --basetemp keeps.
    """
    if "FINISHED" in os.environ:
        return Project(Path(os.environ["FINISHED"]))
    own = tmp_path_factory.getbasetemp()
    shared = (own.parent if "PYTEST_XDIST_WORKER" in os.environ else own) / "finished"
    with shared.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not shared.exists():
            project = Project.new(own / "making")
            project.run("--report", "report.zip", "--report-after-run", "--", "all", "cohort")
            project.folder.rename(shared)
    return Project(shared)


@pytest.fixture
def projects(tmp_path):
    """Two in which nothing has run."""
    return [Project.new(tmp_path / name) for name in ("one", "other")]


@pytest.fixture
def copy(finished, tmp_path):
    """The finished project once more, to change at will."""
    shutil.copytree(finished.folder, tmp_path / "project", symlinks=True)
    return Project(tmp_path / "project")
