"""Data flows one way: each room imports only from those before it, and little is loaded at once."""

import ast
import subprocess
import sys
from graphlib import TopologicalSorter

import pytest
from source_trees import PACKAGE, imports, modules, tree

pytestmark = pytest.mark.xdist_group("sources")  # what its tests share is made once

FILES = [path for path in PACKAGE.rglob("*.py") if path.parent != PACKAGE or path.stem[0] != "_"]
GROUND = ("errors", "_util")
"""What anything may stand on."""

ORDER = (
    *GROUND,
    *("dp", "hmm", "records", "general"),
    *("models", "influence", "bounds", "audit", "data", "verify"),
    *("networks", "certificates", "mechanisms", "accounting"),
    *("drawing", "publish", "cli", "__main__"),
)


def room(path):
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def rooms(path):
    """Other rooms that a module imports from, inside functions and for types alone too."""
    ours = (name.split(".")[1] for name in imports(path) if name.startswith("pufferflow."))
    return {name for name in ours if not name.startswith("__")} - {room(path)}


def test_data_flows_one_way():
    """Few rooms know one another."""
    arrows = {(room(path), name) for path in FILES for name in rooms(path)}
    assert not [(one, other) for one, other in arrows if ORDER.index(other) > ORDER.index(one)]
    assert len(arrows) <= 90


def test_no_modules_import_one_another_in_a_circle():
    """Nor through others, nor inside functions; what is imported for types alone never runs."""
    files, graph = modules(PACKAGE), {}
    for name, path in files.items():
        wanted = imports(path, types=False)
        homes = (part if part in files else part.rpartition(".")[0] for part in wanted)
        graph[name] = {home for home in homes if home in files} - {name}
    assert len(graph) > 100
    assert sum(map(len, graph.values())) > 400
    TopologicalSorter(graph).prepare()  # raises CycleError, which names a circle


def test_functions_are_short():
    """At most 60 lines, without the docstring."""
    functions = {}
    for path in (*PACKAGE.rglob("*.py"), *(PACKAGE.parent / "workflow").rglob("*.py")):
        for node in ast.walk(tree(path)):
            if isinstance(node, ast.FunctionDef):
                first = node.body[0]
                docstring = first.end_lineno - first.lineno + 1 if ast.get_docstring(node) else 0
                functions[path, node.name] = node.end_lineno - node.lineno + 1 - docstring
    assert len(functions) > 1000
    assert [name for name, lines in functions.items() if lines > 60] == []


BESIDE = {"dp": GROUND, "hmm": GROUND, "networks": (*GROUND, "models"), "verify": ("errors",)}
"""Rooms that share little with the others; three are systems that the command line alone shows."""


def test_what_stands_beside_shares_nothing_with_the_core():
    """Nor does anything load a window system."""
    for path in FILES:
        assert not any(name.startswith("matplotlib.pyplot") for name in imports(path)), path
        if room(path) in BESIDE:
            assert rooms(path) <= {*BESIDE[room(path)]}, path
        elif room(path) != "cli":
            assert not rooms(path) & (BESIDE.keys() - {"verify"}), path
        if room(path) == "verify":
            tops = {name.partition(".")[0] for name in imports(path)}
            assert tops <= {"pufferflow", "flint", *sys.stdlib_module_names}, path


@pytest.mark.parametrize(("module", "ours"), [("", ""), (".verify", "verify errors")])
def test_little_is_loaded(module, ours):
    """No numerical code for a certificate, nor before the first name that needs it."""
    command = [sys.executable, "-c", f"import sys, pufferflow{module}; print(*sys.modules)"]
    loaded = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    heavy = {"numpy", "scipy", "numba", "pandas", "pyarrow"}
    assert not {name.partition(".")[0] for name in loaded} & heavy
    found = {name.split(".")[1] for name in loaded if name.startswith("pufferflow.")}
    assert found == {*ours.split()}
