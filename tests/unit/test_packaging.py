"""What is written twice about the package agrees, and what others read by convention is there."""

import ast
import re
import subprocess
import sys
import tomllib
import zipfile
from importlib.metadata import packages_distributions
from inspect import ismodule

import pytest
import yaml
from source_trees import PACKAGE, imports, tree

import pufferflow as pf
from pufferflow._util.optional import EXTRAS

ROOT = PACKAGE.parent
JOBS = ("figures", "publish", "check", "workflow")
"""Extras that the jobs of the pipeline use."""
BROUGHT = {"snakemake", "markupsafe"}
"""Imports that are there undeclared: what runs a script, the text type of jinja2."""


def text(name):
    return (ROOT / name).read_text(encoding="utf-8")


PROJECT = tomllib.loads(text("pyproject.toml"))["project"]


def names_of(requirements):
    """Names of requirements, those of Snakemake and of extras of this package aside."""
    names = {re.match(r"[\w-]+", requirement)[0] for requirement in requirements}
    return {name for name in names if not name.startswith(("snakemake", "pufferflow"))}


@pytest.mark.xdist_group("sources")
def test_every_import_is_a_declared_dependency():
    files = [path for room in ("pufferflow", "workflow") for path in (ROOT / room).rglob("*.py")]
    tops = {name.partition(".")[0] for path in files for name in imports(path)} | {*EXTRAS}
    known, ours = packages_distributions(), {"pufferflow", "reproduction"}
    used = tops - ours - BROUGHT - set(sys.stdlib_module_names)
    names = {known[name][0].lower().replace("_", "-") for name in used}
    needs = [need for job in JOBS for need in PROJECT["optional-dependencies"][job]]
    # tabulate is used by pandas, for Markdown
    assert names | {"tabulate"} == names_of([*PROJECT["dependencies"], *needs])


def test_the_list_of_public_names_is_what_can_be_used():
    """What type checkers see is what ``dir`` and ``import *`` give, and what first use finds."""
    nodes = tree(PACKAGE / "__init__.pyi").body
    lists = [node.names for node in nodes if isinstance(node, ast.ImportFrom)]
    names = [alias.name for aliases in lists for alias in aliases]
    rooms = [name for name in names if ismodule(getattr(pf, name))]
    assert len(names) == len(set(names)) <= 36 + len(rooms)
    assert len(rooms) == 10
    assert sorted(names) == sorted(pf.__all__) == sorted(dir(pf))
    assert None not in [getattr(pf, name) for name in names]


def test_the_wheel_ships_the_list_of_names(tmp_path):
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(build, cwd=ROOT, capture_output=True, check=True)
    (wheel,) = tmp_path.glob("*.whl")
    shipped = set(zipfile.ZipFile(wheel).namelist())
    assert {"pufferflow/__init__.pyi", "pufferflow/py.typed"} <= shipped


def test_versions_agree():
    """Of the citation, the list of changes, the catalogue of workflows, continuous integration."""
    citation = yaml.safe_load(text("CITATION.cff"))
    assert (citation["version"], citation["license"]) == (PROJECT["version"], PROJECT["license"])
    usage = yaml.safe_load(text(".snakemake-workflow-catalog.yml"))["usage"]
    assert (ROOT / "workflow/envs").is_dir() == usage["software-stack-deployment"]["conda"]
    first = re.search(r"^## (.+)$", text("CHANGELOG.md"), re.M)[1]
    assert first == "Unreleased" or first.startswith(PROJECT["version"])
    flow = yaml.safe_load(text(".github/workflows/ci.yml"))["jobs"]["all"]
    assert ".ci/run" in [step.get("run") for step in flow["steps"]]
    assert f">={flow['strategy']['matrix']['python'][0]}" == PROJECT["requires-python"]
