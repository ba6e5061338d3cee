"""What README and the pages show works: every command, all Python, every link, the reference.

A page is run from top to bottom in a folder of its own. Every release that it makes must be useful:
no error reaches half of the public range.
"""

import ast
import doctest
import json
import re
import shlex
import tokenize
import tomllib
from importlib import import_module
from operator import attrgetter
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import pufferflow as pf
from pufferflow import cli
from pufferflow.models import parse_model

ROOT = Path(__file__).parents[2]
PAGES = {
    path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8")
    for path in (
        ROOT / "README.md",
        ROOT / "CONTRIBUTING.md",
        *sorted((ROOT / "docs").rglob("*.md")),
    )
    if "_build" not in path.parts
}
TUTORIAL = "docs/tutorials/meter.md"
RELEASES = {"README.md": 2, "docs/statistics.md": 4, "docs/howto/own_data.md": 3, TUTORIAL: 2}
"""How many releases the pages make."""
ELSEWHERE = ("results/examples/flu_network.csv", "flu.csv", "number.txt", "DATA", "TABLE", "FILE")
"""Files that a page does not make: such commands are parsed only."""
BROUGHT = {
    "transition_counts": np.array([[900, 100], [200, 800]]),
    "low": [[0.85, 0.05], [0.15, 0.75]],
    "high": [[0.95, 0.15], [0.25, 0.85]],
}
"""What the Python shown takes as the reader's own; everything else in it must be defined there."""
REFERENCE = "".join(path.read_text("utf-8") for path in sorted((ROOT / "docs/reference").iterdir()))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
FENCE = re.compile(r"^```(sh|python|\{code-cell\} python)\n(.*?)^```", re.M | re.S)
OPTIONS_OF_CELL = re.compile(r"\A---\n.*?^---\n", re.M | re.S)
MODULES = sorted(
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
    for path in (ROOT / "pufferflow").rglob("*.py")
    if ">>>" in path.read_text(encoding="utf-8")
)


def shell(line, code=0):
    """Run a line of a shell, or check what it names."""
    program, *words = shlex.split(line, comments=True) or [""]
    if program == "pufferflow" and set(ELSEWHERE) & set(words):
        parsed(words)
    elif program == "pufferflow":
        assert cli.main(words) == code, line
    elif program == "echo":
        text, arrow, name = words
        assert arrow == ">"
        model = json.loads(text)
        hidden = "observation_matrix" in model
        (pf.hmm.parse_hidden_markov_model if hidden else parse_model)(model)
        Path(name).write_text(text)
    elif program == "make":
        assert set(words) <= set(re.findall(r"^([\w-]+):", MAKEFILE, flags=re.M))
    elif program == "pip":
        extras = re.findall(r"\w+", words[1].partition("[")[2])
        assert words[0] == "install"
        assert set(extras) <= set(PROJECT["optional-dependencies"])
    elif program == "snakemake":
        assert all((ROOT / word).exists() for word in words if "/" in word)
    else:
        assert (program, words) in [(".", [".venv/bin/activate"]), ("", [])]


def parsed(words):
    """Refuse, by an error, what the command line does not take."""
    parser = cli._parser(words)
    return parser.parse_args(words)


def python(code, page, namespace):
    """Run Python; a number or a text behind an expression ("3.33…: why") is its value."""
    stated = dict(stated_values(code))
    for statement in ast.parse(code).body:
        if not isinstance(statement, ast.Expr) or statement.lineno not in stated:
            exec(compile(ast.Module([statement], []), page, "exec"), namespace)
            continue
        value = eval(compile(ast.Expression(statement.value), page, "eval"), namespace)
        text = ", ".join(map(repr, value)) if type(value) is tuple else repr(value)
        pattern = re.escape(stated[statement.lineno]).replace("…", ".*")
        assert re.fullmatch(pattern, text), (text, stated[statement.lineno])


def stated_values(code):
    lines = iter(code.splitlines(keepends=True))
    for token in tokenize.generate_tokens(lambda: next(lines, "")):
        if token.type == tokenize.COMMENT:
            value = token.string.removeprefix("# ").partition(": ")[0]
            if value[0].isdigit() or value[0] == "'":
                yield token.start[0], value


def run(page, namespace, blocks=None):
    """Run the blocks of a page, or the first so many."""
    for language, block in FENCE.findall(PAGES[page])[:blocks]:
        code = OPTIONS_OF_CELL.sub("", block)
        if language == "sh":
            for line in code.replace("\\\n", " ").splitlines():
                shell(line)
        elif language == "python":
            python(code, page, namespace)
        else:
            refused = 2 * ("raises-exception" in block[: len(block) - len(code)])
            line = re.compile(r"^!(.+)$", re.M)
            code = line.sub(lambda found, code=refused: f"shell({found[1]!r}, {code})", code)
            exec(compile(code, page, "exec"), namespace)


