"""Phrases and identifiers that readers did not understand stay out of all texts of the project."""

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PHRASES = """
computed anew
every claim and number of five sources beside
a further ε changes no digit of the others
with whatever happened during any hour hidden
those who know any other records
which minutes are missing
How far a published average is off
changes their mind
and would hide nothing
a pause long enough to forget
tells something of the next
it began long ago
tell next to nothing of it
the same in at least two of five cases
what one entry can tell through the chain
1 guaranteed, 0.24 lost
Chains that remember more
need not be worst in its tails
an hour is enough to forget
Once more?
is then what is known
A restart pays again
Courses of the whole record
one minute tells of the next
noise for independent records hides nothing
every rounding is bounded and goes upwards
gives them away
however close it lies
What cannot look alike
are worth a thought
another one if it likes
hardly ever left may be left never
Carry it on
the other thing happens
What a difference is made of
exact noise cannot be had
as private as the data
whoever believes
ForgettingFamily
LabelledChain
"""
FOLDERS = ("pufferflow", "workflow", "config", "docs", "tests")
KINDS = {".md", ".py", ".pyi", ".rst", ".smk", ".yaml", ".html", ".j2"}


@pytest.fixture(scope="module")
def texts():
    paths = [p for folder in FOLDERS for p in (ROOT / folder).rglob("*") if p.suffix in KINDS]
    paths += [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "Makefile"]
    written = {p for p in paths if "_build" not in p.parts} - {Path(__file__)}
    return {p.relative_to(ROOT): " ".join(p.read_text("utf-8").split()) for p in written}


@pytest.mark.parametrize("phrase", PHRASES.strip().splitlines())
def test_a_phrase_is_not_used(phrase, texts):
    assert len(texts) > 300
    assert not [str(path) for path, text in texts.items() if phrase.lower() in text.lower()]
