"""Compiling kernels, with a cache that cannot go stale.

Numba keeps compiled code per file, so a change in one file leaves stale code of its callers behind. All
kernels live in modules whose names end in ``_kernels.py``; the cache folder carries a digest of those sources,
of the constants they share (``_rounding.py``), and of numba's version. Numba also has a cache for each folder the
sources lie in; here all copies of the same sources share one, so that a second checkout compiles nothing.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
import numpy as np
from numpy.typing import NDArray

_Function = TypeVar("_Function", bound=Callable[..., Any])


def _sources_digest() -> str:
    digest = hashlib.sha256(numba.__version__.encode())
    package = Path(__file__).parent
    for source in sorted([*package.rglob("*_kernels.py"), *package.glob("_rounding.py")]):
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


class KernelLocator:
    """Finds machine code by the name of a kernel's module and its text, wherever that lies.

    The interface that numba asks of a cache locator (its setting CACHE_LOCATOR_CLASSES; a numba too old to have it
    keeps a cache for each folder).
    """

    def __init__(self, module: str, file: str, line: int) -> None:
        self._folder = Path(_CACHE_FOLDER) / module
        self._py_file = file  # numba quotes it in its warnings
        self._line = line

    @classmethod
    def from_function(cls, function: Callable[..., Any], file: str) -> KernelLocator | None:
        """Return the locator of a function defined in ``file``; None where that is no file but within an archive."""
        if not Path(file).is_file():
            return None
        return cls(function.__module__, file, function.__code__.co_firstlineno)

    def ensure_cache_path(self) -> None:
        """Make the folder."""
        self._folder.mkdir(parents=True, exist_ok=True)

    def get_cache_path(self) -> str:
        """Return the folder."""
        return str(self._folder)

    def get_source_stamp(self) -> bytes:
        """Return what changes with the source."""
        return _digest_of(self._py_file)

    def get_disambiguator(self) -> str:
        """Return what tells functions of one name apart."""
        return str(self._line)


@cache
def _digest_of(file: str) -> bytes:
    return hashlib.sha256(Path(file).read_bytes()).digest()


def kernel(function: _Function) -> _Function:
    """Compile ``function`` on first use and cache the machine code."""
    settings: Any = numba.config
    locators = f"{__name__}.{KernelLocator.__name__}, UserWideCacheLocator, ZipCacheLocator"
    ours = {"CACHE_DIR": _CACHE_FOLDER, "CACHE_LOCATOR_CLASSES": locators}
    before = {name: getattr(settings, name, "") for name in ours}
    vars(settings).update(ours)
    try:
        compiled: Any = numba.njit(cache=True, error_model="numpy", nogil=True)(function)
    finally:
        vars(settings).update(before)
    return cast(_Function, compiled)


def constant(array: NDArray[Any]) -> NDArray[Any]:
    """Return a contiguous view that cannot be written to.

    Numba compiles a kernel apart for arrays of another layout and for those it may write to; what goes in comes
    through here, so that one version serves all callers.
    """
    view = np.ascontiguousarray(array).view()
    view.flags.writeable = False
    return view


def most_threads() -> int:
    """Threads that kernels may run on at a time: numba's setting NUMBA_NUM_THREADS, the cores by default."""
    settings: Any = numba.config
    return int(settings.NUMBA_NUM_THREADS)
