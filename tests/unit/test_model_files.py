"""Model files: every family comes back as written; anything else is refused in one sentence."""

import json

import numpy as np
import pytest
from frozen_families import BUILDERS, built

import pufferflow as pf
from pufferflow.models import confidence_family
from pufferflow.models.files import read_public_model, write_model

MATRIX = [[0.9, 0.1], [0.4, 0.6]]
LOW, HIGH = [[0.2, 0.1], [0.1, 0.3]], [[0.9, 0.5], [0.6, 0.6]]
ONE = {"low": [[1]], "high": [[1]]}
PARTS = {
    pf.MarkovChain: ("transition_matrix", "initial_distribution", "start"),
    pf.ChainFamily: ("chains",),
    pf.BinaryInterval: ("low", "high"),
    pf.IntervalFamily: ("low", "high", "backward"),
    pf.TotalVariationFamily: ("transition_matrix", "radius", "backward"),
    pf.MixingFamily: ("steps", "overlap"),
    pf.PeriodicChain: ("transition_matrices", "repeat", "start"),
    pf.HiddenChain: ("chain", "observations"),
}
TOTAL_VARIATION = pf.TotalVariationFamily(MATRIX, [0.02, 0.0])
FAMILIES = {name: lambda name=name: built(name) for name in BUILDERS} | {
    "irrational": lambda: pf.ChainFamily(
        [pf.MarkovChain(np.random.default_rng(3).dirichlet(np.ones(3), 3))]
    ),
    "total_variation_both_ways": lambda: pf.TotalVariationFamily(
        MATRIX, 0.1, backward=TOTAL_VARIATION
    ),
    "never_left": lambda: confidence_family([[5, 1, 0], [0, 0, 0], [2, 2, 2]]),
}


def parts(one):
    """All that a family is made of, not the document that is written."""
    if isinstance(one, tuple):
        return [parts(each) for each in one]
    if type(one) in PARTS:
        return [type(one).__name__, *(parts(getattr(one, name)) for name in PARTS[type(one)])]
    return np.asarray(one).tolist()


@pytest.mark.parametrize("name", FAMILIES)
def test_a_written_model_is_read_back_exactly(tmp_path, name):
    family = FAMILIES[name]()
    family = family if not isinstance(family, pf.MarkovChain) else pf.ChainFamily([family])
    again = read_public_model(write_model(tmp_path / "model.json", family)).family
    assert parts(again) == parts(family)
    assert again.document() == family.document()
    backward = getattr(family, "backward", None) is not None
    assert (
        backward
        == ("forwards and backwards" in family.text(public=True))
        == ("both ways" in repr(family))
    )


def test_files_of_others(tmp_path):
    chains = {
        "chains": [
            {"transition_matrix": MATRIX, "initial_distribution": [1, 0]},
            {"transition_matrix": MATRIX},
        ]
    }
    (tmp_path / "bom.json").write_bytes(b"\xef\xbb\xbf" + json.dumps(chains).encode())
    assert [chain.start for chain in read_public_model(tmp_path / "bom.json").family.chains] == [
        "given",
        "stationary",
    ]


