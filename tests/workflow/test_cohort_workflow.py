import shutil

import pandas as pd

COHORT = """
  cohort:
    enabled: true
    simulated: { participants: 8 }
    chunks: 2
    epsilons: [0.5, 1]
"""


def gathered(project):
    return {path: digest for path, digest in project.results().items() if not path.startswith("cohort/")}


def test_cohort_is_in_the_report_and_chunks_change_no_byte(copy, finished):
    with (copy.folder / "tiny.yaml").open("a", encoding="utf-8") as stream:
        stream.write(COHORT)
    copy.run()
    first = gathered(copy)
    added = first.keys() - finished.results().keys()
    assert {path for path in added if path.startswith(("figures", "tables"))} == {
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
    copy.run("--", "results/tables/cohort_synthetic.md", "results/figures/cohort_synthetic.svg")
    second = gathered(copy)
    assert {path: second[path] for path in added} == {path: first[path] for path in added}


def test_cohort_of_a_folder_of_samples(copy):
    (copy.folder / "mine").mkdir()
    shutil.copy(copy.folder / "results/samples/activity_bundled.json", copy.folder / "mine")
    with (copy.folder / "tiny.yaml").open("a", encoding="utf-8") as stream:
        stream.write(COHORT + "    samples: mine\n    mechanisms: [group-dp, mqm-exact]\n")
    copy.run("--", "results/tables/cohort_file.md")
    table = pd.read_csv(copy.folder / "results/errors/cohort_file.csv")
    people = pd.read_csv(copy.folder / "results/samples/activity_bundled.csv")["participant"].astype(str)
    assert list(dict.fromkeys(table["participant"].astype(str))) == list(people)
    assert set(table["label"]) == {"bundled"}
    assert (table["status"] == "ok").any()
    assert "bundled real data" in (copy.folder / "results/tables/cohort_file.md").read_text(encoding="utf-8")
