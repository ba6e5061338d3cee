"""The files behind a script, against the imports of syntax trees, and what they cannot show."""

import ast
from itertools import accumulate
from pathlib import Path

import networkx as nx
import pytest
from source_trees import imports, modules, tree

from reproduction.code import source_files

ROOT = Path(__file__).parents[2]
WORKFLOW = ROOT / "workflow"
SCRIPTS = sorted(path.name for path in (WORKFLOW / "scripts").glob("*.py"))
MODULES = modules(ROOT / "pufferflow") | modules(WORKFLOW / "reproduction")
LAZY = {name for name, path in MODULES.items() if path.with_suffix(".pyi").exists()}
"""Rooms whose names load on first use, from any of their modules."""


def modules_of(found):
    """The modules that run when a name is imported, or may."""
    prefixes = [n for n in accumulate(found.split("."), "{}.{}".format) if n in MODULES]
    if prefixes and prefixes[-1] in LAZY - {"pufferflow"}:
        room = MODULES[prefixes[-1]].parent
        prefixes += [name for name, path in MODULES.items() if path.parent == room]
    return set(prefixes)


@pytest.fixture(scope="module")
def reached():
    """For each script, the modules that run when it does."""
    graph = nx.DiGraph()
    scripts = {script: WORKFLOW / "scripts" / script for script in SCRIPTS}
    for name, path in (MODULES | scripts).items():
        for found in imports(path, types=False):
            graph.add_edges_from((name, module) for module in modules_of(found))
    return {script: nx.descendants(graph, script) for script in SCRIPTS}


def test_a_script_reaches_what_its_syntax_tree_imports(reached):
    for script, names in reached.items():
        files = {path for path in source_files(script) if path.suffix == ".py"}
        assert files == {WORKFLOW / "scripts" / script, *(MODULES[name] for name in names)}


def test_nothing_a_script_reaches_is_imported_by_a_name_made_at_run_time(reached):
    """Nor through the door, ``pf.name``, that imports on first use."""
    others = {"pufferflow._util.optional"}  # it imports packages of others alone
    paths = {MODULES[name] for name in set().union(*reached.values()) - LAZY - others}
    for path in paths | {WORKFLOW / "scripts" / script for script in SCRIPTS}:
        for node in ast.walk(tree(path)):
            name = getattr(node, "attr", getattr(node, "id", ""))
            assert name not in ("import_module", "__import__", "lazy_loader"), path
            if isinstance(node, ast.Attribute) and ast.unparse(node.value) == "pufferflow":
                assert name.startswith("__"), path
            for alias in node.names if isinstance(node, ast.Import | ast.ImportFrom) else ():
                assert alias.name != "pufferflow" or not alias.asname, path
                if getattr(node, "module", "") == "pufferflow":
                    assert f"pufferflow.{alias.name}" in MODULES, path
            assert not getattr(node, "level", 0), path


def test_data_beside_modules_count_where_they_are_named():
    """And mechanisms for scales, not for figures; test_workflow.py edits a source."""
    names = {script: {path.name for path in source_files(script)} for script in SCRIPTS}
    assert {script for script in SCRIPTS if "page.css" in names[script]} == {
        script for script in SCRIPTS if script.startswith("write_")
    }
    assert {"pufferfish.csv", "noisy_max.csv"} <= names["compare_paper.py"]
    assert "run_realData.csv" in names["compare_paper.py"]
    assert {"baselines.py", "_kernels.py", "quilts.py"} <= names["run_mechanism.py"]
    figures = names["draw_figures_synthetic.py"]
    assert not {"baselines.py", "run_realData.csv", "page.css"} & figures
