"""What a notebook shows: a line and a table for every public object, plots, public names, progress."""

import inspect
import re
import sys
from dataclasses import dataclass
from operator import attrgetter

import numpy as np
import pandas as pd
import pytest

import pufferflow as pf
from pufferflow._display import LONGEST, displayed
from pufferflow._progress import progress
from pufferflow._protection import NARROWEST
from pufferflow.errors import ParameterError

CHAIN = pf.MarkovChain([[0.9, 0.1], [0.4, 0.6]], initial_distribution=[1, 0])
STATIONARY = pf.MarkovChain(CHAIN.transition_matrix)
HOUR = pf.MixingFamily(60, 0.4)
BOUNDS = [[0.85, 0.05], [0.15, 0.75]], [[0.95, 0.15], [0.25, 0.85]]
QUERY = pf.CountQuery({1})
MODEL = pf.PublicModel(pf.ChainFamily([CHAIN]), pf.Schema(states=pf.StateSpace.categories(["off", "on"])))


def networks():
    pair = pf.networks.Variable("A", [0.5, 0.5]), pf.networks.Variable("B", [[0.9, 0.1], [0.2, 0.8]], ["A"])
    network = pf.networks.BayesianNetwork(pair)
    scale = pf.networks.markov_quilt_mechanism(network, 1.0)
    yield from (network, pair[0], scale, next(pf.networks.markov_quilts(network, "A")))
    yield pf.networks.network_cost(network, [scale.scale])


def hidden_markov_models():
    keep, coin = [[1, 0], [0, 1]], [["3/4", "1/4"], ["1/4", "3/4"]]
    model = pf.hmm.HiddenMarkovModel(keep, coin, {"ill": [1, 0], "healthy": [0, 1]}, length=1)
    family = pf.hmm.PriorFamily(keep, coin, {"ill": ["1 - p", "p"], "healthy": ["p", "1 - p"]}, {"p": [0, 1]}, length=1)
    yield from (model, family, pf.hmm.check(model, 3), pf.hmm.largest_ratio(model), pf.hmm.NoisyMax("index"))
    yield pf.hmm.find_prior(family, 2)
    yield pf.hmm.sup_ratio(family)
    yield pf.hmm.preserving_region(family, 2)
    yield pf.hmm.largest_value_ratio(2, "one-by-one")


def differential_privacy():
    people, level = pf.dp.Domain({"age": range(3), "ill": [False, True]}), pf.dp.choose_alpha_beta(0.1, 0.5)
    coin = pf.dp.FiniteMechanism({"yes": ["3/4", "1/4"], "no": ["1/4", "3/4"]})
    publisher = pf.dp.Publisher([(1, True)], people, d=0.1, gamma=0.5)
    publication = pf.dp.publish([(1, True)], people, level, insecure_seed=1)
    exponential = pf.Base2Exponential(pf.Eta(1, 1, 1), 0, 2, max_outcomes=3)
    yield from (people, level, coin, coin.level(), publisher)
    yield from (pf.dp.check_views([level], 0.1, 0.5), publication, exponential)
    yield publication.count()
    yield from (pf.Eta(1, 1, 1), pf.Base2Laplace(pf.Eta(1, 1, 1), 0, 2, 1))
    yield from (pf.dp.Exponential(1.0, 1.0), pf.dp.Laplace(1.0, 1.0), pf.dp.WeightedMajority(2, 0.1))
    yield pf.dp.RandomisedResponse(("yes", "no"), 0.75)


