"""The files behind a script, against what its bytecode imports and what loads when it starts."""

import ast
import dis
import re
from itertools import accumulate
from pathlib import Path
from types import CodeType

import pytest
from source_trees import tree

from reproduction import code
from reproduction.code import code_of, source_files

pytestmark = pytest.mark.xdist_group("sources")  # what its tests share is made once

ROOT = Path(__file__).parents[2]
WORKFLOW = ROOT / "workflow"
SCRIPTS = sorted(path.name for path in (WORKFLOW / "scripts").glob("*.py"))


def forget_files():
    for cached in (code._sha256, code._uses, code._module, code._data_beside):
        cached.cache_clear()


@pytest.fixture
def workflow(tmp_path):
    """A stand-in: a script imports shared a, which imports b and, by a package, c; d is alone."""
    for folder in ("workflow/scripts", "workflow/shared/part/bundled", "library/lazy"):
        (tmp_path / folder).mkdir(parents=True)
    for path, text in {
        "workflow/shared/__init__.py": "if TYPE_CHECKING:\n    from shared import d\n",
        "workflow/shared/part/__init__.py": "",
        "workflow/shared/a.py": "from library.b import x\n"
        "def f():\n    from shared.part import c, missing\n",
        "library/__init__.py": "",
        "library/b.py": "from library.lazy import name\n",
        "library/lazy/__init__.py": "",
        "library/lazy/__init__.pyi": "from .inner import name as name\n",
        "library/lazy/inner.py": "name = 1\n",
        "library/e.py": "x = 1\n",
        "workflow/shared/part/c.py": "y = open('bundled'), 'page.css'\n",
        "workflow/shared/part/bundled/data.csv": "1\n",
        "workflow/shared/part/page.css": "1\n",
        "workflow/shared/part/other.csv": "1\n",
        "workflow/shared/d.py": "z = 3\n",
        "workflow/scripts/other.py": "from shared import d\n",
        "workflow/scripts/run.py": "with suppress():\n"
        "    if suppress:\n        import numpy, shared.a\n",
    }.items():
        (tmp_path / path).write_text(text)
    yield tmp_path / "workflow"
    forget_files()


def test_files_behind_a_script(workflow):
    names = {
        path.relative_to(workflow.parent).as_posix() for path in source_files("run.py", workflow)
    }
    assert names == {
        "workflow/scripts/run.py",
        *("workflow/shared/__init__.py", "workflow/shared/a.py"),
        *("workflow/shared/part/__init__.py", "workflow/shared/part/c.py"),
        *("workflow/shared/part/bundled/data.csv", "workflow/shared/part/page.css"),
        *("library/__init__.py", "library/b.py"),
        *("library/lazy/__init__.py", "library/lazy/inner.py"),
    }


def test_the_digest_changes_with_what_is_used_and_with_nothing_else(workflow):
    before = code_of("run.py", workflow)
    used = source_files("run.py", workflow)
    for path in sorted(workflow.parent.rglob("*.*")):
        if path.is_file():
            path.write_bytes(path.read_bytes() + b"# edited\n")
            forget_files()
            after = code_of("run.py", workflow)
            assert (after != before) == (path in used), path
            before = after


# --- the workflow itself --------------------------------------------------------------------------


def module_name(path, root):
    parts = path.relative_to(root).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {
    module_name(path, ROOT): path for path in sorted((ROOT / "pufferflow").rglob("*.py"))
} | {
    module_name(path, WORKFLOW): path for path in sorted((WORKFLOW / "reproduction").rglob("*.py"))
}


def imported_by_bytecode(path):
    """Full names that a file's bytecode imports; the compiler drops what never runs."""
    text = path.read_text(encoding="utf-8").replace("if TYPE_CHECKING:", "if False:")
    pending, found, last = [compile(text, path, "exec")], set(), ""
    while pending:
        compiled = pending.pop()
        pending += [constant for constant in compiled.co_consts if isinstance(constant, CodeType)]
        for step in dis.get_instructions(compiled):
            if step.opname == "IMPORT_NAME":
                last = step.argval
                found.add(last)
            elif step.opname == "IMPORT_FROM":
                found.add(f"{last}.{step.argval}")
    return found


LAZY = {name for name, path in MODULES.items() if path.with_suffix(".pyi").exists()}
"""Rooms whose names load on first use, from any of their modules."""


def modules_of(found):
    """The modules that run when a name is imported, or may."""
    *_, last = prefixes = [
        name for name in accumulate(found.split("."), "{}.{}".format) if name in MODULES
    ] or [""]
    whole = last in LAZY - {"pufferflow"}
    return {
        *prefixes,
        *(name for name, path in MODULES.items() if whole and path.parent == MODULES[last].parent),
    } - {""}


@pytest.fixture(scope="module")
def edges():
    """For each module or script, the modules that run when it is imported."""
    files = {**MODULES, **{script: WORKFLOW / "scripts" / script for script in SCRIPTS}}
    return {
        name: set().union(*map(modules_of, imported_by_bytecode(path)))
        for name, path in files.items()
    }


def reached(script, edges):
    seen, pending = set(), [script]
    while pending:
        name = pending.pop()
        if name not in seen:
            seen.add(name)
            pending += edges[name]
    return seen - {script}


def test_a_script_reaches_what_its_bytecode_imports(edges):
    for script in SCRIPTS:
        files = {path for path in source_files(script) if path.suffix == ".py"}
        assert files == {MODULES[name] for name in reached(script, edges)} | {
            WORKFLOW / "scripts" / script
        }


def test_nothing_a_script_reaches_is_imported_by_a_name_made_at_run_time(edges):
    """Nor through the door, ``pf.name``, that imports on first use."""
    others = {"pufferflow._util.optional"}  # it imports packages of others alone
    modules = {name for script in SCRIPTS for name in reached(script, edges)} - LAZY - others
    for path in {WORKFLOW / "scripts" / script for script in SCRIPTS} | {
        MODULES[name] for name in modules
    }:
        for node in ast.walk(tree(path)):
            if isinstance(node, ast.Name | ast.Attribute):
                name = node.id if isinstance(node, ast.Name) else node.attr
                assert name not in ("import_module", "__import__", "lazy_loader"), path
            if (
                isinstance(node, ast.Attribute)
                and isinstance(node.value, ast.Name)
                and node.value.id == "pufferflow"
            ):
                assert node.attr.startswith("__"), path
            if isinstance(node, ast.Import):
                assert all(
                    alias.name != "pufferflow" or not alias.asname for alias in node.names
                ), path
            if isinstance(node, ast.ImportFrom):
                assert node.level == 0, path
                if node.module == "pufferflow":
                    assert all(f"pufferflow.{alias.name}" in MODULES for alias in node.names), path


def test_scales_depend_on_mechanisms_and_figures_do_not():
    scales = {path.name for path in source_files("run_mechanism.py")}
    assert {"weak_correlation.py", "_kernels.py", "quilts.py"} <= scales
    assert "weak_correlation.py" not in {
        path.name for path in source_files("draw_figure4_synthetic.py")
    }
    assert not re.search("page.css", " ".join(scales))
