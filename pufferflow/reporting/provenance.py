"""Where the results come from: versions, digests, and the machine."""

from __future__ import annotations

import hashlib
import importlib.metadata
import os
import platform
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pufferflow._files import sha256

PACKAGES = ("numpy", "scipy", "numba", "pandas", "matplotlib", "snakemake")


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
