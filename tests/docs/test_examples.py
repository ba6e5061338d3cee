"""What README and the pages show works: every command, all Python, every link, the reference.

A page is run from top to bottom in a folder of its own. Every release that it makes must be useful:
no error reaches half of the public range.
"""

import ast
import doctest
import json
import re
import shlex
from importlib import import_module
from inspect import ismodule
from operator import attrgetter
from pathlib import Path

import pytest

import pufferflow as pf
from pufferflow import cli
from pufferflow.mechanisms import MECHANISMS

ROOT = Path(__file__).parents[2]
PATHS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
PAGES = {p.relative_to(ROOT).as_posix(): p.read_text() for p in PATHS if "_build" not in p.parts}
TUTORIAL = "docs/tutorials/meter.md"
RELEASES = {"README.md": 2, "docs/statistics.md": 2, "docs/howto/own_data.md": 3, TUTORIAL: 2}
"""How many releases the pages make."""
ELSEWHERE = ("results/examples/flu_network.csv", "flu.csv", "number.txt", "DATA", "TABLE", "FILE")
"""Files that a page does not make: such commands are parsed only."""
REFERENCE = "".join(path.read_text() for path in sorted((ROOT / "docs/reference").iterdir()))
FENCE = re.compile(r"^```(sh|python|\{code-cell\} python)\n(.*?)^```", re.M | re.S)
OPTIONS_OF_CELL = re.compile(r"\A---\n.*?^---\n", re.M | re.S)
SHOWING = sorted(p for p in (ROOT / "pufferflow").rglob("*.py") if ">>>" in p.read_text())


def shell(line, code=0):
    """Run a line of a shell, or check what it names."""
    program, *words = shlex.split(line, comments=True) or [""]
    if program == "pufferflow" and set(ELSEWHERE) & set(words):
        cli._parser(words).parse_args(words)
    elif program == "pufferflow":
        assert cli.main(words) == code, line
    elif program == "echo":
        text, arrow, name = words
        assert arrow == ">"
        Path(name).write_text(text)
    else:
        assert program in ("", ".", "make", "pip", "snakemake"), line


def python(code, page, namespace):
    """Run Python; a number or a text behind an expression ("3.33…: why") is its value."""
    lines = code.splitlines()
    for statement in ast.parse(code).body:
        stated = lines[statement.lineno - 1].partition("  # ")[2].partition(": ")[0]
        if not isinstance(statement, ast.Expr) or not re.match(r"[\d']", stated):
            exec(compile(ast.Module([statement], []), page, "exec"), namespace)
            continue
        value = eval(compile(ast.Expression(statement.value), page, "eval"), namespace)
        text = ", ".join(map(repr, value)) if type(value) is tuple else repr(value)
        assert re.fullmatch(re.escape(stated).replace("…", ".*"), text), (text, stated)


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
    namespace = {"shell": shell}
    if page == "docs/howto/own_data.md":
        run(TUTORIAL, namespace, 1)  # the table that it is about
    run(page, namespace)
    pyplot.close("all")
    made = [json.loads(path.read_text()) for path in tmp_path.rglob("publish/release.json")]
    assert len(made) == RELEASES.get(page, 0)
    for release in made:
        assert {row["impact"] for row in release["rows"]} <= {"LOW", "MEDIUM", "HIGH"}
        assert not release["warnings"]


def test_commands_in_running_text_are_accepted():
    shown = [text for page in PAGES.values() for text in re.findall(r"`pufferflow ([^`]+)`", page)]
    complete = [text.split() for text in shown if "…" not in text and text.count(" ") > 1]
    assert len(complete) >= 3
    for words in complete:
        cli._parser(words).parse_args(words)


@pytest.mark.parametrize("path", SHOWING, ids=lambda path: path.stem)
def test_worked_examples(path):
    name = ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
    failed, tested = doctest.testmod(import_module(name))
    assert (failed, tested > 0) == (0, True)


@pytest.mark.parametrize("page", [*PAGES, "config/README.md", "results/README.md"])
def test_names_and_links_of_the_pages(page):
    """A link leads to a file; headings are checked when the site is built."""
    shown = (ROOT / page).read_text()
    assert page != "README.md" or len(shown.split()) <= 600
    for name in set(re.findall(r"\bpf\.(\w+(?:\.[A-Za-z_]\w*)?)", shown)):
        assert attrgetter(name)(pf) is not None, name
    for name in re.findall(r"`((?:pufferflow|workflow|tests|config|docs)/[\w./-]+)`", shown):
        assert (ROOT / name).exists(), name
    text = re.sub(r"^```.*?^```|`[^`\n]*`", "", shown, flags=re.M | re.S)
    for link in re.findall(r"\]\(([^)\s#]+)", text):
        assert "://" in link or ((ROOT / page).parent / link).exists(), link


def test_every_public_name_and_command_is_in_the_reference():
    auto = r"^\.\. auto\w+:: pufferflow\.(?:mechanisms\.)?([\w.]+)$"
    shown = {*re.findall(auto, REFERENCE, flags=re.M)}
    rooms = {name for name in dir(pf) if ismodule(getattr(pf, name))}
    rest = ("dp", "hmm", "networks")
    parts = {f"{room}.{name}" for room in rest for name in getattr(pf, room).__all__}
    assert {*dir(pf)} - rooms | {mechanism.__name__ for mechanism in MECHANISMS.values()} <= shown
    assert parts <= shown | {f"dp.{name}" for name in shown}
    commands = re.findall(r"^```\{command-help\} (\w+)$", REFERENCE, flags=re.M)
    assert commands == list(cli.COMMANDS)
