"""What a study is made of: steps with files in and files out, what the report shows of them, and claims to compare.

Records are data. A step names its function as ``"module:function"``, so that reading the list of all jobs imports no
numerical library, and an edit of a function reruns the jobs that reach it and no others. A job is a process that does
one step or several.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from math import log
from re import findall
from typing import Any, Literal, TypeAlias

from pufferflow.reporting.place import Place

Kind = Literal["ingest", "fit", "measure", "stream", "plot", "render"]
"""What a step does."""

Paths: TypeAlias = Mapping[str, str | tuple[str, ...]]
"""Files by the names of the arguments they become."""

FIGURE_FORMATS = ("svg", "pdf", "png")
TABLE_FORMATS = ("csv", "md", "tex", "json")
"""The last is the printed table as the report takes it."""

SOURCES = {"bundled": "bundled", "download": "downloaded", "file": "file"}
"""Label of data by the setting ``source``."""

DOWNLOADS = "results/downloads"
"""Folder of what is downloaded, for all runs."""

RESULTS = "results"
"""Folder of all files of a run, as the records name them; a run may have another, see :meth:`Run.placed`."""


def function(work: str) -> Callable[..., Any]:
    """Return the function that ``"module:function"`` names."""
    module, _, name = work.partition(":")
    return getattr(import_module(module), name)  # type: ignore[no-any-return]


def module_of(work: str) -> str:
    """Return the module of ``"module:function"``."""
    return work.partition(":")[0]


@dataclass(frozen=True)
class Section(Place):
    """What the report says of a table or a figure that is still to be made.

    Attributes
    ----------
    data : str
        Label of the data, if the table does not say it: one of ``records.sample.LABELS``.
    data_from : str
        File that knows the label instead: a sample or a printed table.
    """

    caption: str = ""  # by its place in a call, too
    data: str = ""
    data_from: str = ""


@dataclass(frozen=True)
class Step:
    """One piece of work.

    Attributes
    ----------
    name : str
    kind : str
    work : str
        ``"module:function"``, called with the inputs, read, and the settings.
    inputs, outputs : mapping of str to path
        What the function returns, in order, is written to the outputs.
    settings : mapping
        Further keyword arguments.
    section : Section, optional
        Place in the report.
    threads : int
        :data:`ALONE` for work that is timed.
    megabytes : int
        Memory to ask a cluster for; 0 for its default.
    priority : int
        Of several that can begin, those with the highest do: what is long, and what that waits for.
    local : bool
        Whether it is too small for a cluster.
    given : bool
        Whether the inputs are files of the user, which no job has made.
    published : bool
        Whether the function also takes the published numbers, as ``reported``.
    usual : bool
        Whether a complete run has it.
    job : str
        Name of the :class:`Job` that does it, perhaps among others.
    """

    name: str
    kind: Kind
    work: str
    inputs: Paths
    outputs: Mapping[str, str]
    settings: Mapping[str, Any] = field(default_factory=dict)
    section: Section | None = None
    threads: int = 1
    megabytes: int = 0
    priority: int = 0
    local: bool = False
    given: bool = False
    published: bool = False
    usual: bool = True
    job: str = ""

    @property
    def shown(self) -> str:
        """The file that the report takes."""
        return self.outputs["svg" if self.kind == "plot" else "json"]

    @property
    def timed(self) -> bool:
        """Whether it shows seconds, which change from run to run and are kept out of the report."""
        return self.section is not None and f"/{TIMES_FOLDER}/" in self.shown


@dataclass(frozen=True)
class Job:
    """What one process does: a step, or several short ones, of which each takes less time than to start a process.

    Attributes
    ----------
    name : str
        Of its rule and its log.
    steps : sequence of Step
        In the order of their work: one may read what those before it make.
    results : str
        Folder of the run.
    """

    name: str
    steps: tuple[Step, ...]
    results: str = RESULTS

    @property
    def script(self) -> str:
        """Name of the script in workflow/scripts that runs it: what is seen is drawn and printed by one."""
        (script,) = {"show" if step.kind in ("plot", "render") else step.kind for step in self.steps}
        return script

    @property
    def inputs(self) -> list[str]:
        """Files that other jobs make, or the user."""
        files = (file for step in self.steps for given in step.inputs.values() for file in _several(given))
        return [file for file in dict.fromkeys(files) if file not in self.outputs]

    @property
    def outputs(self) -> list[str]:
        """Files that it makes."""
        return [file for step in self.steps for file in step.outputs.values()]

    @property
    def log(self) -> str:
        """File for what it says; one of several jobs has its wildcards in the name."""
        wildcards = sorted(set(findall(r"{\w+}", " ".join(self.outputs))))
        return f"{self.results}/logs/{'/'.join([self.name, *wildcards])}.log"

    @property
    def usual(self) -> bool:
        """Whether a complete run has it."""
        return any(step.usual for step in self.steps)

    @property
    def threads(self) -> int:
        """Threads of its most demanding step."""
        return max(step.threads for step in self.steps)

    @property
    def megabytes(self) -> int:
        """Memory of its most demanding step; 0 for a cluster's default."""
        return max(step.megabytes for step in self.steps)

    @property
    def priority(self) -> int:
        """Priority of its most urgent step."""
        return max(step.priority for step in self.steps)

    @property
    def local(self) -> bool:
        """Whether it is too small for a cluster."""
        return all(step.local for step in self.steps)

    @property
    def given(self) -> bool:
        """Whether its inputs are files of the user."""
        return all(step.given for step in self.steps)


