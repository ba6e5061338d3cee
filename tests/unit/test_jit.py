"""The cache of compiled kernels follows the sources; small work compiles nothing."""

import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import numba
import pytest
from forks import in_a_fork

from pufferflow._util import jit as _jit


@pytest.mark.parametrize("name", ["influence/_kernels.py", "_util/rounding.py"])
def test_a_changed_kernel_gives_another_folder(name, tmp_path, monkeypatch):
    monkeypatch.setattr(_jit, "__file__", str(tmp_path / "_util/jit.py"))
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "cache"))
    source, folder = tmp_path / name, _jit.cache_folder.__wrapped__
    source.parent.mkdir()
    folders = []
    versions = [("1", "0.60"), ("2", "0.60"), ("1", "0.61"), ("1", "0.60")]
    for text, numba_version in ((f"one = {number}", version) for number, version in versions):
        source.write_text(text)
        monkeypatch.setattr(_jit, "version", lambda name, number=numba_version: number)
        folders.append(Path(folder()))
    assert len(set(folders)) == 3
    assert folders[0] == folders[3]
    assert {folder.parent for folder in folders} == {tmp_path / "cache" / "pufferflow"}
    assert all(folder.is_dir() for folder in folders)


def test_the_cache_is_in_the_users_folder_or_a_private_one(tmp_path, monkeypatch):
    folder = _jit.cache_folder.__wrapped__
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert Path(folder()).is_relative_to(tmp_path / "xdg")
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setattr(Path, "home", lambda: tmp_path / "home")
    assert Path(folder()).is_relative_to(tmp_path / "home" / ".cache")
    (tmp_path / "file").touch()
    # no folder can be made below a file
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "file"))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    private = Path(folder())
    assert private.parent == tmp_path
    assert private.stat().st_mode & 0o077 == 0


KERNELS = """
from pufferflow._util.jit import kernel

@kernel()
def twice(x):
    return 2 * x

found = [twice(4), len(twice.compiled.stats.cache_hits)]
"""


def test_copies_of_a_kernel_share_its_machine_code(tmp_path):
    """One folder compiles it, the other finds it."""

    def run(folder):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "_kernels.py").write_text(KERNELS)

        def found():
            os.environ["NUMBA_CACHE_DIR"] = str(tmp_path / "cache")
            _jit.cache_folder.cache_clear()
            sys.path.insert(0, str(tmp_path / folder))
            return import_module("_kernels").found

        return in_a_fork(found)

    assert run("one") == [8, 0]
    assert run("other") == [8, 1]


FIRST = """
import sys
import numpy as np
import pufferflow as pf

def scales():
    P = np.array([[0.9, 0.1, 0], [0.2, 0.5, 0.3], [0.1, 0.2, 0.7]])
    families = [pf.MarkovChain(P, start) for start in ([1, 0, 0], "stationary", "any")]
    return [f(family, 12, 1.0).scale for family in families for f in (pf.mqm_exact, pf.leakage)]
"""


def test_a_first_small_scale_compiles_nothing_and_has_the_same_bits(tmp_path, monkeypatch):
    """The first scale after installing took 15 s."""
    command = [sys.executable, "-c", FIRST + "print(scales(), 'numba' in sys.modules)"]
    env = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    made = subprocess.run(command, env=env, capture_output=True, text=True, check=True).stdout
    monkeypatch.setattr(_jit, "PATIENCE", 0)
    namespace, before = {}, (numba.config.CACHE_DIR, numba.config.CACHE_LOCATOR_CLASSES)
    exec(FIRST, namespace)
    assert made == f"{namespace['scales']()} False\n"
    # the settings of others
    assert before == (numba.config.CACHE_DIR, numba.config.CACHE_LOCATOR_CLASSES)


def test_without_machine_code_losses_have_the_same_bits():
    code = """
import pufferflow as pf
for start, query in (("any", pf.audit.CountQuery({1})), ([1, 0], pf.audit.HistogramQuery())):
    chain = pf.MarkovChain([[0.9, 0.1], [0.9, 0.1]], start)
    print(pf.privacy_loss(chain, 4, 2.0, query), pf.audit.chain_sensitivity(chain, 4, [0, 1]))
    print(pf.lower_bound(chain, 4, 1.0).scale, pf.leakage(chain, 4, 1.0).scale)
"""
    command, found = [sys.executable, "-c", code], set()
    for off in ("0", "1"):
        env = {**os.environ, "NUMBA_DISABLE_JIT": off}
        found.add(
            subprocess.run(command, env=env, capture_output=True, text=True, check=True).stdout
        )
    assert len(found) == 1


@pytest.mark.parametrize(
    ("cached", "loaded", "most"), [(False, True, 4000), (True, False, 100), (True, True, 0)]
)
def test_a_kernel_is_compiled_once_it_has_much_to_do(cached, loaded, most, monkeypatch):
    """Machine code at hand is used once numba is loaded."""
    monkeypatch.setattr(_jit.Kernel, "_is_cached", cached)
    monkeypatch.setattr(_jit, "PATIENCE", 4000)
    monkeypatch.setattr(_jit, "_compiled", lambda function, inner: lambda x, y: "compiled")
    if not loaded:
        monkeypatch.delitem(sys.modules, "numba")
    for steps in (1, 100, 101, 4000, 4001):
        kernel = _jit.Kernel(lambda x, y: x / y, lambda x, y: x)
        assert kernel(steps, 1) == ("compiled" if steps > most else steps)
        assert kernel(0, 0) == "compiled"  # where Python raises, machine code goes on


@pytest.mark.parametrize(("cached", "lines"), [(False, 1), (True, 0)])
def test_a_first_compilation_is_announced_once_on_a_terminal(cached, lines, monkeypatch, capsys):
    monkeypatch.setattr(_jit.Kernel, "_is_cached", cached)
    monkeypatch.setattr(_jit, "_compiled", lambda function, inner: function)
    for terminal in (False, True):
        monkeypatch.setattr(sys.stderr, "isatty", lambda terminal=terminal: terminal)
        _jit._announce.cache_clear()
        assert [_jit.Kernel(abs, None)(-number) for number in (1, 2)] == [1, 2]
        assert capsys.readouterr().err.count("compiles for some seconds") == lines * terminal
