"""What is written twice about the package agrees: its dependencies; its public names are written
once, and shipped.
"""

import ast
import re
import subprocess
import sys
import tomllib
import zipfile
from importlib.metadata import packages_distributions
from inspect import ismodule
from pathlib import Path

import pytest
from source_trees import tree

import pufferflow as pf
from pufferflow._util.optional import EXTRAS

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
JOBS = ("figures", "publish", "check", "workflow")
"""Extras that the jobs of the pipeline use."""
BROUGHT = {"snakemake", "markupsafe"}
"""Imports that are there undeclared: what runs a script, the text type of jinja2."""


def names_of(requirements):
    """Names of requirements, those of Snakemake and of extras of this package aside."""
    names = {re.match(r"[\w-]+", requirement)[0] for requirement in requirements}
    return {name for name in names if not name.startswith(("snakemake", "pufferflow"))}


def imported(folder):
    """Top-level names of what is imported anywhere below ``folder``, the standard library aside."""
    for path in (ROOT / folder).rglob("*.py"):
        pending = [tree(path)]
        while pending:
            node = pending.pop()
            for part in ("body", "orelse", "finalbody", "handlers", "cases"):  # statements alone
                pending += getattr(node, part, [])
            if isinstance(node, ast.Import):
                yield from (alias.name.partition(".")[0] for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                yield node.module.partition(".")[0]


@pytest.mark.xdist_group("sources")
def test_every_import_is_a_declared_dependency():
    ours = {"pufferflow", "reproduction"}
    used = (
        {*imported("pufferflow"), *imported("workflow"), *EXTRAS}
        - ours
        - set(sys.stdlib_module_names)
    )
    known = packages_distributions()
    names = {known[name][0].lower().replace("_", "-") for name in used - BROUGHT}
    extras = PROJECT["optional-dependencies"]
    names.add("tabulate")  # by pandas, for Markdown
    assert names == names_of(
        [*PROJECT["dependencies"], *(need for name in JOBS for need in extras[name])]
    )


def test_the_list_of_public_names_is_what_can_be_used():
    """What type checkers see is what ``dir`` and ``import *`` give, and what first use finds."""
    listed = tree(Path(pf.__file__).with_suffix(".pyi"))
    names = [
        alias.name
        for node in listed.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    ]
    rooms = [name for name in names if ismodule(getattr(pf, name))]
    assert len(names) == len(set(names)) <= 36 + len(rooms)
    assert len(rooms) == 10
    assert sorted(names) == sorted(pf.__all__) == sorted(dir(pf))
    for name in names:
        assert getattr(pf, name) is not None


def test_the_front_door_is_cheap():
    """Without the scientific stack: that is imported with the first name that needs it."""
    code = "import sys, pufferflow; print(*sys.modules)"
    command = [sys.executable, "-c", code]
    loaded = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    heavy = {"numpy", "scipy", "numba", "pandas", "pyarrow"}
    assert {name.partition(".")[0] for name in loaded} & heavy == set()
    assert [name for name in loaded if name.startswith("pufferflow")] == ["pufferflow"]


def test_the_wheel_ships_the_list_of_names(tmp_path):
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(build, cwd=ROOT, capture_output=True, check=True)
    (wheel,) = tmp_path.glob("*.whl")
    assert {"pufferflow/__init__.pyi", "pufferflow/py.typed"} <= set(
        zipfile.ZipFile(wheel).namelist()
    )
