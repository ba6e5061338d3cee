"""Data flows one way: each package imports only from those before it."""

import ast
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest
from source_trees import tree

import pufferflow
from reproduction.code import _imported

pytestmark = pytest.mark.xdist_group("sources")  # what its tests share is made once

ROOT = Path(pufferflow.__file__).parent
GROUND = ("errors", "_util")
"""What anything may stand on."""

ORDER = (
    *GROUND,
    *("dp", "hmm", "records", "general"),
    *("models", "influence", "bounds", "audit", "data", "verify"),
    *("networks", "certificates", "mechanisms", "accounting"),
    *("drawing", "publish", "cli", "__main__"),
)


@cache
def imports(path):
    """Packages of this library that a module imports, wherever the import stands."""
    return set(_imports(ast.walk(tree(path))))


def _imports(nodes):
    for node in nodes:
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "pufferflow":
            yield node.module.split(".")[1] if "." in node.module else node.names[0].name


def package(path):
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


def arrows():
    """Pairs (package, another one it imports), wherever the import stands."""
    files = [path for path in ROOT.rglob("*.py") if package(path) != "__init__"]
    pairs = {
        (package(path), name)
        for path in files
        for name in imports(path)
        if not name.startswith("__")
    }
    return {(one, other) for one, other in pairs if one != other}


def test_nothing_is_imported_against_the_order():
    """Imports inside functions count, and so do those for types alone."""
    assert not [(one, other) for one, other in arrows() if ORDER.index(other) > ORDER.index(one)]


def test_the_size_of_the_library(capsys):
    """Few packages know one another; the other numbers are printed to be looked at."""
    texts = {path: path.read_text(encoding="utf-8").splitlines() for path in ROOT.rglob("*.py")}
    lines = sorted(map(len, texts.values()))
    functions = [
        node.end_lineno - node.lineno + 1
        for path in texts
        for node in ast.walk(tree(path))
        if isinstance(node, ast.FunctionDef)
    ]
    figures = {
        "lines": sum(lines),
        "modules": len(lines),
        "lines of the median module": lines[len(lines) // 2],
        "of the largest": lines[-1],
        "functions over 50 lines": sum(n > 50 for n in functions),
        "arrows between packages": len(arrows()),
    }
    with capsys.disabled():
        print("\npufferflow:", ", ".join(f"{name} {number}" for name, number in figures.items()))
    assert len(arrows()) <= 90


def module_name(path):
    parts = path.relative_to(ROOT.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def test_no_modules_import_one_another_in_a_circle():
    """Nor through others, nor inside functions; what is imported for types alone never runs."""
    files = {module_name(path): path for path in ROOT.rglob("*.py")}
    graph = {}
    for name, path in files.items():
        wanted = _imported(tree(path).body)
        homes = (part if part in files else part.rpartition(".")[0] for part in wanted)
        graph[name] = {home for home in homes if home in files} - {name}
    assert len(graph) > 130
    assert sum(map(len, graph.values())) > 500
    TopologicalSorter(graph).prepare()  # raises CycleError, which names a circle


def test_the_verifier_depends_on_nothing_but_errors():
    for path in (ROOT / "verify").glob("*.py"):
        assert imports(path) <= {"errors", "verify"}, path.name


BESIDE = {"dp": GROUND, "hmm": GROUND, "networks": (*GROUND, "models")}
"""Systems next to chains, and what they stand on; the command line alone shows them."""


def test_what_stands_beside_and_the_core_do_not_know_one_another():
    for path in ROOT.rglob("*.py"):
        if package(path) in BESIDE:
            assert imports(path) <= {*BESIDE[package(path)], package(path)}, path
        elif package(path) != "cli":
            assert not imports(path) & BESIDE.keys(), path
