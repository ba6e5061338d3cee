"""The files behind a script, against what its bytecode imports and what is loaded when it starts."""

import ast
import dis
import gc
import re
import sys
from importlib import import_module
from inspect import signature
from itertools import accumulate
from pathlib import Path
from types import CodeType

import pytest
import yaml
from cases import counts
from forks import in_a_fork
from source_trees import tree

from pufferflow import _sources
from pufferflow._sources import source_digest, source_files
from pufferflow.studies.catalogue import STUDIES, jobs, plan
from pufferflow.studies.record import function, module_of

pytestmark = pytest.mark.xdist_group("sources")  # what its tests share is made once

ROOT = Path(__file__).parents[2]
SCRIPTS = sorted((ROOT / "workflow/scripts").glob("[!_]*.py"))
SETTINGS = yaml.safe_load((ROOT / "config/config.yaml").read_text(encoding="utf-8"))
for study in STUDIES:
    SETTINGS["experiments"][study.name]["enabled"] = True
STEPS, CLAIMS, _ = plan(SETTINGS)
JOBS = {
    **{job.name: (job.script, {module_of(step.work) for step in job.steps}) for job in jobs(STEPS)},
    "compare_results": ("compare", {module_of(claim.work) for claim in CLAIMS}),
    "write_report": ("report", set()),
    "write_times": ("times", set()),
    "record_provenance": ("provenance", set()),
}
"""Script of each job of a run with everything, and the modules it is told to run."""


def module_name(path):
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_name(path): str(path) for path in sorted((ROOT / "pufferflow").rglob("*.py"))}


def forget_files():
    for cached in (_sources._sha256, _sources._uses, _sources._module, _sources._data_beside):
        cached.cache_clear()


@pytest.fixture
def script(tmp_path):
    """A script and a stand-in for the package: a imports b and, through a package, c; d stands alone."""
    root = tmp_path / "pufferflow"
    for folder in ("workflow", "pufferflow/part/bundled", "pufferflow/pages"):
        (tmp_path / folder).mkdir(parents=True)
    for path, text in {
        "__init__.py": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from pufferflow import d\n",
        "part/__init__.py": "",
        "a.py": "import numpy\nfrom pufferflow.b import x\ndef f():\n    from pufferflow.part import c, missing\n",
        "b.py": "x = 1\n",
        "part/c.py": "y = open('bundled')\n",
        "part/bundled/data.csv": "1\n",
        "part/other.csv": "1\n",
        "pages/unused.html": "1\n",
        "d.py": "z = 3\n",
        "../workflow/_job.py": "import sys\n",
        "../workflow/other.py": "from pufferflow import d\n",
        "../workflow/run.py": "from _job import job\nwith job():\n    if job:\n        import pufferflow.a\n",
    }.items():
        (root / path).write_text(text)
    yield tmp_path / "workflow/run.py"
    forget_files()


def test_files_behind_a_script(script):
    folder = script.parents[1]
    names = {Path(path).relative_to(folder).as_posix() for path in source_files(script, folder / "pufferflow")}
    package = {"__init__.py", "a.py", "b.py", "part/__init__.py", "part/c.py", "part/bundled/data.csv"}
    assert names == {"workflow/run.py", "workflow/_job.py", *(f"pufferflow/{name}" for name in package)}


def test_digest_changes_with_what_is_used_and_with_nothing_else(script):
    package = script.parents[1] / "pufferflow"
    before = source_digest(script, package)
    used = source_files(script, package)
    for path in sorted(script.parents[1].rglob("*.*")):
        if path.is_file():
            path.write_bytes(path.read_bytes() + b"# edited\n")
            forget_files()
            after = source_digest(script, package)
            assert (after != before) == (str(path) in used), path
            before = after


def test_digest_is_the_same_wherever_the_project_lies(script, tmp_path):
    before = source_digest(script, tmp_path / "pufferflow")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    for folder in ("workflow", "pufferflow"):
        (tmp_path / folder).rename(elsewhere / folder)
    forget_files()
    assert source_digest(elsewhere / "workflow/run.py", elsewhere / "pufferflow") == before


# --- the package itself ---------------------------------------------------------------------------


def imported_by_bytecode(path):
    """Full names that a file's bytecode imports; the compiler drops what never runs."""
    text = Path(path).read_text(encoding="utf-8").replace("if TYPE_CHECKING:", "if False:")
    pending, found, last = [compile(text, path, "exec")], set(), ""
    while pending:
        code = pending.pop()
        pending += [constant for constant in code.co_consts if isinstance(constant, CodeType)]
        if dis.opmap["IMPORT_NAME"] not in code.co_code[::2]:
            continue
        for step in dis.get_instructions(code):
            if step.opname == "IMPORT_NAME":
                last = step.argval
                found.add(last)
            elif step.opname == "IMPORT_FROM":
                found.add(f"{last}.{step.argval}")
    return found


@pytest.fixture(scope="module")
def edges():
    """For each module, the modules that run when it is imported."""
    files = {
        **MODULES,
        **{script.stem: str(script) for script in SCRIPTS},
        "_job": str(ROOT / "workflow/scripts/_job.py"),
    }
    return {
        name: {
            prefix
            for found in imported_by_bytecode(path)
            for prefix in accumulate(found.split("."), "{}.{}".format)
            if prefix in MODULES
        }
        for name, path in files.items()
    }


@pytest.fixture(scope="module")
def reached(edges):
    """For each job, the modules that it reaches."""
    found = {}
    for job, (script, modules) in JOBS.items():
        told = {prefix for name in modules for prefix in accumulate(name.split("."), "{}.{}".format)}
        seen, pending = set(), [script, "_job", *told]
        while pending:
            name = pending.pop()
            if name not in seen:
                seen.add(name)
                pending += edges[name]
        found[job] = seen - {script, "_job"}
    return found


