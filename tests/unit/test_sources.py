"""What holds of all sources: data flows one way, little is loaded at once, functions are short;
what is written twice about the package agrees; phrases and identifiers that readers did not
understand stay out of all texts.
"""

import ast
import re
import subprocess
import sys
import tomllib
import zipfile
from functools import cache
from graphlib import TopologicalSorter
from importlib.metadata import packages_distributions
from inspect import ismodule
from pathlib import Path

import pytest
import yaml
from source_trees import PACKAGE, imports, modules, tree

import pufferflow as pf
from pufferflow._util import jit, rounding, types
from pufferflow._util.optional import EXTRAS

ROOT = PACKAGE.parent
SOURCES = [*PACKAGE.rglob("*.py"), *(ROOT / "workflow").rglob("*.py")]
FILES = [path for path in PACKAGE.rglob("*.py") if path.parent != PACKAGE or path.stem[0] != "_"]
GROUND = ("errors", "_util")
"""What anything may stand on."""

ORDER = (
    *GROUND,
    *("dp", "hmm", "records", "general"),
    *("models", "influence", "bounds", "audit", "data", "verify"),
    *("networks", "certificates", "mechanisms", "accounting"),
    *("drawing", "publish", "cli", "__main__"),
)


def tops(path):
    return {name.partition(".")[0] for name in imports(path)}


def room(path):
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def rooms(path):
    """Other rooms that a module imports from, inside functions and for types alone too."""
    ours = (name.split(".")[1] for name in imports(path) if name.startswith("pufferflow."))
    return {name for name in ours if not name.startswith("__")} - {room(path)}


def test_data_flows_one_way():
    """Few rooms know one another."""
    arrows = {(room(path), name) for path in FILES for name in rooms(path)}
    assert not [(one, other) for one, other in arrows if ORDER.index(other) > ORDER.index(one)]
    assert len(arrows) <= 90


def test_no_modules_import_one_another_in_a_circle():
    """Nor through others, nor inside functions; what is imported for types alone never runs."""
    files, graph = modules(PACKAGE), {}
    for name, path in files.items():
        wanted = imports(path, types=False)
        homes = (part if part in files else part.rpartition(".")[0] for part in wanted)
        graph[name] = {home for home in homes if home in files} - {name}
    assert len(graph) > 100
    assert sum(map(len, graph.values())) > 400
    TopologicalSorter(graph).prepare()  # raises CycleError, which names a circle


def test_functions_are_short():
    """At most 60 lines, without the docstring."""
    functions = {}
    for path in SOURCES:
        for node in ast.walk(tree(path)):
            if isinstance(node, ast.FunctionDef):
                first = node.body[0]
                docstring = first.end_lineno - first.lineno + 1 if ast.get_docstring(node) else 0
                functions[path, node.name] = node.end_lineno - node.lineno + 1 - docstring
    assert len(functions) > 900
    assert [name for name, lines in functions.items() if lines > 60] == []


BESIDE = {"dp": GROUND, "hmm": GROUND, "networks": (*GROUND, "models"), "verify": ("errors",)}
"""Rooms that share little with the others; three are systems that the command line alone shows."""


def test_what_stands_beside_shares_nothing_with_the_core():
    """Nor does anything load a window system."""
    for path in FILES:
        assert not any(name.startswith("matplotlib.pyplot") for name in imports(path)), path
        if room(path) in BESIDE:
            assert rooms(path) <= {*BESIDE[room(path)]}, path
        elif room(path) != "cli":
            assert not rooms(path) & (BESIDE.keys() - {"verify"}), path
        if room(path) == "verify":
            assert tops(path) <= {"pufferflow", "flint", "msgspec", *sys.stdlib_module_names}, path


@pytest.mark.parametrize(("module", "ours"), [("", ""), (".verify", "verify errors")])
def test_little_is_loaded(module, ours):
    """No numerical code for a certificate, nor before the first name that needs it."""
    command = [sys.executable, "-c", f"import sys, pufferflow{module}; print(*sys.modules)"]
    loaded = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    heavy = {"numpy", "scipy", "numba", "pandas", "pyarrow"}
    assert not {name.partition(".")[0] for name in loaded} & heavy
    found = {name.split(".")[1] for name in loaded if name.startswith("pufferflow.")}
    assert found == {*ours.split()}


def test_the_digest_covers_all_kernels_and_what_they_take_from_the_package():
    """Numba compiles constants of other modules in: after an edit there machine code is stale."""
    assert [p for p in PACKAGE.rglob("*.py") if "numba" in tops(p)] == [Path(jit.__file__)]
    kernel = f"from {jit.__name__} import kernel"
    users = [p for p in PACKAGE.rglob("*.py") if kernel in p.read_text()]
    assert users
    for path in users:
        assert path.name.endswith("_kernels.py")
        names = {name.rpartition(".")[0] for name in imports(path)}
        ours = {name for name in names if name.startswith("pufferflow")}
        ours = {name for name in ours if not name.endswith("_kernels")}
        assert ours <= {jit.__name__, rounding.__name__, types.__name__}, path


# -- what is written about the package -------------------------------------------------------------

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


def test_every_import_is_a_declared_dependency():
    used = {*EXTRAS}.union(*map(tops, SOURCES)) - {"pufferflow", "reproduction"} - BROUGHT
    known = packages_distributions()
    found = [known[name][0].lower() for name in used - set(sys.stdlib_module_names)]
    needs = [need for job in JOBS for need in PROJECT["optional-dependencies"][job]]
    # tabulate is used by pandas, for Markdown
    names = {name.replace("_", "-") for name in found} | {"tabulate"}
    assert names == names_of([*PROJECT["dependencies"], *needs])


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


KINDS = {".md", ".py", ".pyi", ".rst", ".smk", ".yaml", ".html", ".j2"}


@cache
def texts():
    """In small letters."""
    folders = [ROOT / name for name in ("pufferflow", "workflow", "config", "docs", "tests")]
    paths = [path for folder in folders for path in folder.rglob("*") if path.suffix in KINDS]
    paths += [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "Makefile"]
    written = (path for path in paths if "_build" not in path.parts)
    return {path: " ".join(path.read_text("utf-8").split()).lower() for path in written}


@pytest.mark.parametrize("phrase", Path(__file__).with_name("words.txt").read_text().splitlines())
def test_a_phrase_is_not_used(phrase):
    assert len(texts()) > 300
    assert not [path for path, text in texts().items() if phrase.lower() in text]
