"""Where the results come from: a digest of the sources they depend on, versions, and the machine."""

from __future__ import annotations

import ast
import hashlib
import importlib.metadata
import os
import platform
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from pufferflow._files import sha256

PACKAGES = ("numpy", "scipy", "numba", "pandas", "matplotlib", "snakemake")
DATA_SUFFIXES = {".json", ".csv", ".xz", ".j2", ".js"}


@cache
def _module_file(name: str) -> Path | None:
    try:
        spec = find_spec(name)
    except ModuleNotFoundError:
        return None
    return Path(spec.origin) if spec and spec.origin else None


@cache
def _imports(name: str) -> frozenset[str]:
    """Modules of this package that module ``name`` imports anywhere in its text."""
    path = _module_file(name)
    if path is None:
        return frozenset()
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return frozenset(f for f in found if f.split(".")[0] == "pufferflow" and _module_file(f) is not None)


def source_files(*modules: str) -> list[Path]:
    """All files of this package that ``modules`` depend on.

    These are the modules they import, directly or not, and the data files beside those. A package that
    is only passed through (``pufferflow`` in ``pufferflow.markov``) does not count.
    """
    seen: set[str] = set()
    pending = list(modules)
    while pending:
        name = pending.pop()
        if name not in seen:
            seen.add(name)
            pending += _imports(name)
    paths = {path for name in seen if (path := _module_file(name)) is not None}
    for folder in {path.parent for path in paths}:
        for place in (folder, folder / "bundled"):
            paths |= {path for path in place.glob("*") if path.suffix in DATA_SUFFIXES}
    return sorted(paths)


def source_digest(*modules: str, also: Iterable[Path] = ()) -> str:
    """Short digest of :func:`source_files` and the files ``also``: changes when one of them does."""
    digest = hashlib.sha256()
    for path in [*source_files(*modules), *also]:
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


def reproducible_provenance(samples: Mapping[str, Path]) -> dict[str, Any]:
    """What a second run shares: versions, and digests of the package and of the samples."""
    import pufferflow

    package = Path(pufferflow.__file__).parent
    everything = hashlib.sha256()
    for path in sorted(package.rglob("*.py")):
        everything.update(path.relative_to(package).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return {
        "pufferflow": pufferflow.__version__,
        "package_sha256": everything.hexdigest(),
        "python": platform.python_version(),
        "packages": {name: importlib.metadata.version(name) for name in PACKAGES},
        "samples_sha256": {name: sha256(path.read_bytes()) for name, path in samples.items()},
    }


def full_provenance(
    samples: Mapping[str, Path], settings: Mapping[str, Any], results: Iterable[Path]
) -> dict[str, Any]:
    """:func:`reproducible_provenance` plus this run: time, machine, and the SHA-256 of every result."""
    return {
        **reproducible_provenance(samples),
        "settings": dict(settings),
        "run": {
            "finished": datetime.now(UTC).isoformat(timespec="seconds"),
            "machine": platform.machine(),
            "system": f"{platform.system()} {platform.release()}",
            "cores": os.cpu_count(),
        },
        "results_sha256": {path.as_posix(): sha256(path.read_bytes()) for path in sorted(results)},
    }
