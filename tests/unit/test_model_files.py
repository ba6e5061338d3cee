"""Model files: every family comes back as written; see refusals.txt for what is none."""

import json

import numpy as np
import pytest
from frozen_families import BUILDERS, built

import pufferflow as pf
from pufferflow.models import confidence_family
from pufferflow.models.files import read_public_model, write_model

MATRIX = [[0.9, 0.1], [0.4, 0.6]]
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
