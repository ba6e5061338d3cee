"""What is written twice about the package agrees: its dependencies, and its public names."""

import ast
import re
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

import yaml

import pufferflow as pf

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
CONDA_NAMES = {"matplotlib": "matplotlib-base"}
BROUGHT = {"snakemake", "markupsafe"}
"""Imports that are there without being declared: what runs a script, and the text type of jinja2."""


def bounds(requirements):
    """The lower bound of each requirement, by name as on conda-forge; of snakemake's own there is no need in a job."""
    found = {}
    for requirement in requirements:
        name, bound = re.fullmatch(r"([\w-]+)(?:\[\w+\])?\s*(.*)", requirement).groups()
        if not name.startswith("snakemake"):
            found[CONDA_NAMES.get(name, name)] = bound
    return found


def conda_environment():
    *conda, pip = yaml.safe_load((ROOT / "workflow/envs/pufferflow.yaml").read_text(encoding="utf-8"))["dependencies"]
    return bounds([*conda, *pip["pip"]])


def imported(folder):
    """Top-level names of what is imported anywhere below ``folder``, the standard library aside."""
    for path in (ROOT / folder).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                yield from (alias.name.partition(".")[0] for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                yield node.module.partition(".")[0]


def test_conda_environment_has_every_dependency():
    declared = bounds([*PROJECT["dependencies"], *PROJECT["optional-dependencies"]["workflow"]])
    environment = conda_environment()
    assert environment.pop("python") == PROJECT["requires-python"]
    environment.pop("pip")
    assert environment == declared


def test_every_import_is_a_declared_dependency():
    ours = {"pufferflow", *(path.stem for path in (ROOT / "workflow/scripts").glob("*.py"))}
    used = {*imported("pufferflow"), *imported("workflow/scripts")} - ours - set(sys.stdlib_module_names)
    known = packages_distributions()
    names = {known[name][0].lower().replace("_", "-") for name in used - BROUGHT}
    assert {CONDA_NAMES.get(name, name) for name in names} == set(conda_environment()) - {"python", "pip"}


def test_the_three_lists_of_public_names_agree():
    """What type checkers see, what ``import *`` gives and what is found on first use."""
    tree = ast.parse(Path(pf.__file__).read_text(encoding="utf-8"))
    (checked,) = (node for node in tree.body if isinstance(node, ast.If) and node.test.id == "TYPE_CHECKING")
    homes = {
        node.module.removeprefix("pufferflow."): tuple(alias.name for alias in node.names) for node in checked.body
    }
    assert homes == pf._HOMES
    names = [name for names in homes.values() for name in names]
    assert len(names) == len(set(names))
    assert sorted(names) == sorted(pf.__all__)
    for name in names:
        assert getattr(pf, name) is not None
