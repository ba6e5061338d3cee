"""What is written twice about the package agrees, and what others read by convention is there."""

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


def test_what_others_read_is_as_they_ask():
    """The citation (of CFF 1.2.0 what is used) and the entry in Snakemake's catalogue."""
    citation = yaml.safe_load(text("CITATION.cff"))
    assert (citation["version"], citation["license"]) == (PROJECT["version"], PROJECT["license"])
    assert (citation["cff-version"], citation["type"]) == ("1.2.0", "software")
    assert all(isinstance(citation[key], str) for key in ("message", "title", "abstract"))
    person, entity = {"family-names", "given-names", "orcid", "affiliation"}, {"name", "website"}
    for work in (citation, *citation["references"]):
        assert {"type", "title", "authors"} <= set(work)
        assert all(set(one) <= person or set(one) <= entity for one in work["authors"])
        assert re.fullmatch(r"10\.\d{4,9}(\.\d+)?/\S+", work.get("doi", "10.1145/none"))
    usage = yaml.safe_load(text(".snakemake-workflow-catalog.yml"))["usage"]
    assert all(usage["mandatory-flags"][key].strip() for key in ("flags", "desc"))
    assert set(usage["software-stack-deployment"]) <= {"conda", "apptainer", "apptainer+conda"}
    assert (ROOT / "workflow/envs").is_dir() == usage["software-stack-deployment"]["conda"]
    assert 'include: "workflow/Snakefile"' in text("Snakefile")
    assert all((ROOT / name).is_file() for name in ("config/README.md", "config/config.yaml"))


PAGES = ["CONTRIBUTING.md", "README.md", "config/README.md", "results/README.md"]
PAGES += [f"docs/{path.relative_to(ROOT / 'docs')}" for path in (ROOT / "docs").rglob("*.md")]


@pytest.mark.parametrize("page", sorted(page for page in PAGES if "_build" not in page))
def test_files_that_pages_name_exist(page):
    for name in re.findall(r"`((?:pufferflow|workflow|tests|config|docs)/[\w./-]+)`", text(page)):
        assert Path(ROOT / name).exists(), f"{page} names {name}"


def test_versions_agree():
    """Of the list of changes; of continuous integration, with every Python that is promised."""
    first = re.search(r"^## (.+)$", text("CHANGELOG.md"), re.M)[1]
    assert first == "Unreleased" or first.startswith(PROJECT["version"])
    flow = yaml.safe_load(text(".github/workflows/ci.yml"))["jobs"]["all"]
    assert ".ci/run" in [step.get("run") for step in flow["steps"]]
    assert f">={flow['strategy']['matrix']['python'][0]}" == PROJECT["requires-python"]
