"""What others read by convention: citation, catalogue of workflows, list of changes."""

import re
import tomllib
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def test_the_citation_agrees_with_the_package():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert {"cff-version", "message", "title", "authors", "version", "license"} <= citation.keys()
    assert (citation["version"], citation["license"]) == (PROJECT["version"], PROJECT["license"])
    assert citation["title"].startswith(PROJECT["name"])
    assert all("name" in author or "family-names" in author for author in citation["authors"])


def test_the_catalogue_of_workflows_finds_what_it_asks_for():
    usage = yaml.safe_load((ROOT / ".snakemake-workflow-catalog.yml").read_text(encoding="utf-8"))["usage"]
    assert usage["mandatory-flags"]["flags"].strip()
    assert usage["mandatory-flags"]["desc"].strip()
    assert set(usage["software-stack-deployment"]) <= {"conda", "apptainer", "apptainer+conda"}
    assert (ROOT / "config/README.md").is_file()
    assert (ROOT / "config/config.yaml").is_file()
    assert (ROOT / "workflow/envs").is_dir() == usage["software-stack-deployment"]["conda"]


def test_changes_begin_with_this_version_or_what_comes_next():
    first = re.search(r"^## (.+)$", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.M)[1]
    assert first == "Unreleased" or first.startswith(PROJECT["version"])


@pytest.mark.parametrize("page", ["CONTRIBUTING.md", "README.md", "config/README.md", "results/README.md"])
def test_files_that_pages_name_exist(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    for name in re.findall(r"`((?:pufferflow|workflow|tests|config|docs)/[\w./-]+)`", text):
        assert (ROOT / name).exists(), f"{page} names {name}"
