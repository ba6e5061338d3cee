"""Data flows one way: each package imports only from those before it."""

import ast
from pathlib import Path

import pufferflow

ROOT = Path(pufferflow.__file__).parent
ORDER = (
    *(
        "errors",
        "_texts",
        "_sources",
        "_files",
        "_jit",
        "_rounding",
        "_checks",
        "_json",
        "_numbers",
        "records",
        "divergences",
    ),
    *("markov", "influence", "transport", "coupling", "audit", "beliefs", "hmm", "dp", "datasets", "models", "verify"),
    *("mechanisms", "certificates", "accounting", "bayesnet", "_ledger_entries", "ledger", "publishing"),
    *("experiments", "reporting", "cli"),
)
IN_FUNCTIONS = {("markov", "influence"), ("mechanisms", "certificates"), ("publishing", "reporting")}
"""Methods that hand over to a later package, which is loaded when they are called."""


def imports(nodes):
    """Packages of this library that the nodes import."""
    for node in nodes:
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "pufferflow":
            yield node.module.split(".")[1] if "." in node.module else node.names[0].name


def upward(pick):
    """Pairs (package, later one it imports), of the nodes of each file that ``pick`` takes."""
    found = set()
    for path in ROOT.rglob("*.py"):
        package = path.relative_to(ROOT).parts[0].removesuffix(".py")
        if package != "__init__":
            names = imports(pick(ast.parse(path.read_text())))
            found |= {(package, name) for name in names if ORDER.index(name) > ORDER.index(package)}
    return found


def test_nothing_is_loaded_against_the_order():
    assert upward(lambda tree: tree.body) == set()


def test_calls_against_the_order_are_listed():
    typed = upward(lambda tree: [n for block in tree.body if isinstance(block, ast.If) for n in block.body])
    assert typed <= IN_FUNCTIONS
    assert upward(ast.walk) == IN_FUNCTIONS


def test_the_verifier_depends_on_nothing_but_errors():
    for path in (ROOT / "verify").glob("*.py"):
        assert set(imports(ast.walk(ast.parse(path.read_text())))) <= {"errors", "verify"}, path.name
