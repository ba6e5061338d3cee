"""Phrases and identifiers that readers did not understand stay out of all texts of the project."""

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PHRASES = Path(__file__).with_name("words.txt").read_text("utf-8").splitlines()
FOLDERS = ("pufferflow", "workflow", "config", "docs", "tests")
KINDS = {".md", ".py", ".pyi", ".rst", ".smk", ".yaml", ".html", ".j2"}


@pytest.fixture(scope="module")
def texts():
    paths = [p for folder in FOLDERS for p in (ROOT / folder).rglob("*") if p.suffix in KINDS]
    paths += [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "Makefile"]
    written = {p for p in paths if "_build" not in p.parts} - {Path(__file__)}
    return {p.relative_to(ROOT): " ".join(p.read_text("utf-8").split()) for p in written}


@pytest.mark.parametrize("phrase", PHRASES)
def test_a_phrase_is_not_used(phrase, texts):
    assert len(texts) > 300
    assert not [str(path) for path, text in texts.items() if phrase.lower() in text.lower()]