def files_of(job):
    script, modules = JOBS[job]
    files = source_files(ROOT / f"workflow/scripts/{script}.py", modules=modules)
    return {path for path in files if path.endswith(".py")}


@pytest.mark.parametrize("job", JOBS)
def test_a_job_reaches_what_its_bytecode_imports(job, reached):
    own = {str(ROOT / f"workflow/scripts/{name}.py") for name in (JOBS[job][0], "_job")}
    assert files_of(job) == {MODULES[name] for name in reached[job]} | own


def loaded(script, modules):
    """Files of the project that are loaded in a child which imports what a job does when it starts."""

    def found():
        gc.disable()
        for name in [name for name in sys.modules if name.partition(".")[0] in ("pufferflow", "_job")]:
            del sys.modules[name]
        sys.path.insert(0, str(script.parent))
        for node in ast.walk(ast.parse(script.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import | ast.ImportFrom):
                exec(compile(ast.Module([node], []), str(script), "exec"), {})
        for module in modules:
            import_module(module)
        return [module.__file__ for name, module in sys.modules.items() if name.startswith(("pufferflow", "_job"))]

    return in_a_fork(found)


@pytest.mark.parametrize("every", counts(8, 1))
def test_a_job_reaches_all_that_is_loaded_when_it_starts(every):
    for name in ("matplotlib.pyplot", "numba", "pandas", "scipy.stats"):  # here, not in every child
        import_module(name)
    for job in list(JOBS)[::every]:
        script, modules = JOBS[job]
        files = loaded(ROOT / f"workflow/scripts/{script}.py", modules)
        assert files
        assert set(files) <= files_of(job), job


SUSPECT = re.compile(
    r"import_module|__import__|lazy_loader|from\s+\.|pufferflow(\.related)?\s+(as|import)\b"
    r"|(?<!from )(?<!import )\bpufferflow\s*\."
)
"""What a text has in which any of the following would be found."""


def test_nothing_a_job_reaches_is_imported_by_a_name_made_at_run_time(reached):
    """Nor through a door, ``pf.name`` or ``related.name``, that imports on first use; but what a job is told to run."""
    doors = {"pufferflow", "pufferflow.related"}
    others = {"pufferflow._optional"}  # it imports packages of others alone
    modules = {name for found in reached.values() for name in found} - doors - others - {"pufferflow.studies.record"}
    for path in {str(s) for s in SCRIPTS} | {MODULES[name] for name in modules}:
        text = Path(path).read_text(encoding="utf-8")
        if not SUSPECT.search(text):
            continue
        for node in ast.walk(tree(Path(path))):
            if isinstance(node, ast.Name | ast.Attribute):
                name = node.id if isinstance(node, ast.Name) else node.attr
                assert name not in ("import_module", "__import__", "lazy_loader"), path
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "pufferflow":
                assert node.attr.startswith("__"), path
            if isinstance(node, ast.Import):
                assert all(alias.name not in doors or not alias.asname for alias in node.names), path
            if isinstance(node, ast.ImportFrom):
                assert node.level == 0, path
                if node.module in doors:
                    assert all(f"{node.module}.{alias.name}" in MODULES.keys() - doors for alias in node.names), path


def test_every_data_file_is_read_by_some_job():
    data = {
        str(path)
        for path in (ROOT / "pufferflow").rglob("*")
        if path.is_file() and path.suffix not in (".py", ".pyi", ".pyc", ".typed")
    }
    assert data
    assert data <= set().union(*map(read_by, JOBS))


def read_by(job):
    script, modules = JOBS[job]
    return set(source_files(ROOT / f"workflow/scripts/{script}.py", modules=modules))


def test_templates_and_published_numbers_concern_only_who_reads_them():
    def readers(name):
        return {job for job in JOBS if str(ROOT / "pufferflow/reporting" / name) in read_by(job)}

    assert readers("report.html.j2") == {"write_report", "write_times"}
    assert "compare_results" in readers("reported/pufferfish.csv")
    assert not {"measure_cohort", "ingest_activity_bundled"} & readers("reported/pufferfish.csv")


def test_records_of_studies_concern_no_job_but_by_its_parameters():
    """Titles, captions and settings reach a job as parameters; an edit of one reruns that job alone."""
    records = {path for name, path in MODULES.items() if name.endswith((".study", "studies.catalogue"))}
    assert len(records) > 10
    for job in JOBS:
        assert not records & files_of(job), job


def test_scales_depend_on_mechanisms_and_figures_do_not():
    scales = {Path(path).name for path in files_of("measure_activity_bundled")}
    assert {"quilts_exact.py", "_kernels.py", "tables.py", "search.py"} <= scales
    assert "quilts_exact.py" not in {Path(path).name for path in files_of("show_synthetic")}


def test_every_job_names_a_function_that_takes_its_inputs_and_settings():
    for step in STEPS:
        given = {*step.inputs, *step.settings, *(["reported"] if step.published else [])}
        if step.kind == "stream":
            given |= {*step.outputs, *re.findall(r"{(\w+)}", "".join(step.outputs.values()))}
        if step.kind == "plot" and "sample" in given:
            given = given - {"sample"} | {"description"}
        if step.kind == "ingest":
            given = step.settings["settings"].keys()
        signature(function(step.work)).bind(**dict.fromkeys(given))
    for claim in CLAIMS:
        signature(function(claim.work)).bind(**claim.inputs, **claim.settings)
