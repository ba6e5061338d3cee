"""The cohort by Snakemake: its results do not depend on the number of pieces."""

import pandas as pd
import pytest

pytestmark = pytest.mark.xdist_group("workflow")

GATHERED = {
    "beyond/cohort.csv",
    "beyond/cohort_summary.csv",
    *(f"tables/cohort.{suffix}" for suffix in ("csv", "md", "tex")),
}


def test_pieces_change_no_byte(project):
    made = {}
    for pieces in (2, 3):
        if made:
            project.edit("tiny.yaml", "pieces: 2", "pieces: 3")
            assert project.planned("--", "cohort") == {"measure_cohort", "gather_cohort", "cohort"}
        project.run("--", "cohort")
        results = project.results()
        assert {f"beyond/cohort/{piece}-of-{pieces}.csv" for piece in range(1, pieces + 1)} <= set(results)
        assert set(results) >= GATHERED
        gathered = {path: results[path] for path in GATHERED}
        assert gathered == (made or gathered)
        made = gathered
    table = pd.read_csv(project.folder / "results/beyond/cohort.csv")
    assert table["participant"].nunique() == 8
