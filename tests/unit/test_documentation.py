"""What the documentation shows works: doctests, Python and shell of the pages, tutorials; the reference is whole."""

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
import pytest

import pufferflow as pf
from pufferflow import cli
from pufferflow.models import parse_model

ROOT = Path(__file__).parents[2]
PAGES = {
    path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8")
    for path in (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md")))
    if "_build" not in path.parts
}
REFERENCE = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "docs/reference").iterdir())
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
MODULES = sorted(
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
    for path in (ROOT / "pufferflow").rglob("*.py")
    if ">>>" in path.read_text(encoding="utf-8")
)
BROUGHT = {
    "transition_counts": np.array([[900, 100], [200, 800]]),
    "low": [[0.85, 0.05], [0.15, 0.75]],
    "high": [[0.95, 0.15], [0.25, 0.85]],
}
"""What the Python shown takes as the reader's own; everything else in it must be defined there."""


def fences(language, page):
    return re.findall(rf"^```{language}\n(.*?)^```", page, flags=re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("name", MODULES)
def test_worked_examples(name):
    failed, tested = doctest.testmod(import_module(name))
    assert tested >= 1
    assert failed == 0


def stated_values(text):
    lines = iter(text.splitlines(keepends=True))
    for token in tokenize.generate_tokens(lambda: next(lines, "")):
        if token.type == tokenize.COMMENT:
            value = token.string.removeprefix("# ").partition(": ")[0]
            if value[0].isdigit():
                yield token.start[0], value


@pytest.mark.parametrize("page", [name for name, text in PAGES.items() if fences("python", text)])
def test_python_of_the_pages(page):
    """In order and in one namespace; a number behind an expression ("3.33…: why") is its value."""
    namespace = dict(BROUGHT)
    shown = 0
    for block in fences("python", PAGES[page]):
        said = dict(stated_values(block))
        for statement in ast.parse(block).body:
            if not isinstance(statement, ast.Expr) or statement.lineno not in said:
                exec(compile(ast.Module([statement], []), page, "exec"), namespace)
                continue
            value = eval(compile(ast.Expression(statement.value), page, "eval"), namespace)
            text = ", ".join(map(repr, value)) if type(value) is tuple else repr(value)
            assert re.fullmatch(re.escape(said[statement.lineno]).replace("…", ".*"), text), text
            shown += 1
    assert shown >= 1


def cells(page):
    """The code of each cell of a tutorial, without its options; a command is run by ``shell``."""
    for block in re.findall(r"^```\{code-cell\} python\n(.*?)^```", page, flags=re.MULTILINE | re.DOTALL):
        code = re.sub(r"\A---\n.*?^---\n", "", block, flags=re.MULTILINE | re.DOTALL)
        refused = "raises-exception" in block[: len(block) - len(code)]
        yield re.sub(
            r"^!(.+)$", lambda found, code=2 * refused: f"shell({found[1]!r}, {code})", code, flags=re.MULTILINE
        )


@pytest.mark.parametrize("page", [name for name in PAGES if "/tutorials/" in name])
def test_tutorials_run(page, tmp_path, monkeypatch, capsys, only_svg, scales_once):
    pyplot = pytest.importorskip("matplotlib.pyplot")
    monkeypatch.chdir(tmp_path)

    def shell(line, code):
        program, *arguments = shlex.split(line)
        assert program == "pufferflow"
        assert cli.main(arguments) == code, capsys.readouterr().err

    namespace = {"shell": shell}
    shown = list(cells(PAGES[page]))
    for code in shown:
        exec(compile(code, page, "exec"), namespace)
    assert len(shown) >= 6
    assert pyplot.get_fignums()
    pyplot.close("all")


@pytest.mark.parametrize("page", PAGES)
def test_public_names_of_the_pages(page):
    for name in set(re.findall(r"\bpf\.(\w+(?:\.[A-Za-z_]\w*)?)", PAGES[page])):
        assert attrgetter(name)(pf) is not None, name


def shell_lines():
    """Every line of a shell block, and every ``pufferflow …`` in running text with its arguments, of all pages."""
    blocks = (block for text in PAGES.values() for block in fences("sh", text))
    lines = [block.replace("\\\n", " ").splitlines() for block in blocks]
    inline = [found for text in PAGES.values() for found in re.findall(r"`(pufferflow [^`]+)`", text)]
    shown = [shlex.split(line, comments=True) for block in lines for line in block]
    shown += [shlex.split(text) for text in inline]
    return sorted({tuple(words) for words in shown if len(words) > 2 or (words and words[0] != "pufferflow")})


@pytest.mark.parametrize("words", shell_lines(), ids=" ".join)
def test_shell_of_the_pages(words, monkeypatch, capsys):
    """Targets of make and files exist, what is echoed is a model, the command line accepts the rest; nothing runs."""
    program, *arguments = words
    if program == "make":
        assert set(arguments) <= set(re.findall(r"^([\w-]+):", MAKEFILE, flags=re.MULTILINE))
    elif program == "echo":
        text, arrow, name = arguments
        assert (arrow, Path(name).suffix) == (">", ".json")
        model = json.loads(text)
        (pf.hmm.parse_hidden_markov_model if "observation_matrix" in model else parse_model)(model)
    elif program == ".":
        assert arguments == [".venv/bin/activate"]
    elif program == "pip":
        extras = re.findall(r"\w+", arguments[1].partition("[")[2])
        assert arguments[0] == "install"
        assert set(extras) <= set(PROJECT["optional-dependencies"])
    elif program == "snakemake":
        files = [word for word in arguments if "/" in word]
        assert all((ROOT / name).exists() for name in files)
    else:
        assert program == "pufferflow"
        monkeypatch.setattr(import_module(f"pufferflow.cli.{arguments[0]}"), "run", lambda _: None)
        assert cli.main(arguments) == 0, capsys.readouterr().err


def test_the_readme_is_short():
    assert len(PAGES["README.md"].split()) <= 1200


@pytest.mark.parametrize("page", PAGES)
def test_links_of_the_pages(page):
    """Within the project each leads to a file, and to a heading there is; the site's own check sees what is built."""
    folder = (ROOT / page).parent
    for link in re.findall(r"\]\(([^)\s]+)\)", re.sub(r"^```.*?^```|`[^`\n]*`", "", PAGES[page], flags=re.M | re.S)):
        name, _, anchor = link.partition("#")
        if "://" in link:
            continue
        target = (folder / name).resolve() if name else ROOT / page
        assert target.exists(), link
        if anchor:
            titles = re.findall(r"^#+ (.+)$", target.read_text(encoding="utf-8"), flags=re.M)
            assert anchor in [re.sub(r"[^\w -]", "", title).lower().replace(" ", "-") for title in titles], link


def test_every_public_name_is_in_the_reference():
    shown = set(re.findall(r"^\.\. auto\w+:: pufferflow\.(?:mechanisms\.)?([\w.]+)$", REFERENCE, flags=re.M))
    if ".. mechanism-list::\n" in REFERENCE:
        shown |= {mechanism.__name__ for mechanism in pf.MECHANISMS.values()}
    parts = {f"{part}.{name}" for part in ("dp", "hmm") for name in getattr(pf, part).__all__}
    assert {name for name in dir(pf) if name not in ("dp", "hmm")} <= shown
    assert parts <= shown | {f"dp.{name}" for name in shown}
    for name in shown:
        assert attrgetter(name)(pf) is not None, name


def test_every_command_is_in_the_reference():
    assert re.findall(r"^```\{command-help\} (\w+)$", REFERENCE, flags=re.M) == list(cli.COMMANDS)