@pytest.mark.parametrize("page", [page for page, text in PAGES.items() if FENCE.search(text)])
def test_a_page_runs_and_its_releases_are_useful(page, tmp_path, monkeypatch):
    pyplot = pytest.importorskip("matplotlib.pyplot")
    monkeypatch.chdir(tmp_path)
    namespace = dict(BROUGHT, shell=shell)
    if page == "docs/howto/own_data.md":
        run(TUTORIAL, namespace, 1)  # the table that it is about
    run(page, namespace)
    pyplot.close("all")
    made = [json.loads(path.read_text()) for path in tmp_path.rglob("publish/release.json")]
    assert len(made) == RELEASES.get(page, 0)
    for release in made:
        assert {row["impact"] for row in release["rows"]} <= {"LOW", "MEDIUM", "HIGH"}
        assert not release["warnings"]
    if page == "README.md":
        check_readme()


def check_readme():
    """What it releases are the exact means but for the noise."""
    for table, folder in (("first.csv", "first_year"), ("second.csv", "second.csv.release")):
        frame = pd.read_csv(table, parse_dates=["time"]).dropna()
        exact = frame["watts"].clip(0, 3000).groupby(frame["time"].dt.hour).mean()
        made = pd.read_csv(Path(folder, "publish/values.csv"))
        off = np.abs(made["value"].to_numpy() - exact.to_numpy()) / made["error"].to_numpy()
        assert 0.01 < off.max() < 3  # of an error that 95 of 100 tables keep to


def test_commands_in_running_text_are_accepted():
    shown = [text for page in PAGES.values() for text in re.findall(r"`(pufferflow [^`]+)`", page)]
    lines = [shlex.split(text)[1:] for text in shown if "…" not in text]
    complete = [words for words in lines if len(words) > 2]
    assert len(complete) >= 8
    for words in complete:
        parsed(words)


@pytest.mark.parametrize("page", PAGES)
def test_public_names_of_the_pages(page):
    for name in set(re.findall(r"\bpf\.(\w+(?:\.[A-Za-z_]\w*)?)", PAGES[page])):
        assert attrgetter(name)(pf) is not None, name


@pytest.mark.parametrize("name", MODULES)
def test_worked_examples(name):
    failed, tested = doctest.testmod(import_module(name))
    assert tested >= 1
    assert failed == 0


def test_the_readme_is_short():
    assert len(PAGES["README.md"].split()) <= 600


@pytest.mark.parametrize("page", PAGES)
def test_links_of_the_pages(page):
    """Each leads to a file, and to a heading there is; the site's own check sees what is built."""
    folder = (ROOT / page).parent
    text = re.sub(r"^```.*?^```|`[^`\n]*`", "", PAGES[page], flags=re.M | re.S)
    for link in re.findall(r"\]\(([^)\s]+)\)", text):
        name, _, anchor = link.partition("#")
        if "://" in link:
            continue
        target = (folder / name).resolve() if name else ROOT / page
        assert target.exists(), link
        if anchor:
            titles = re.findall(r"^#+ (.+)$", target.read_text(encoding="utf-8"), flags=re.M)
            anchors = [re.sub(r"[^\w -]", "", title).lower().replace(" ", "-") for title in titles]
            assert anchor in anchors, link


def test_files_that_pages_name_exist():
    text = "".join(PAGES.values())
    named = set(re.findall(r"`((?:pufferflow|tests|workflow|config)/[\w/.]+\.\w+)`", text))
    assert len(named) > 20
    assert [name for name in sorted(named) if not (ROOT / name).exists()] == []


def test_every_public_name_is_in_the_reference():
    auto = r"^\.\. auto\w+:: pufferflow\.(?:mechanisms\.)?([\w.]+)$"
    shown = set(re.findall(auto, REFERENCE, flags=re.M))
    if ".. mechanism-list::\n" in REFERENCE:
        shown |= {mechanism.__name__ for mechanism in pf.MECHANISMS.values()}
    parts = {f"hmm.{name}" for name in pf.hmm.__all__}
    parts |= {f"dp.{name}" for name, of in vars(pf.dp).items() if callable(of)}
    assert {name for name in dir(pf) if name not in ("dp", "hmm")} <= shown
    assert parts <= shown | {f"dp.{name}" for name in shown}
    for name in shown:
        assert attrgetter(name)(pf) is not None, name


def test_every_command_is_in_the_reference():
    shown = re.findall(r"^```\{command-help\} (\w+)$", REFERENCE, flags=re.M)
    assert shown == list(cli.COMMANDS)
