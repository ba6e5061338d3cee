"""What commands print and write where all is well."""

import json
import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import pufferflow as pf

CHAIN = pf.MarkovChain([[0.9, 0.1], [0.4, 0.6]], [1, 0])
RELEASE = "release t.csv --mixing 1h 0.4 --participant who --statistic mean --bounds 0 3 --unit kWh"


@pytest.fixture
def told(tmp_path, monkeypatch, run):
    """What a command that succeeds prints, beside a table and a model."""
    monkeypatch.chdir(tmp_path)
    Path("m.json").write_text(json.dumps(pf.ChainFamily([CHAIN]).document()))
    times = pd.date_range("2024-01-01", periods=48, freq="30min", tz="UTC").astype(str)
    values = np.random.default_rng(1).uniform(0, 3, 9600).round(2)
    rows = {"who": np.repeat(range(200), 48), "time": np.tile(times, 200), "kW": values}
    pd.DataFrame(rows).to_csv("t.csv", index=False)

    def told(words):
        code, out, err = run(*words.split())
        assert (code, err) == (0, ""), err
        return json.loads(out) if "--json" in words else out

    return told


def test_scales_of_all_mechanisms(told):
    rows = told("scale m.json --length 9 --length 100 --epsilon 1 --epsilon 0.2 --json")
    pairs = [(epsilon, name) for epsilon in (1, 0.2) for name in pf.MECHANISMS]
    assert [(row["epsilon"], row["mechanism"]) for row in rows] == pairs
    assert {row["mechanism"] for row in rows if not row["private"]} == {"entry-dp"}
    asked = "--mechanism leakage --protect 5 --side-information any --json"
    (row,) = told(f"scale m.json --length 100 --epsilon 1 {asked}")
    assert row["scale"] == pf.leakage(CHAIN, 100, 1.0, window=5, knows="any records").scale


def test_a_release_in_six_lines_and_its_ledger(told, run):
    asked = f"{RELEASE} --protect 1d"
    assert "a dry run: nothing was drawn" in told(f"{asked} --dry-run")
    assert sorted(os.listdir()) == ["m.json", "t.csv"]
    lines = told(asked).splitlines()
    assert [line.split()[0] for line in lines] == ["mean:", "protects", "ledger", "safe"]
    assert lines[-1] == "safe to publish: t.csv.release/publish/"
    assert run(*asked.split(), "--output", "again")[0] == 2
    assert told("ledger show pufferflow.ledger --json")["spent_percent"] > 50
    digest = told("ledger verify pufferflow.ledger").split()[-1]
    assert "is as it was then" in told(f"ledger verify pufferflow.ledger --noted {digest}")
    limit = ("ledger", "set-limit", "pufferflow.ledger", "1d", "2")
    assert "add --yes to change it" in run(*limit)[2]
    assert "1 before, 2 now" in run(*limit, "--yes")[1]
    entered = "ledger add pufferflow.ledger mean --from 2023-01-01 --to 2023-01-31"
    columns = "--participant who --value kW"
    assert "entered as row" in told(f"{entered} {columns} --cost 1e-9 --whole 0.01")
    assert run("ledger", "add", "pufferflow.ledger", "all")[0] == 2  # without a bound
    assert told(f"{asked} --output again").startswith("mean: ±")


def test_fits(told):
    assert "--mixing 30min" in told("fit t.csv --participant who --edges 1,2")
    assert Path("t.csv.chain.json").stat().st_mode & 0o777 == 0o600
