"""docs/artifact.md repeats what the code says; its claims are the tables of test_comparison.py."""

import re
from pathlib import Path

from reproduction.comparison import VERDICTS

ROOT = Path(__file__).parents[2]


def test_verdicts_are_explained_and_commands_exist():
    page = (ROOT / "docs/artifact.md").read_text(encoding="utf-8")
    rows = page.partition("| verdict |")[2].partition("\n\n")[0].splitlines()[2:]
    assert {
        cell[1].strip(): cell[2].strip() for cell in (row.split("|") for row in rows)
    } == VERDICTS
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    named = set(re.findall(r"`make ([a-z-]+)`", page))
    assert {"reproduce", "test", "bench"} <= named
    assert named <= set(re.findall(r"^([a-z-]+):", makefile, flags=re.MULTILINE))
