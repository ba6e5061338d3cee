"""What a script of the workflow runs: the files it imports, found in their syntax trees, and a digest of them.

Snakemake does not see an edit of the package; with this digest among a rule's parameters it does. Imports count
wherever they stand, inside functions too, and so do the packages on the way to a module, whose ``__init__`` runs;
those under ``if TYPE_CHECKING:`` never run and do not. What is imported by a name put together at run time cannot be
found: no module that a script reaches may do so (a test checks it). Paths are texts here: this runs at every start.
"""

from __future__ import annotations

import ast
import hashlib
import os
from collections.abc import Iterable, Iterator
from functools import cache
from os.path import basename, dirname, isdir, isfile, join, relpath
from pathlib import Path

PACKAGE = Path(__file__).parent


def source_files(script: Path, package: Path = PACKAGE, modules: Iterable[str] = ()) -> list[str]:
    """All files that ``script`` runs or reads: itself, its neighbours, and those of ``package``, data included.

    ``modules`` are those whose functions it is told to run.
    """
    roots = (str(script.parent), str(package.parent))
    seen: set[str] = set()
    pending = [str(script), *(file for name in modules for file in _module(name, roots[1]))]
    while pending:
        path = pending.pop()
        if path not in seen:
            seen.add(path)
            pending += _uses(path, roots)
    return sorted(seen)


def source_digest(script: Path, package: Path = PACKAGE, modules: Iterable[str] = ()) -> str:
    """Short digest of :func:`source_files`: it changes when one of them does, wherever the project lies."""
    digest = hashlib.sha256()
    for path in source_files(script, package, modules):
        digest.update(f"{relpath(path, script.parent)}\0{_sha256(path)}\0".encode())
    return digest.hexdigest()[:16]


@cache
def _sha256(path: str) -> str:
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()


@cache
def _uses(path: str, roots: tuple[str, ...]) -> frozenset[str]:
    """Files that one file imports, or names as data."""
    if not path.endswith(".py"):
        return frozenset()
    text = Path(path).read_text(encoding="utf-8")
    tree = ast.parse(text)
    modules = {file for name in _imported(tree.body) for root in roots for file in _module(name, root)}
    return frozenset(modules | set(_data(dirname(path), text, tree)))


def _imported(body: Iterable[ast.AST]) -> Iterator[str]:
    """Names that statements import, those of what a module holds among them."""
    for node in body:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        for part in ("orelse",) if _only_for_types(node) else ("body", "orelse", "finalbody", "handlers", "cases"):
            inner = getattr(node, part, None)
            if isinstance(inner, list):
                yield from _imported(inner)


def _only_for_types(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


@cache
def _module(name: str, root: str) -> tuple[str, ...]:
    """Files that run when ``name``, a module or what one holds, is imported from ``root``."""
    first, _, rest = name.partition(".")
    if isfile(package := join(root, first, "__init__.py")):
        return (package, *(_module(rest, join(root, first)) if rest else ()))
    return (file,) if isfile(file := join(root, f"{first}.py")) else ()


def _data(folder: str, text: str, tree: ast.Module) -> Iterator[str]:
    """Files beside a module, or in a folder beside it, that one of its texts names."""
    beside = [entry for entry in _data_beside(folder) if basename(entry) in text]
    named = {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)} if beside else set()
    for entry in beside:
        if basename(entry) in named:
            yield from _files(entry)


@cache
def _data_beside(folder: str) -> tuple[str, ...]:
    names = (name for name in os.listdir(folder) if not name.endswith(".py") and not name.startswith((".", "__")))
    return tuple(join(folder, name) for name in names if not isfile(join(folder, name, "__init__.py")))


def _files(entry: str) -> Iterator[str]:
    if not isdir(entry):
        yield entry
    for folder, _, names in os.walk(entry):
        yield from (join(folder, name) for name in names)