def _several(given: str | tuple[str, ...]) -> tuple[str, ...]:
    return (given,) if isinstance(given, str) else given


TIMES_FOLDER = "benchmarks"
TIMES_PAGE = f"{TIMES_FOLDER}/table2.html"
"""The page of what is timed, in the folder of the results."""

ALONE = 256
"""Threads of a job beside which none runs: Snakemake caps them at ``--cores``."""


def plot(
    stem: str, work: str, inputs: Paths, section: Section | None = None, folder: str = "figures", **others: Any
) -> Step:
    """Return the step that draws ``results/<folder>/<stem>`` in all formats; ``others`` as :class:`Step` takes them."""
    outputs = {suffix: f"results/{folder}/{stem}.{suffix}" for suffix in FIGURE_FORMATS}
    return Step(f"plot_{stem}", "plot", work, inputs, outputs, section=section, **others)


def render(
    stem: str, work: str, inputs: Paths, section: Section | None = None, folder: str = "tables", **others: Any
) -> Step:
    """Return the step that prints ``results/<folder>/<stem>``, in all formats; ``others`` as :func:`plot` does."""
    outputs = {suffix: f"results/{folder}/{stem}.{suffix}" for suffix in TABLE_FORMATS}
    return Step(f"render_{stem}", "render", work, inputs, outputs, section=section, **others)


@dataclass(frozen=True)
class Claims:
    """Rows of the comparison: ``work`` makes them of the tables and the settings."""

    work: str
    inputs: Mapping[str, str]
    settings: Mapping[str, Any] = field(default_factory=dict)


STATED = "pufferflow.reporting.comparison:stated_numbers"
"""Work of claims that are numbers a source prints, found by their keys."""


@dataclass(frozen=True)
class Dataset:
    """Real data that several studies take.

    Attributes
    ----------
    ingest : str
        The work that makes a sample of its settings.
    runs : str
        The work that counts the runs of its records.
    has_values : bool
        Whether its records are numbers, so that its runs are of states between edges.
    composed : bool
        Whether several releases of it are added up.
    """

    ingest: str
    runs: str
    has_values: bool = False
    composed: bool = True


@dataclass(frozen=True)
class Run:
    """The settings of a run, and the names of what several studies share."""

    settings: Mapping[str, Any]
    datasets: Mapping[str, Dataset]
    """Real data of the studies that are to be run."""

    @property
    def seed(self) -> int:
        """Seed of the run."""
        return int(self.settings["seed"])

    @property
    def options(self) -> Mapping[str, Mapping[str, Any]]:
        """Options of the mechanisms."""
        options: Mapping[str, Mapping[str, Any]] = self.settings["mechanisms"]
        return options

    def own(self, study: str, without: Collection[str] | None = None) -> Mapping[str, Any]:
        """Settings of a study: all of them, or what its main job takes, ``without`` those that are for others."""
        own: Mapping[str, Any] = self.settings["experiments"][study]
        if without is None:
            return own
        return {name: value for name, value in own.items() if name not in ("enabled", *without)}

    def enabled(self, study: str) -> bool:
        """Whether a study is to be run."""
        return bool(self.own(study)["enabled"])

    def labelled(self, dataset: str) -> str:
        """Name of a real data set with the label of its source: every file made from it carries both."""
        return f"{dataset}_{SOURCES[self.settings['datasets'][dataset]['source']]}"

    def source(self, dataset: str) -> Mapping[str, Any]:
        """Settings of a real data set; what is downloaded is kept with the results."""
        settings: Mapping[str, Any] = self.settings["datasets"][dataset]
        return {**settings, "path": DOWNLOADS} if settings["source"] == "download" else settings

    @property
    def results(self) -> str:
        """Folder of its files."""
        return str(self.settings["results_dir"]).rstrip("/")

    def placed(self, given: Any) -> Any:
        """Put a file, several, or a mapping to files into the folder of this run; other values stay."""
        if isinstance(given, str):
            return self.results + given.removeprefix(RESULTS) if given.startswith(f"{RESULTS}/") else given
        if isinstance(given, tuple):
            return tuple(map(self.placed, given))
        if isinstance(given, Mapping):
            return {name: self.placed(value) for name, value in given.items()}
        return given

    def sample(self, dataset: str) -> str:
        """File of the sample."""
        return f"results/samples/{self.labelled(dataset)}.json"

    def chains(self, dataset: str) -> str:
        """Folder of the fitted chains."""
        return f"results/chains/{self.labelled(dataset)}"


def no_claims(_run: Run) -> Iterable[Claims]:
    """Return nothing: what most studies beyond the paper claim."""
    return ()


@dataclass(frozen=True)
class Study:
    """One thing that is shown.

    Attributes
    ----------
    name : str
        Key of its settings under ``experiments``; it is run where ``enabled`` there.
    steps : callable
        What it does in a run, in the order of the report.
    claims : callable
        What it adds to the comparison.
    dataset : Dataset, optional
        The real data of its name, if it is about such data.
    note : Section, optional
        What the report says where it shows nothing; its caption is the text.
    """

    name: str
    steps: Callable[[Run], Iterator[Step]]
    claims: Callable[[Run], Iterable[Claims]] = no_claims
    dataset: Dataset | None = None
    note: Section | None = None


def shown_epsilon(epsilons: Iterable[float]) -> float:
    """ε of a figure that shows only one: the one closest to 1, the paper's choice."""
    return float(min(epsilons, key=lambda epsilon: abs(log(epsilon))))
