"""Kernels: interpreted for little work, otherwise compiled; the cache is never stale.

Numba keeps compiled code per file, so a change in one file leaves stale code of its callers.
All kernels live in modules whose names end in ``_kernels.py``; the cache folder is named by a
digest of those sources, of numba's version, and of the constants that kernels share
(``_util/rounding.py``).

Compiling takes seconds the first time, and numba itself a third of one to import. So a kernel that
declares how many steps a call takes is interpreted until these add up, or until numba is loaded if
its machine code is in the cache. Both ways give the same bits: the same operations of IEEE
arithmetic in the same order, and the same C library.

Signals wait until a kernel returns. So a call takes at most a second, and longer computations are
Python loops over calls that continue where the last one ended.
"""

import hashlib
import os
import sys
import tempfile
import threading
from collections.abc import Callable
from functools import cache, cached_property, update_wrapper
from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

_Function = TypeVar("_Function", bound=Callable[..., Any])

PATIENCE = 4 * 10**6
"""Steps for which a kernel is interpreted: about two seconds, less than most compilations.

If its machine code is cached it is a fortieth of this, less than numba takes to start. With −1
everything is compiled at once.
"""

_interpreting = threading.local()
_compiling = threading.Lock()


@cache
def cache_folder() -> str:
    """Return the folder of machine code of these sources, made if necessary."""
    digest = hashlib.sha256(version("numba").encode())
    package = Path(__file__).parents[1]
    for source in sorted([*package.rglob("*_kernels.py"), *package.glob("_util/rounding.py")]):
        digest.update(source.read_bytes())
    base = os.environ.get("NUMBA_CACHE_DIR") or os.environ.get("XDG_CACHE_HOME")
    folder = Path(base or Path.home() / ".cache") / "pufferflow" / digest.hexdigest()[:16]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return str(folder)
    except OSError:
        # no writable home: a private folder (never a shared, guessable one: the cache holds code)
        return tempfile.mkdtemp(prefix="pufferflow-")


class KernelLocator:
    """The location of machine code for numba: by module and line, for all copies of the sources.

    Named in its setting CACHE_LOCATOR_CLASSES; its own locators have a folder for every copy.
    """

    @staticmethod
    def from_function(function: Callable[..., Any], file: str) -> SimpleNamespace:
        """Return numba's locator of a function defined in ``file``."""
        folder = f"{cache_folder()}/{function.__module__}"
        return SimpleNamespace(
            _py_file=file,  # for warnings
            get_cache_path=lambda: folder,
            ensure_cache_path=lambda: os.makedirs(folder, exist_ok=True),
            get_source_stamp=lambda: "",  # another source has another folder
            get_disambiguator=lambda: str(function.__code__.co_firstlineno),
        )


class Kernel:
    """A function of numbers and arrays that numba can compile.

    ``steps`` of the arguments is the approximate number of innermost steps of a call; without it
    the function is always compiled. An ``inner`` one is called by other kernels alone: compiling
    takes a fifth less time without a wrapper.
    """

    def __init__(
        self, function: Callable[..., Any], steps: Callable[..., int] | None, inner: bool = False
    ) -> None:
        update_wrapper(self, function)
        self._function, self._steps, self._inner = function, steps, inner
        self._taken = 0

    def __call__(self, *arguments: Any) -> Any:
        """Interpret or compile."""
        if self._inner or getattr(_interpreting, "now", False):  # another kernel, this one in it
            return self._function(*arguments)
        if "compiled" not in vars(self) and self._is_little(arguments):
            _interpreting.now = True
            try:
                with np.errstate(all="ignore"):
                    return self._function(*arguments)
            except (ArithmeticError, ValueError):  # machine code goes on with ∞ or NaN
                pass
            finally:
                _interpreting.now = False
        return self.compiled(*arguments)

    def _is_little(self, arguments: tuple[Any, ...]) -> bool:
        if self._steps is None:
            return False
        self._taken += self._steps(*arguments)
        if self._is_cached:
            return "numba" not in sys.modules and self._taken <= PATIENCE // 40
        return self._taken <= PATIENCE

    @cached_property
    def _is_cached(self) -> bool:
        name = f"*.{self._function.__name__}-*.py{sys.version_info[0]}{sys.version_info[1]}*.nbi"
        return any(Path(cache_folder(), self.__module__).glob(name))

    @cached_property
    def compiled(self) -> Any:
        """The compiled function; on the first call it is compiled, or loaded from the cache."""
        if not self._is_cached:
            _announce()
        return _compiled(self._function, self._inner)

    @property
    def _numba_type_(self) -> Any:  # numba asks for it where a kernel is called within another one
        return self.compiled._numba_type_


@cache
def _announce() -> None:
    if sys.stderr.isatty():
        print("pufferflow: compiles for some seconds, once on a machine", file=sys.stderr)


def _compiled(function: Callable[..., Any], inner: bool) -> Any:
    import numba

    settings = vars(numba.config)
    locator = f"{__name__}.{KernelLocator.__name__}"
    ours = {"CACHE_DIR": cache_folder(), "CACHE_LOCATOR_CLASSES": locator}
    wrappers: Any = {"no_cpython_wrapper": inner, "no_cfunc_wrapper": inner}  # not in its stubs
    with _compiling:
        before = {name: settings.get(name, "") for name in ours}
        settings.update(ours)
        try:
            return numba.njit(cache=True, error_model="numpy", nogil=True, **wrappers)(function)
        finally:
            settings.update(before)


def kernel(
    *, steps: Callable[..., int] | None = None, inner: bool = False
) -> Callable[[_Function], _Function]:
    """Return a decorator that makes a :class:`Kernel` of a function."""
    return lambda function: cast(Any, Kernel(function, steps, inner))


def constant(array: NDArray[Any]) -> NDArray[Any]:
    """Return a read-only contiguous view.

    Numba compiles a kernel again for other layouts and for writable arrays; with these views one
    version serves all callers.
    """
    view = np.ascontiguousarray(array).view()
    view.flags.writeable = False
    return view


def most_threads() -> int:
    """Return the number of threads of kernels: numba's NUMBA_NUM_THREADS, by default the cores."""
    import numba

    return int(vars(numba.config)["NUMBA_NUM_THREADS"])
