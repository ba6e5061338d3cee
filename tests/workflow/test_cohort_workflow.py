import shutil

import pandas as pd
import pytest

pytestmark = pytest.mark.xdist_group("workflow")  # runs fork from one process that has loaded what they need


def test_cohort_is_in_the_report_and_chunks_change_no_byte(copy, finished):
    made = {path: digest for path, digest in finished.results().items() if "cohort_synthetic" in path}
    assert {path for path in made if path.startswith(("figures", "tables"))} == {
        f"{stem}.{suffix}"
        for stem, suffixes in (
            ("figures/cohort_synthetic", "svg pdf png"),
            ("tables/cohort_synthetic", "csv md tex json"),
        )
        for suffix in suffixes.split()
    }
    table = pd.read_csv(copy.folder / "results/errors/cohort_synthetic.csv")
    assert table["participant"].nunique() == 8
    page = (copy.folder / "results/report.html").read_text(encoding="utf-8")
    assert 'id="cohort-figure"' in page
    assert "Share of the 8 participants" in page

    copy.edit("tiny.yaml", "chunks: 2", "chunks: 3")
    chunks = len(list((copy.folder / "results/cohort").rglob("*.csv")))
    copy.run("--", "results/tables/cohort_synthetic.md", "results/figures/cohort_synthetic.svg")
    assert len(list((copy.folder / "results/cohort").rglob("*.csv"))) > chunks
    assert made.items() <= copy.results().items()


def test_cohort_of_a_folder_of_samples(copy):
    (copy.folder / "mine").mkdir()
    shutil.copy(copy.folder / "results/samples/activity_bundled.json", copy.folder / "mine")
    copy.edit("tiny.yaml", "chunks: 2", "chunks: 2\n    samples: mine\n    mechanisms: [group-dp, mqm-exact]")
    copy.run("--", "results/tables/cohort_file.md")
    table = pd.read_csv(copy.folder / "results/errors/cohort_file.csv")
    people = pd.read_csv(copy.folder / "results/samples/activity_bundled.csv")["participant"].astype(str)
    assert list(dict.fromkeys(table["participant"].astype(str))) == list(people)
    assert set(table["label"]) == {"bundled"}
    assert (table["status"] == "ok").any()
    assert "bundled real data" in (copy.folder / "results/tables/cohort_file.md").read_text(encoding="utf-8")
