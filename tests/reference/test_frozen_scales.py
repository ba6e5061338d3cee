"""Scales of every kind of family, as an earlier engine gave them: none may become larger unless its
row says why.
"""

import math
from itertools import groupby
from pathlib import Path

import pandas as pd
import pytest
from frozen_families import BUILDERS, built

from pufferflow.mechanisms import compute_scale

ROWS = pd.read_csv(Path(__file__).with_name("scales.csv"), keep_default_na=False).to_dict("records")
TOLERANCE = {"leakage": 4e-6}
"""How far, relatively, a scale may move: its root is found to 1e-7, from post-fixed points that
leave 1e-6 a step.
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
