"""What other people, steps and windows change, and what the comparison says of it."""

import pandas as pd
import pytest

from pufferflow.reporting.tables import render
from pufferflow.studies.histograms.claims import histogram_claims
from pufferflow.studies.other_data.measure import other_data
from pufferflow.studies.other_data.reasons import other_data_reason
from pufferflow.studies.other_data.tables import other_data as table

pytestmark = pytest.mark.xdist_group("other data")  # what its tests share is made once


@pytest.fixture(scope="module")
def measured():
    return other_data([1.0], ["group-dp", "mqm-exact"], [1, 60], {"mqm-exact": {"certified": True}})


def test_one_row_a_sample_group_task_and_mechanism(measured):
    key = ["data", "step_seconds", "group", "task", "mechanism"]
    assert not measured.duplicated(key).any()
    assert (measured["status"] == "ok").all()
    minutes = measured[measured["step_seconds"] == 60]
    people = minutes[minutes["dataset"] == "activity"].drop_duplicates("group").set_index("group")["participants"]
    assert people.to_dict() == {
        "men_18_54": 26,
        "older_women_55plus": 31,
        "overweight_women_18_54": 14,
        "fitbit_wearers": 33,
    }
    # the noise of group privacy over a household hides all of its records, whatever the step or the window
    household = measured[(measured["dataset"] == "electricity") & (measured["mechanism"] == "group-dp")]
    assert len(household) == 4
    assert (household["expected_error"] / (2 * 51)).between(1, 1.01).all()


def test_the_scale_of_a_person_in_records_hardly_depends_on_the_step(measured):
    exact = measured[(measured["mechanism"] == "mqm-exact") & (measured["task"] == "aggregate")]
    exact = exact[exact["group"] == "men_18_54"].set_index("step_seconds")
    scale = exact["expected_error"] * exact["records"] / 8
    assert scale.max() < 1.2 * scale.min()
    assert exact.loc[300, "expected_error"] > 4 * exact.loc[60, "expected_error"]


def errors(measured, **changes):
    row = measured[(measured["group"] == "men_18_54") & (measured["mechanism"] == "mqm-exact")].iloc[[0]]
    ours = {"standard_error": 0.0, "mean_error": row["expected_error"], "bins": 4, **changes}
    return row.assign(**ours)


def test_reasons_are_made_of_what_was_measured(measured):
    (ours,) = errors(measured).itertuples()
    text = other_data_reason(ours, 2 * ours.expected_error, measured)
    assert "the paper's error is 2 times ours" in text
    assert "among them" in text
    five = measured[(measured["group"] == ours.group) & (measured["step_seconds"] == 300)]
    five = five[(five["mechanism"] == "mqm-exact") & (five["task"] == ours.task)]["expected_error"].item()
    assert f"steps of 300 s in place of 60 s multiply ours by {five / ours.expected_error:.2g}" in text
    assert "outside, so these do not explain it" in other_data_reason(ours, 99.0, measured)
    assert "the study other_data measures" in other_data_reason(ours, 1.0, None)
    # at another ε nothing was measured, and nothing is said of it
    (other,) = errors(measured, epsilon=5.0).itertuples()
    assert other_data_reason(other, 1.0, measured).count(";") == 0


def test_every_incomparable_number_of_table_1_has_its_reason(measured):
    rows = list(histogram_claims(errors(measured), "activity", "Table 1", elsewhere=measured))
    numbers = [row for row in rows if row.verdict == "not comparable"]
    assert len(numbers) == 1
    assert "the paper's error is" in numbers[0].reason


def test_table(measured):
    shown = table(measured, 1.0)
    assert "ε = 1" in shown.caption
    assert list(shown.display)[-2:] == ["GroupDP", "MQMExact"]
    assert len(shown.display) == 2 * (3 * 3 + 1) + 4
    assert "women 55+" in render(shown)["md"]
    failed = measured.assign(expected_error=pd.NA, status="not applicable")
    assert set(table(failed, 1.0).display["MQMExact"]) == {"N/A"}
