"""Results show themselves in one line, without values of records, and are values."""

import inspect
from dataclasses import replace
from operator import attrgetter

import numpy as np
import pandas as pd
import pytest
from frozen_families import BUILDERS, built
from public_calls import CALLS

import pufferflow as pf
from pufferflow.audit import CountQuery
from pufferflow.models import confidence_family
from pufferflow.records import StateSpace
from pufferflow.records.read import read
from reproduction.data.sample import Participant, Sample


def public_classes():
    rooms = ("dp", "hmm", "networks")
    names = [name for name in dir(pf) if name not in rooms]
    names += [f"{room}.{name}" for room in rooms for name in getattr(pf, room).__all__]
    found = [attrgetter(name)(pf) for name in names]
    return {one for one in found if inspect.isclass(one) and not issubclass(one, Exception)}


def made():
    """An object of every public class that is no error: results and arguments of all functions."""
    for function, arguments in CALLS:
        if arguments.get("path") != "missing":
            owner = getattr(function, "__self__", None)
            for one in (function(**arguments), owner, *arguments.values()):
                yield from one if isinstance(one, tuple | list) else [one]


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
    yield from (fit, fit.family, fit.family.chains[0], read(values, schema))
    yield from (pf.Accountant(fit, 5), pf.mqm_exact(fit, 5, 1.0))
    yield from (confidence_family(counts, 0.9), pf.fit_chain(counts))
    yield pf.release(values, public, 1.0, seed=1, accept_noise=True, fitted_to_others=True)
    ages = pf.dp.Domain({"age": range(NUMBER - 1, NUMBER + 1)})
    yield pf.dp.Publisher([(NUMBER,)], ages, d=0.1, gamma=0.5)
    yield pf.dp.publish([(NUMBER,)], ages, pf.dp.choose_alpha_beta(0.1, 0.5), insecure_seed=1)


def test_every_public_object_is_one_line(tmp_path, monkeypatch, only_svg, scales_once):
    monkeypatch.chdir(tmp_path)
    ours = [thing for thing in made() if type(thing).__module__.startswith("pufferflow")]
    for line in map(repr, ours):
        assert "\n" not in line, line
        assert " object at 0x" not in line, line
        assert len(line) < 400, line
    assert {type(thing) for thing in ours} >= public_classes()


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


def test_models_are_their_values():
    models = [*map(built, BUILDERS), pf.MarkovChain([[1.0]], "any")]
    again = [built.__wrapped__(name) for name in BUILDERS]
    assert again == models[: len(again)]
    assert list(map(hash, again)) == list(map(hash, models[: len(again)]))
    assert len({*models, *again}) == len(models)
    assert models[0] != "a chain"


def test_a_fit_is_taken_for_its_family():
    fit = pf.fit(pd.DataFrame({"value": list("abbaabab")}), states=["a", "b"])
    of_fit, of_model = pf.mqm_exact(fit, 100, 1.0), pf.mqm_exact(fit.model, 100, 1.0)
    assert of_fit == of_model == pf.mqm_exact(fit.family, 100, 1.0)
    assert pf.Accountant(fit, 10).curve.family == fit.family
    assert pf.privacy_loss(fit, 5, 3.0, CountQuery([1])).loss > 0
