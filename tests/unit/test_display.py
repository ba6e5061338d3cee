"""Results show themselves in one line, without any value of a record, and are their values; public names."""

import inspect
from dataclasses import replace
from operator import attrgetter

import numpy as np
import pandas as pd
import pytest

import pufferflow as pf
from pufferflow._util.protection import NARROWEST
from pufferflow.audit import CountQuery, HistogramQuery
from pufferflow.models import confidence_family
from pufferflow.records import Schema, StateSpace
from pufferflow.records.read import read
from reproduction.data.sample import Participant, Sample

CHAIN = pf.MarkovChain([[0.9, 0.1], [0.4, 0.6]], initial_distribution=[1, 0])
STATIONARY = pf.MarkovChain(CHAIN.transition_matrix)
HOUR = pf.MixingFamily(60, 0.4)
BOUNDS = [[0.85, 0.05], [0.15, 0.75]], [[0.95, 0.15], [0.25, 0.85]]
QUERY = CountQuery({1})
MODEL = pf.models.PublicModel(pf.ChainFamily([CHAIN]), Schema(states=StateSpace.categories(["off", "on"])))


def networks():
    pair = pf.networks.Variable("A", [0.5, 0.5]), pf.networks.Variable("B", [[0.9, 0.1], [0.2, 0.8]], ["A"])
    network = pf.networks.BayesianNetwork(pair)
    scale = pf.networks.markov_quilt_mechanism(network, 1.0)
    yield from (network, pair[0], scale, next(pf.networks.markov_quilts(network, "A")))


def hidden_markov_models():
    keep, coin = [[1, 0], [0, 1]], [["3/4", "1/4"], ["1/4", "3/4"]]
    model = pf.hmm.HiddenMarkovModel(keep, coin, {"ill": [1, 0], "healthy": [0, 1]}, length=1)
    family = pf.hmm.PriorFamily(keep, coin, {"ill": ["1 - p", "p"], "healthy": ["p", "1 - p"]}, {"p": [0, 1]}, length=1)
    yield from (model, family, pf.hmm.check(model, 3), pf.hmm.largest_ratio(model), pf.hmm.NoisyMax("index"))
    yield pf.hmm.sup_ratio(family)
    yield pf.hmm.preserving_region(family, 2)
    yield pf.hmm.largest_value_ratio(2, "one-by-one")


def differential_privacy():
    people, level = pf.dp.Domain({"age": range(3), "ill": [False, True]}), pf.dp.choose_alpha_beta(0.1, 0.5)
    coin = pf.dp.FiniteMechanism({"yes": ["3/4", "1/4"], "no": ["1/4", "3/4"]})
    publisher = pf.dp.Publisher([(1, True)], people, d=0.1, gamma=0.5)
    publication = pf.dp.publish([(1, True)], people, level, insecure_seed=1)
    exponential = pf.dp.Base2Exponential(pf.dp.Eta(1, 1, 1), 0, 2, max_outcomes=3)
    yield from (people, level, coin, coin.level(), publisher)
    yield from (pf.dp.check_views([level], 0.1, 0.5), publication, exponential)
    yield publication.count()
    yield from (pf.dp.Eta(1, 1, 1), pf.dp.Base2Laplace(pf.dp.Eta(1, 1, 1), 0, 2, 1))
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
        HistogramQuery(),
    )
    yield pf.privacy_loss(CHAIN, 10, 3.0, QUERY)
    yield pf.verify_certificate(pf.certify(CHAIN, 100, 1.0))
    yield from (pf.BinaryInterval(0.1, 0.9), pf.IntervalFamily(*BOUNDS))
    yield from (
        pf.TotalVariationFamily(CHAIN.transition_matrix, 0.02),
        pf.models.mixing_of(pf.MarkovChain(CHAIN.transition_matrix), 60),
    )
    yield from (pf.HiddenChain(CHAIN, [0, 1]), pf.PeriodicChain([CHAIN.transition_matrix]))
    yield pf.fit(pd.Series(["off", "on", "off", "off", "on", "on", "off"] * 3), states=["off", "on"])
    people = pd.DataFrame({"participant": [f"p{i // 3}" for i in range(600)], "value": ["off", "off", "on"] * 200})
    who = {"participant": "participant", "states": ["off", "on"]}
    yield pf.fit_privately(people, 9.0, most_transitions=2, **who)
    yield pf.release(people["value"], MODEL, 1.0, seed=1, accept_noise=True)
    options = {"states": 2, "step": "1h", "participants": 3, "period": "1d"}
    yield pf.plan(HOUR, ["histogram"], **options)
    yield pf.Ledger.create(folder / "some.ledger")
    yield from (pf.RunningCount(9, 1.0), pf.accounting.WrappedMeasurement(None, HOUR, 9, 0.1, NARROWEST))
    yield pf.PufferfishFramework({"s": {"well": {0: 1}, "ill": {1: 1}}})
    yield from (*networks(), *hidden_markov_models(), *differential_privacy())


