"""Every frozen scale that certificates can state is certified, most at hardly more noise."""

from pathlib import Path
from statistics import median

import pandas as pd
import pytest
from frozen_families import built

import pufferflow as pf
from pufferflow.errors import ParameterError
from pufferflow.verify import MECHANISMS

FROZEN = pd.read_csv(Path(__file__).with_name("scales.csv"), keep_default_na=False).to_dict(
    "records"
)
ROWS = [row for row in FROZEN if row["scale"] and row["mechanism"] in MECHANISMS]
SHORT = [row for row in ROWS if not row["run"] and row["length"] < 1000][::20]


def reason(row):
    """Why there is no certificate."""
    family, mechanism = built(row["family"]), row["mechanism"]
    if mechanism == "entry-dp":
        return "records are correlated"
    if mechanism.startswith("mqm") and isinstance(
        family, pf.IntervalFamily | pf.TotalVariationFamily
    ):
        return "this needs finitely many chains"
    if mechanism == "leakage" and row["family"].startswith("seventy"):
        return "couplings are proved for at most 64"
    if "order" in row["family"] and row["side_information"] == "any":  # a history of known records
        return "no bound of the loss near this scale"
    return None


@pytest.mark.parametrize(
    "rows", [SHORT, pytest.param(ROWS, marks=pytest.mark.long)], ids=["some", "all"]
)
def test_frozen_scales_are_certified(rows):
    ratios = []
    for row in rows:
        asked = {key: row[key] for key in ("mechanism", "window", "side_information")}
        asked |= {"scale": float(row["scale"])}
        if why := reason(row):
            with pytest.raises(ParameterError, match=why):
                pf.certify(built(row["family"]), row["length"], row["epsilon"], **asked)
            continue
        document = pf.certify(built(row["family"]), row["length"], row["epsilon"], **asked)
        assert pf.verify_certificate(document, most_work=10**10).scale == document["scale"]
        ratios.append(float(document["scale"]) / float(row["scale"]))
    assert median(ratios) <= 1.001
    assert sum(ratio > 1.05 for ratio in ratios) <= len(ratios) / 10
