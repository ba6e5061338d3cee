"""The files that a script imports, found in its import statements, and a digest of them.

Snakemake does not see an edit of a package; with this digest among a rule's params it does. Imports
count wherever they are, inside functions too, and so do the packages on the way to a module, whose
``__init__`` runs; of a package whose names load lazily all modules count. Imports under ``if
TYPE_CHECKING:`` never run and do not count.
"""

import hashlib
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

WORKFLOW = Path(__file__).parents[1]
IMPORT = re.compile(r"^ *(?:from ([\w.]+) )?import (\([^)]*\)|.*)$", re.MULTILINE)
ONLY_TYPES = re.compile(r"^( *)if TYPE_CHECKING:.*\n(?:\1 +.*\n|\n)+", re.MULTILINE)
"""Syntax trees would give the same, but take .4 s whenever Snakemake starts."""


def code_of(script: str, workflow: Path = WORKFLOW) -> str:
    """Return a short digest of :func:`source_files`, the same wherever the project is."""
    digest = hashlib.sha256()
    for path in source_files(script, workflow):
        name = path.relative_to(workflow.parent).as_posix()
        digest.update(f"{name}\0{_sha256(path)}\0".encode())
    return digest.hexdigest()[:16]


def source_files(script: str, workflow: Path = WORKFLOW) -> list[Path]:
    """Return all files that a script of ``workflow/scripts`` imports or reads next to its modules.

    Modules are those of ``reproduction`` and of the library; a data file counts if a string of a
    module names it or its folder.
    """
    roots = (workflow, workflow.parent)
    seen: set[Path] = set()
    pending = [workflow / "scripts" / script]
    while pending:
        path = pending.pop()
        if path not in seen:
            seen.add(path)
            pending += _uses(path, roots)
    return sorted(seen)


@cache
def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


@cache
def _uses(path: Path, roots: tuple[Path, ...]) -> frozenset[Path]:
    """Return the files that one file imports, or names as data."""
    if path.suffix != ".py":
        return frozenset()
    text = path.read_text(encoding="utf-8")
    used = {file for name in _imported(text) for root in roots for file in _module(name, root)}
    for entry in _data_next_to(path.parent):
        if f'"{entry.name}"' in text:
            used |= {file for file in (entry, *entry.rglob("*")) if file.is_file()}
    return frozenset(used)


@cache
def _data_next_to(folder: Path) -> list[Path]:
    """Return the files and folders next to modules that are not modules themselves."""
    return [
        entry
        for entry in folder.iterdir()
        if entry.suffix != ".py" and not (entry / "__init__.py").exists()
        if not entry.name.startswith((".", "__"))
    ]


def _imported(text: str) -> Iterator[str]:
    """Yield the names that import statements name, those that a module holds among them."""
    for module, names in IMPORT.findall(ONLY_TYPES.sub("", text)):
        for name in re.findall(r"([\w.]+)(?: as \w+)?", names):
            yield f"{module}.{name}" if module else name


@cache
def _module(name: str, root: Path) -> tuple[Path, ...]:
    """Return the files that run when ``name``, a module or a name in one, is imported."""
    first, _, rest = name.partition(".")
    package = root / first / "__init__.py"
    if package.is_file():
        inner = _module(rest, root / first) if rest else ()
        if not inner and package.with_suffix(".pyi").is_file():  # names load from any module of it
            inner = tuple((root / first).glob("*.py"))
        return (package, *inner)
    file = root / f"{first}.py"
    return (file,) if file.is_file() else ()