def public_classes():
    rooms = ("dp", "hmm", "networks")
    names = [name for name in dir(pf) if name not in rooms]
    names += [f"{room}.{name}" for room in rooms for name in getattr(pf, room).__all__]
    found = [attrgetter(name)(pf) for name in names]
    return {one for one in found if inspect.isclass(one) and not issubclass(one, Exception)}


SECRET, NUMBER = "S3CRET", 271829
"""A reading and a count, which nothing shows."""


def holding_records():
    """One object of every class that is made from records, of secret ones."""
    values = pd.Series([SECRET, "b", "b"] * 4 + [NUMBER] * 7)
    fit = pf.fit(values, states=[SECRET, "b", str(NUMBER)])
    schema = replace(fit.model.records, states=StateSpace.categories([SECRET, "b", str(NUMBER)]))
    public = replace(fit.model, records=schema)
    counts = np.array([[NUMBER, 3], [2, NUMBER]])
    person = Participant("p", "g", (6,), counts[0], counts)
    yield from (person, Sample("x", "file", "x", 60, ("a", "b"), (person,)))
    yield from (fit, fit.family, fit.family.chains[0], confidence_family(counts, 0.9), read(values, schema))
    yield from (pf.Accountant(fit, 5), pf.mqm_exact(fit, 5, 1.0))
    yield pf.release(values, public, 1.0, seed=1, accept_noise=True, fitted_to_others=True)
    yield pf.fit_chain(counts)
    ages = pf.dp.Domain({"age": range(NUMBER - 1, NUMBER + 1)})
    yield pf.dp.Publisher([(NUMBER,)], ages, d=0.1, gamma=0.5)
    yield pf.dp.publish([(NUMBER,)], ages, pf.dp.choose_alpha_beta(0.1, 0.5), insecure_seed=1)


def test_every_public_object_is_one_line(tmp_path, scales_once):
    met = set()
    for thing in made(tmp_path):
        met.add(type(thing))
        line = repr(thing)
        assert "\n" not in line, line
        assert " object at 0x" not in line, line
        assert len(line) < 400, line
    assert met >= public_classes()


def test_what_is_made_from_records_shows_none_of_them():
    for thing in holding_records():
        for text in (repr(thing), str(thing), repr([thing])):
            assert SECRET not in text
            assert str(NUMBER) not in text.replace(",", "")
            assert "\n" not in text
        assert ("NOT PRIVATE" in repr(thing)) == isinstance(thing, pf.Release)


@pytest.mark.parametrize("part", [pf, pf.hmm, pf.networks], ids=lambda part: part.__name__)
def test_completion_offers_public_names_only(part):
    assert set(part.__all__) <= set(dir(part))
    if part is pf:
        assert [name for name in dir(part) if name.startswith("_")] == []
        assert set(dir(part)) == set(part.__all__)


# -- values ------------------------------------------------------------------------------------------

P = [[0.9, 0.1], [0.4, 0.6]]
MAKERS = (
    lambda p: pf.MarkovChain(p),
    lambda p: pf.ChainFamily([pf.MarkovChain(p, "any")]),
    lambda p: pf.IntervalFamily(np.array(p) / 2, np.ones((2, 2)), backward=pf.IntervalFamily(p, p)),
    lambda p: pf.TotalVariationFamily(p, [0.1, 0.2]),
    lambda p: pf.HiddenChain(pf.MarkovChain(p), [0, 1]),
    lambda p: pf.PeriodicChain([p, P]),
    lambda p: pf.BinaryInterval(p[0][1], 0.9),
    lambda p: pf.MixingFamily(5, p[0][1]),
)


@pytest.mark.parametrize("make", MAKERS)
def test_what_is_made_of_the_same_numbers_is_equal_and_has_one_hash(make):
    one, same, other = make(P), make(np.array(P)), make([[0.8, 0.2], [0.4, 0.6]])
    assert one == same
    assert hash(one) == hash(same)
    assert one != other
    assert one != "a chain"
    assert len({one, same, other}) == 2


def test_the_start_is_a_part_of_the_value():
    assert pf.MarkovChain(P) != pf.MarkovChain(P, "any")
    assert pf.MarkovChain(P, [1, 0]) != pf.MarkovChain(P, [0, 1])
    assert pf.IntervalFamily(P, P) != pf.TotalVariationFamily(P, [0.0, 0.0])


def test_a_fit_is_taken_for_its_family():
    fit = pf.fit(pd.DataFrame({"value": list("abbaabab")}), states=["a", "b"])
    of_fit, of_model = pf.mqm_exact(fit, 100, 1.0), pf.mqm_exact(fit.model, 100, 1.0)
    assert of_fit == of_model == pf.mqm_exact(fit.family, 100, 1.0)
    assert pf.Accountant(fit, 10).family == fit.family
    assert pf.privacy_loss(fit, 5, 3.0, CountQuery([1])).loss > 0
