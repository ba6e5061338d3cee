"""What others read by convention: citation, catalogue of workflows, list of changes."""

import re
import tomllib
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


PERSON = {"family-names", "given-names", "orcid", "affiliation", "email"}
ENTITY = {"name", "website", "email", "orcid"}
"""Keys of the Citation File Format 1.2.0 for people and entities, of those used here."""


def test_the_citation_is_as_its_format_asks():
    """The part of CFF 1.2.0's schema that is used: required and known keys, kinds of values."""
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert (citation["version"], citation["license"]) == (PROJECT["version"], PROJECT["license"])
    assert citation["title"].startswith(PROJECT["name"])
    assert citation["cff-version"] == "1.2.0"
    assert citation["type"] in ("software", "dataset")
    assert set(citation) <= {
        *("cff-version", "message", "title", "abstract", "type"),
        *("authors", "version", "license", "keywords"),
        *("references", "repository-code", "url", "doi", "date-released", "identifiers", "contact"),
    }
    assert all(
        isinstance(citation[key], str) and citation[key]
        for key in ("message", "title", "abstract", "version")
    )
    assert len(set(citation["keywords"])) == len(citation["keywords"]) > 0
    for work in (citation, *citation["references"]):
        assert work["authors"]
        assert all(
            set(author) <= PERSON or ("name" in author and set(author) <= ENTITY)
            for author in work["authors"]
        )
        assert re.fullmatch(r"10\.\d{4,9}(\.\d+)?/\S+", work.get("doi", "10.1145/none"))
    for work in citation["references"]:
        assert {"type", "title", "authors"} <= set(work)


def test_the_catalogue_of_workflows_finds_what_it_asks_for():
    usage = yaml.safe_load((ROOT / ".snakemake-workflow-catalog.yml").read_text(encoding="utf-8"))[
        "usage"
    ]
    assert usage["mandatory-flags"]["flags"].strip()
    assert usage["mandatory-flags"]["desc"].strip()
    assert set(usage["software-stack-deployment"]) <= {"conda", "apptainer", "apptainer+conda"}
    assert (ROOT / "workflow/Snakefile").is_file()
    assert 'include: "workflow/Snakefile"' in (ROOT / "Snakefile").read_text(encoding="utf-8")
    assert (ROOT / "config/README.md").is_file()
    assert (ROOT / "config/config.yaml").is_file()
    assert (ROOT / "workflow/envs").is_dir() == usage["software-stack-deployment"]["conda"]


def test_changes_begin_with_this_version_or_what_comes_next():
    first = re.search(r"^## (.+)$", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.M)[1]
    assert first == "Unreleased" or first.startswith(PROJECT["version"])


PAGES = ["CONTRIBUTING.md", "README.md", "config/README.md", "results/README.md"]
PAGES += [f"docs/{path.relative_to(ROOT / 'docs')}" for path in (ROOT / "docs").rglob("*.md")]


@pytest.mark.parametrize("page", sorted(page for page in PAGES if "_build" not in page))
def test_files_that_pages_name_exist(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    for name in re.findall(r"`((?:pufferflow|workflow|tests|config|docs)/[\w./-]+)`", text):
        assert (ROOT / name).exists(), f"{page} names {name}"


def test_continuous_integration_runs_what_the_project_says():
    """With every Python that the package promises, from the oldest on."""
    flow = yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text(encoding="utf-8"))["jobs"][
        "all"
    ]
    assert ".ci/run" in [step.get("run") for step in flow["steps"]]
    assert f">={flow['strategy']['matrix']['python'][0]}" == PROJECT["requires-python"]
