"""Compiling kernels, with a cache that cannot go stale.

Numba keeps compiled code per file, so a change in one file leaves stale code of its callers behind. All
kernels live in modules named ``_kernels.py``; the cache folder carries a digest of those sources and of
numba's version.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

import numba

_Function = TypeVar("_Function", bound=Callable[..., Any])


def _sources_digest() -> str:
    digest = hashlib.sha256(numba.__version__.encode())
    for source in sorted(Path(__file__).parent.rglob("_kernels.py")):
        digest.update(source.read_bytes())
    return digest.hexdigest()[:16]


def _cache_folder() -> str:
    base = os.environ.get("NUMBA_CACHE_DIR") or os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    folder = Path(base) / "pufferflow" / _sources_digest()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError:
        # no writable home: a private folder (never a shared, guessable one: the cache holds code)
        return tempfile.mkdtemp(prefix="pufferflow-")
    return str(folder)


_CACHE_FOLDER = _cache_folder()


def kernel(function: _Function) -> _Function:
    """Compile ``function`` on first use and cache the machine code."""
    settings: Any = numba.config
    before = settings.CACHE_DIR
    settings.CACHE_DIR = _CACHE_FOLDER
    try:
        compiled: Any = numba.njit(cache=True, error_model="numpy", nogil=True)(function)
    finally:
        settings.CACHE_DIR = before
    return cast(_Function, compiled)
