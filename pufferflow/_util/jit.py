"""Kernels: interpreted while they have little to do, then compiled; the cache is never stale.

Numba keeps compiled code per file, so a change in one file leaves stale code of its callers behind.
All kernels live in modules whose names end in ``_kernels.py``; the cache folder is named by a
digest of those sources, of numba's version, and of the constants that kernels share
(``_util/rounding.py``).

Compiling takes seconds the first time, and numba itself a third of one to import. So a kernel that
declares how many steps a call takes is interpreted until these add up, unless its machine code is
in the cache. Both ways give the same bits: the same operations of IEEE arithmetic in the same
order, and the same C library.

Signals wait until a kernel returns. So a call takes a second at most, and what takes longer is a
loop in Python around calls that go on where the last one ended.
"""

from __future__ import annotations

import hashlib
import os
import sys
import tempfile
import threading
from collections.abc import Callable
from functools import cache, cached_property, update_wrapper
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

_Function = TypeVar("_Function", bound=Callable[..., Any])

PATIENCE = 4 * 10**6
"""Steps for which a kernel is interpreted: about two seconds, less than most take to compile.

If its machine code is in the cache, a tenth of it for all of them together, less than numba takes
to start.
"""


class _Thread(threading.local):
    interprets = False


_thread = _Thread()
_compiling = threading.RLock()


def _sources_digest() -> str:
    digest = hashlib.sha256(version("numba").encode())
    package = Path(__file__).parents[1]
    for source in sorted([*package.rglob("*_kernels.py"), *package.glob("_util/rounding.py")]):
        digest.update(source.read_bytes())
    return digest.hexdigest()[:16]


def _cache_folder() -> str:
    base = os.environ.get("NUMBA_CACHE_DIR") or os.environ.get("XDG_CACHE_HOME")
    folder = Path(base or Path.home() / ".cache") / "pufferflow" / _sources_digest()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError:
        # no writable home: a private folder (never a shared, guessable one: the cache holds code)
        return tempfile.mkdtemp(prefix="pufferflow-")
    return str(folder)


@cache
def _cache() -> str:
    return _cache_folder()


class KernelLocator:
    """Where numba keeps the machine code of a function: by module and line, for all copies alike.

    The interface of its setting CACHE_LOCATOR_CLASSES. The stamp is constant, as the name of the
    folder changes with the sources; numba's own locators have a folder for each place they lie in.
    """

    def __init__(self, function: Callable[..., Any], file: str) -> None:
        self._function, self._py_file = function, file  # numba quotes the file in its warnings

    @classmethod
    def from_function(cls, function: Callable[..., Any], file: str) -> KernelLocator:
        """Return the locator of a function defined in ``file``."""
        return cls(function, file)

    def get_cache_path(self) -> str:
        """Return the folder."""
        return f"{_cache()}/{self._function.__module__}"

    def ensure_cache_path(self) -> None:
        """Make the folder."""
        os.makedirs(self.get_cache_path(), exist_ok=True)

    def get_source_stamp(self) -> str:
        """Return what changes with the source: nothing."""
        return ""

    def get_disambiguator(self) -> str:
        """Return what distinguishes functions of one name."""
        return str(self._function.__code__.co_firstlineno)


class Kernel:
    """A function of numbers and arrays that numba can compile.

    Parameters
    ----------
    function : callable
    steps : callable, optional
        Of the arguments: about how many innermost steps a call takes. None: it is always compiled.
    """

    taken_by_all = 0

    def __init__(self, function: Callable[..., Any], steps: Callable[..., int] | None) -> None:
        update_wrapper(self, function)
        self._name = function.__name__
        self._function, self._steps = function, steps
        self._taken = 0
        self._compiled: Any = None

    def __call__(self, *arguments: Any) -> Any:
        """Interpret or compile."""
        if _thread.interprets:  # another kernel, this one within it
            return self._function(*arguments)
        if self._compiled is None and self._steps is not None:
            steps = self._steps(*arguments)
            self._taken += steps
            Kernel.taken_by_all += steps
            if self._has_little_to_do():
                return self._interpreted(*arguments)
        return (self._compiled or self.compiled)(*arguments)

    def _has_little_to_do(self) -> bool:
        if self._is_cached:
            return "numba" not in sys.modules and Kernel.taken_by_all <= PATIENCE // 10
        return self._taken <= PATIENCE

    def _interpreted(self, *arguments: Any) -> Any:
        _thread.interprets = True
        try:
            with np.errstate(all="ignore"):
                return self._function(*arguments)
        except (ArithmeticError, ValueError):  # of Python, where machine code goes on with ∞ or NaN
            pass
        finally:
            _thread.interprets = False
        return self.compiled(*arguments)

    @cached_property
    def _is_cached(self) -> bool:
        python = "py{}{}".format(*sys.version_info)
        return any(Path(_cache(), self.__module__).glob(f"*.{self._name}-*.{python}*.nbi"))

    @property
    def compiled(self) -> Any:
        """What numba makes of it: on the first call it is compiled, or taken from the cache."""
        with _compiling:
            if self._compiled is None:
                self._compiled = _compiled(self._function)
        return self._compiled

    @property
    def _numba_type_(self) -> Any:  # numba asks for it where a kernel is called within another one
        return self.compiled._numba_type_


def _compiled(function: Callable[..., Any]) -> Any:
    import numba

    settings: Any = numba.config
    locator = f"{__name__}.{KernelLocator.__name__}"
    ours = {"CACHE_DIR": _cache(), "CACHE_LOCATOR_CLASSES": locator}
    before = {name: getattr(settings, name, "") for name in ours}
    vars(settings).update(ours)
    try:
        return numba.njit(cache=True, error_model="numpy", nogil=True)(function)
    finally:
        vars(settings).update(before)


@overload
def kernel(function: _Function) -> _Function: ...
@overload
def kernel(*, steps: Callable[..., int]) -> Callable[[_Function], _Function]: ...
def kernel(function: Any = None, *, steps: Callable[..., int] | None = None) -> Any:
    """Make a :class:`Kernel` of ``function``, or of what is decorated."""
    if function is None:
        return lambda function: Kernel(function, steps)
    return Kernel(function, steps)


def compile_at_once() -> None:
    """From now on interpret nothing: to measure how long compiled code takes."""
    global PATIENCE
    PATIENCE = 0


def constant(array: NDArray[Any]) -> NDArray[Any]:
    """Return a contiguous view that cannot be written to.

    Numba compiles a kernel anew for arrays of another layout and for writable ones; what goes in
    comes through here, so that one version serves all callers.
    """
    view = np.ascontiguousarray(array).view()
    view.flags.writeable = False
    return view


def most_threads() -> int:
    """Threads that kernels may use: numba's NUMBA_NUM_THREADS, the cores by default."""
    import numba

    settings: Any = numba.config
    return int(settings.NUMBA_NUM_THREADS)
