"""Syntax trees of sources, parsed once for all tests that look at them, and what they import."""

import ast
from functools import cache
from pathlib import Path

import pufferflow

PACKAGE = Path(pufferflow.__file__).parent


def modules(package: Path) -> dict[str, Path]:
    """The files of a package by the full names of their modules."""
    found = {}
    for path in sorted(package.rglob("*.py")):
        parts = path.relative_to(package.parent).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def imports(path, types=True):
    """Names that a module imports, wherever: ``module.name``; those for ``types`` alone or not."""
    return set(_imports(tree(path).body, types))


def _imports(body, types):
    for node in body:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING" and not types:
            yield from _imports(node.orelse, types)
        elif isinstance(node, ast.stmt | ast.excepthandler | ast.match_case):
            yield from _imports(ast.iter_child_nodes(node), types)
