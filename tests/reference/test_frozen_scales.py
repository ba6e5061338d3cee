"""Scales of every kind of family, as an earlier engine gave them: none may become larger unless its
row says why, and those that certificates can state are certified at hardly more noise.
"""

import math
from itertools import groupby
from pathlib import Path
from statistics import median

import pandas as pd
import pytest
from written_calls import BUILDERS, built

import pufferflow as pf
from pufferflow.errors import ParameterError
from pufferflow.mechanisms import compute_scale
from pufferflow.verify.parse import MECHANISMS

ROWS = pd.read_csv(Path(__file__).with_name("scales.csv"), keep_default_na=False).to_dict("records")
TOLERANCE = {"leakage": 4e-6}
"""How far, relatively, a scale may move: its root is found to 1e-7, from post-fixed points that
leave 1e-6 per step.
"""

FAMILIES = {name: list(rows) for name, rows in groupby(ROWS, key=lambda row: row["family"])}


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.long] * bool(rows[0]["run"]))
        for name, rows in FAMILIES.items()
    ],
)
def test_no_scale_is_larger(name):
    wrong = []
    for row in FAMILIES[name]:
        asked = {key: row[key] for key in ("length", "epsilon", "window", "side_information")}
        now = compute_scale(row["mechanism"], built(name), **asked).scale
        frozen = float(row["scale"]) if row["scale"] else math.inf
        rise = float(row["rise"] or TOLERANCE.get(row["mechanism"], 1e-9))
        if not (math.inf if now is None else now) <= frozen * (1 + rise):
            wrong.append((row, now))
    assert not wrong


def test_every_row_has_a_family_and_every_rise_a_reason():
    assert {row["family"] for row in ROWS} <= set(BUILDERS)
    for row in ROWS:
        assert bool(row["rise"]) == bool(row["reason"])
        assert row["scale"] or row["mechanism"] != "leakage"


CERTIFIED = [row for row in ROWS if row["scale"] and row["mechanism"] in MECHANISMS]
SHORT = [row for row in CERTIFIED if not row["run"] and row["length"] < 1000][::20]


def reason(row):
    """Why there is no certificate."""
    family, mechanism = built(row["family"]), row["mechanism"]
    if mechanism == "entry-dp":
        return "records are correlated"
    if mechanism.startswith("mqm") and isinstance(
        family, pf.IntervalFamily | pf.TotalVariationFamily
    ):
        return "quilts prove scales of chains with one matrix"
    return None


@pytest.mark.parametrize(
    "rows", [SHORT, pytest.param(CERTIFIED, marks=pytest.mark.long)], ids=["some", "all"]
)
def test_frozen_scales_are_certified(rows):
    ratios = []
    for row in rows:
        asked = (row[key] for key in ("mechanism", "epsilon", "length"))
        hidden = {key: row[key] for key in ("window", "side_information")}
        frozen = pf.NoiseScale(*asked, float(row["scale"]), **hidden)
        if why := reason(row):
            with pytest.raises(ParameterError, match=why):
                frozen.certified(built(row["family"]))
            continue
        document = frozen.certified(built(row["family"])).certificate
        assert pf.verify_certificate(document, most_work=10**10).scale == document["scale"]
        ratios.append(float(document["scale"]) / float(row["scale"]))
    assert median(ratios) <= 1.001
    assert sum(ratio > 1.05 for ratio in ratios) <= len(ratios) / 10
