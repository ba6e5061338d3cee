"""Is one chain of order 1 believable? Records of order 2 and records that follow the clock are told apart."""

import numpy as np
import pandas as pd
import pytest
from cases import counts

import pufferflow as pf
from pufferflow.cli import main
from pufferflow.publishing.diagnosis import count_by_hour, count_sequences, diagnosis_text, read_steps


def table(states, minutes=10):
    times = pd.date_range("2024-01-01", periods=len(states), freq=f"{minutes}min", tz="UTC")
    return pd.DataFrame({"time": times.strftime("%Y-%m-%dT%H:%M:%SZ"), "value": np.array(["a", "b"])[states]})


def of_order_2(n, rng):
    stays, states = {(0, 0): 0.9, (0, 1): 0.3, (1, 0): 0.4, (1, 1): 0.9}, [0, 0]
    for u in rng.random(n - 2):
        last = states[-1]
        states.append(last if u < stays[states[-2], last] else 1 - last)
    return np.array(states)


def by_the_hour(n, rng):
    states = [0]
    for i, u in enumerate(rng.random(n - 1)):
        stay = 0.95 if (i // 6) % 24 < 12 else 0.5
        states.append(states[-1] if u < stay else 1 - states[-1])
    return np.array(states)


@pytest.mark.parametrize("records", counts(3000, 8000))
@pytest.mark.parametrize(("make", "better"), [(of_order_2, "order 2"), (by_the_hour, "hour of the day")])
def test_the_true_model_predicts_best_and_costs_what_it_costs(make, better, records):
    records = table(make(records, np.random.default_rng(1)))
    fit = pf.fit_records(records)
    found = pf.diagnose(records, fit, epsilon=1.0).set_index("model")
    assert list(found.index) == ["order 1", "order 2", "hour of the day"]
    assert found["held_out_nats"].idxmax() == better
    assert found["held_out_nats"][better] > 0.01
    assert found["loss_nats"]["order 1"] == pytest.approx(1, abs=1e-5)
    assert found["loss_nats"][better] > 1.05
    assert found["scale"][better] > found["scale"]["order 1"]
    text = diagnosis_text(found.reset_index(), 1.0)
    assert "calibrate to it" in text
    assert better in text


def test_sequences_are_counted_within_runs():
    records = table(np.array([0, 1, 1, 0, 1, 0])).drop(index=3)
    fit = pf.fit_records(records, smoothing=1.0)
    steps, _ = read_steps(records, fit)
    assert count_sequences(steps, 2).tolist() == [[0, 1], [1, 1]]
    assert count_sequences(steps, 2, 2).tolist() == [[[0, 0], [0, 1]], [[0, 0], [0, 0]]]
    assert count_by_hour(steps, 2, 600)[0].tolist() == [[0, 1], [1, 1]]


def test_the_command_asks_whether_the_records_are_public(tmp_path, capsys):
    path = tmp_path / "records.csv"
    table(of_order_2(600, np.random.default_rng(2))).to_csv(path, index=False)
    assert main(["fit", str(path), "--diagnose"]) == 2
    assert "say --public if they are public" in capsys.readouterr().err
    assert main(["fit", str(path), "--diagnose", "--public"]) == 0
    assert "is one chain of order 1 believable?" in capsys.readouterr().out
