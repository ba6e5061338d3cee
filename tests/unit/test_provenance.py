import sys

import pytest

from pufferflow.reporting import provenance
from pufferflow.reporting.provenance import source_digest, source_files


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A stand-in for the package: a imports b and, through a package, c; d stands alone."""
    root = tmp_path / "pufferflow"
    (root / "part" / "bundled").mkdir(parents=True)
    (root / "__init__.py").write_text("from pufferflow import d\n")
    (root / "part" / "__init__.py").write_text("")
    (root / "a.py").write_text("import numpy\nfrom pufferflow.b import x\nfrom pufferflow.part import c\n")
    (root / "b.py").write_text("x = 1\n")
    (root / "part" / "c.py").write_text("y = 2\n")
    (root / "part" / "bundled" / "data.csv").write_text("1\n")
    (root / "d.py").write_text("z = 3\n")

    def find(name):
        path = tmp_path.joinpath(*name.split("."))
        for candidate in (path.with_suffix(".py"), path / "__init__.py"):
            if candidate.is_file():
                return type("Spec", (), {"origin": str(candidate)})
        return None

    monkeypatch.setattr(provenance, "find_spec", find)
    for function in (provenance._module_file, provenance._imports):
        function.cache_clear()
    yield root
    monkeypatch.undo()
    for function in (provenance._module_file, provenance._imports):
        function.cache_clear()


def digest():
    provenance._imports.cache_clear()
    return source_digest("pufferflow.a")


def test_files_behind_a_module(package):
    names = {path.relative_to(package).as_posix() for path in source_files("pufferflow.a")}
    assert names == {"a.py", "b.py", "part/__init__.py", "part/c.py", "part/bundled/data.csv"}


def test_digest_changes_with_what_is_imported_and_with_nothing_else(package):
    before = digest()
    (package / "d.py").write_text("z = 4\n")
    assert digest() == before
    for path in ("a.py", "b.py", "part/c.py", "part/bundled/data.csv"):
        with (package / path).open("a") as stream:
            stream.write("# edited\n" if path.endswith("py") else "2\n")
        after = digest()
        assert after != before
        before = after


def test_scales_depend_on_mechanisms_and_figures_do_not():
    assert "pufferflow" in sys.modules
    scales = {path.name for path in source_files("pufferflow.experiments.histograms")}
    assert {"mqm_exact.py", "_kernels.py", "tables.py", "search.py"} <= scales
    figures = {path.name for path in source_files("pufferflow.reporting.figures")}
    assert "mqm_exact.py" not in figures
