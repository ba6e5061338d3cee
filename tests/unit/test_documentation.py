"""What the documentation shows works: doctests, the Python of README and docs, the README's shell commands."""

import ast
import doctest
import json
import re
import shlex
import tokenize
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
    path.name: path.read_text(encoding="utf-8") for path in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
}
README = PAGES["README.md"]
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


@pytest.mark.parametrize("page", PAGES)
def test_public_names_of_the_pages(page):
    for name in set(re.findall(r"\bpf\.(\w+(?:\.[A-Za-z_]\w*)?)", PAGES[page])):
        assert attrgetter(name)(pf) is not None, name


def shell_lines():
    """Every line of a shell block, and every ``pufferflow …`` in running text with its arguments."""
    lines = [shlex.split(line, comments=True) for block in fences("sh", README) for line in block.splitlines()]
    inline = [shlex.split(text) for text in re.findall(r"`(pufferflow [^`]+)`", README)]
    return [words for words in lines if words] + [words for words in inline if len(words) > 2]


@pytest.mark.parametrize("words", shell_lines(), ids=" ".join)
def test_shell_of_the_readme(words, monkeypatch, capsys):
    """Targets of make exist, what is echoed is a model, and the command line accepts the rest; nothing runs."""
    program, *arguments = words
    if program == "make":
        targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), flags=re.MULTILINE)
        assert set(arguments) <= set(targets)
    elif program == "echo":
        text, arrow, name = arguments
        assert (arrow, Path(name).suffix) == (">", ".json")
        parse_model(json.loads(text))
    else:
        assert program == "pufferflow"
        monkeypatch.setattr(import_module(f"pufferflow.cli.{arguments[0]}"), "run", lambda _: None)
        assert cli.main(arguments) == 0, capsys.readouterr().err