def made(folder):
    """At least one object of every public class that is no error."""
    scale = pf.leakage(CHAIN, 100, 1.0)
    accountant = pf.Accountant(CHAIN, 100)
    accountant.add(scale.scale)
    yield from (CHAIN, HOUR, QUERY, MODEL, MODEL.family, MODEL.records, MODEL.records.states, scale, accountant)
    yield from (pf.mqm_exact(CHAIN, 100, 1.0), pf.gk16(CHAIN, 100, 1.0), pf.mqm_exact(CHAIN, 100, 1.0).quilt)
    yield from (
        accountant.cost(),
        pf.lower_bound(CHAIN, 100, 1.0),
        pf.HistogramQuery(),
    )
    yield pf.privacy_loss(CHAIN, 10, 3.0, QUERY)
    yield pf.loss_at_any_length(STATIONARY, 3.0, QUERY, window=9)
    yield pf.verify_certificate(pf.certify(CHAIN, 100, 1.0))
    yield from (pf.BinaryInterval(0.1, 0.9), pf.IntervalFamily(*BOUNDS))
    yield from (
        pf.TotalVariationFamily(CHAIN.transition_matrix, 0.02),
        pf.forgetting(pf.MarkovChain(CHAIN.transition_matrix), 60),
    )
    yield from (pf.LabelledChain(CHAIN, [0, 1]), pf.PeriodicChain([CHAIN.transition_matrix]))
    yield pf.fit(pd.Series(["off", "on", "off", "off", "on", "on", "off"] * 3), states=["off", "on"])
    people = pd.DataFrame({"participant": [f"p{i // 3}" for i in range(600)], "value": ["off", "off", "on"] * 200})
    who = {"participant": "participant", "states": ["off", "on"]}
    yield pf.fit_privately(people, 9.0, most_transitions=2, **who)
    yield pf.release(people["value"], MODEL, 1.0, seed=1, accept_noise=True)
    options = {"states": 2, "step": "1h", "participants": 3, "period": "1d"}
    yield pf.plan(HOUR, ["histogram"], **options)
    yield pf.Ledger.create(folder / "some.ledger")
    yield from (pf.RunningCount(9, 1.0), pf.WrappedMeasurement(None, HOUR, 9, 0.1, NARROWEST))
    yield pf.PufferfishFramework({"s": {"well": {0: 1}, "ill": {1: 1}}})
    yield from (*networks(), *hidden_markov_models(), *differential_privacy())


def public_classes():
    rooms = ("hmm", "networks")
    names = [name for name in dir(pf) if name not in ("dp", *rooms)]
    names += [f"dp.{name}" for name in vars(pf.dp)]
    names += [f"{room}.{name}" for room in rooms for name in getattr(pf, room).__all__]
    found = [attrgetter(name)(pf) for name in names]
    return {one for one in found if inspect.isclass(one) and not issubclass(one, Exception)}


def test_every_public_object_is_one_line_and_a_table(tmp_path, scales_once):
    met = set()
    for thing in made(tmp_path):
        met.add(type(thing))
        line = repr(thing)
        assert "\n" not in line, line
        assert " object at 0x" not in line, line
        assert len(line) < 400, line
        if hasattr(thing, "_repr_html_"):
            html = thing._repr_html_()
            assert re.fullmatch(r"<(table|code)>.*</\1>", html, flags=re.DOTALL)
            assert ("NOT PRIVATE" in line) == ("NOT PRIVATE" in html)
    assert met >= public_classes()


def test_what_is_shown_of_an_object():
    @displayed("name", "scale", "nothing", "rows", "table")
    class Thing:
        name, scale, nothing, rows, table = "<b>", np.float64(1 / 3), None, tuple(range(100)), np.eye(2)

    @displayed()
    @dataclass
    class Pair:
        left: int

    assert repr(Thing()) == (
        "Thing(name='<b>', scale=0.3333333333333333, rows=<100 entries>, table=<ndarray of shape (2, 2)>)"
    )
    assert "<td>&lt;b&gt;</td>" in Thing()._repr_html_()
    assert repr(Pair(1)).endswith("Pair(left=1)")
    assert len(repr(range(100))) < LONGEST


def test_scales_and_histograms_are_drawn():
    pyplot = pytest.importorskip("matplotlib.pyplot")
    axes = pf.leakage(CHAIN, 100, 1.0).plot(lipschitz=2)
    scale = pf.leakage(CHAIN, 100, 1.0).scale * 2
    noise, density = axes.collections[0].get_paths()[0].vertices.T
    assert density.max() == pytest.approx(1 / (2 * scale))
    assert 0 in noise
    pyplot.close("all")
    with pytest.raises(ParameterError, match="not applicable"):
        pf.gk16(CHAIN, 100, 1.0).plot()


@pytest.mark.parametrize("part", [pf, pf.hmm, pf.networks], ids=lambda part: part.__name__)
def test_completion_offers_public_names_only(part):
    assert set(part.__all__) <= set(dir(part))
    if part is pf:
        assert [name for name in dir(part) if name.startswith("_")] == []
        assert set(dir(part)) == set(part.__all__)


def test_bars_are_for_terminals_and_notebooks(monkeypatch, capsys):
    monkeypatch.delenv("TQDM_DISABLE", raising=False)
    assert list(progress(range(3))) == [0, 1, 2]
    assert progress(range(3)).disable  # nobody watches
    monkeypatch.setitem(sys.modules, "ipykernel", sys)
    assert not progress(range(3), file=sys.stdout).disable
    assert progress(range(3), hidden=True).disable
    monkeypatch.setenv("TQDM_DISABLE", "1")
    assert progress(range(3)).disable