KEYS = "chains, binary_interval, interval, total_variation, mixing, hidden, periodic"
BAD = [
    (b"", "is empty; it must hold"),
    (b"\xff\xfe\x00", "is not UTF-8 text (byte 1)"),
    (b'{"chains": [}', "is not JSON: Expecting value at line 1, column 13"),
    (b"[" * 100_000, "is nested too deeply"),
    (b'{"binary_interval": [NaN, 0.5]}', "NaN is not a JSON number"),
    (b'{"binary_interval": [0.1, 1e999]}', "binary interval [0.1, inf]: needs 0 < low"),
    (b'{"binary_interval": [0.1, ' + b"1" * 5000 + b"]}", "holds a number that cannot be read"),
    (b'{"chains": [], "chains": []}', "the key 'chains' is given twice in one object"),
    (
        b'{"chains": [{"transition_matrix": [[1' + b"0" * 400 + b"]]}]}",
        "must be numbers, in rows of equal length",
    ),
    ([], f"a model is an object with one of the keys {KEYS}, not a list"),
    ({}, f"exactly one of the keys {KEYS}; it has none of them"),
    ({"chains": [], "binary_interval": [0.3, 0.7]}, "it has chains and binary_interval"),
    ({"chain": []}, "the model has the unknown key 'chain'; allowed are chains, binary_interval"),
    ({"chains": []}, "the family holds no chain; give at least one"),
    ({"chains": {}}, "chains must be a list of chains, not an object"),
    (
        {"chains": [[0.5]]},
        "chain 1 must be an object with the keys transition_matrix, initial_distribution",
    ),
    (
        {"chains": [{"matrix": [[1]]}]},
        "chain 1 has the unknown key 'matrix'; allowed are transition_matrix, initial_d",
    ),
    (
        {"chains": [{"transition_matrix": 1}]},
        "chain 1: the transition matrix must be non-empty rows of numbers",
    ),
    ({"chains": [{"transition_matrix": [["1"]]}]}, "must be numbers, in rows of equal length"),
    ({"chains": [{"transition_matrix": [[True]]}]}, "must be numbers, in rows of equal length"),
    (
        {"chains": [{"transition_matrix": [[1]]}, {"transition_matrix": [[0.5, 0.4], [0, 1]]}]},
        "chain 2: row 1 of the",
    ),
    (
        {
            "chains": [
                {"transition_matrix": [[1e308, 1e308], [0, 1]], "initial_distribution": "any"}
            ]
        },
        "has no probability in",
    ),
    (
        {"chains": [{"transition_matrix": [[1]], "initial_distribution": None}]},
        "initial distribution must be non-empty",
    ),
    (
        {"chains": [{"transition_matrix": [[1]], "initial_distribution": "none"}]},
        "initial distribution 'none' is unkn",
    ),
    ({"binary_interval": [0.3]}, "binary_interval must be a list of two numbers, low and high"),
    ({"binary_interval": [0.3, "0.7"]}, "binary interval [0.3, '0.7']: needs 0 < low"),
    ({"binary_interval": [0.7, 0.3]}, "binary interval [0.7, 0.3]: needs 0 < low ≤ high < 1"),
    ({"interval": [LOW, HIGH]}, "interval must be an object with the keys low, high, backward"),
    ({"interval": {"low": LOW}}, "interval has no high; give its fields low, high, backward"),
    (
        {"interval": {"low": LOW, "high": 1}},
        "interval: high must be non-empty rows of numbers, not an array of shape ()",
    ),
    (
        {"interval": {"low": HIGH, "high": HIGH}},
        "interval: row 1: the lower bounds sum to 1.4, above 1",
    ),
    (
        {"interval": ONE | {"backward": []}},
        "interval, backward must be an object with the keys low",
    ),
    ({"interval": ONE | {"backward": {"low": [[1]]}}}, "interval, backward has no high"),
    (
        {"total_variation": 3},
        "total_variation must be an object with the keys transition_matrix, radius",
    ),
    ({"total_variation": {"transition_matrix": [[1]], "radius": "0"}}, "radius must be numbers"),
    ({"total_variation": {"transition_matrix": [[1]], "radius": 2}}, "total_variation: "),
    ({"hidden": {"transition_matrix": [[1]], "observations": [0, 1]}}, "hidden: 2 observations"),
    ({"periodic": {"transition_matrices": [[[1]]], "repeat": 0}}, "periodic: repeat is 0"),
    (
        {"periodic": {"transition_matrices": [[[1]]], "first_phase": 0}},
        "periodic has the unknown key 'first_phase'",
    ),
]


@pytest.mark.parametrize(("content", "message"), BAD)
def test_bad_model(tmp_path, run, content, message):
    path = tmp_path / "model.json"
    path.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
    code, out, err = run("scale", path, "--length", 5, "--epsilon", 1)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert err.startswith("pufferflow: error: ")
    assert message in err
    assert str(path) in err
