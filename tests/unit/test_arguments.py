"""Whatever is given for an argument of a public function: a result or one sentence. Results show
themselves in one line, and nothing shows values of records.
"""

import inspect
import math
from contextlib import suppress
from dataclasses import replace
from functools import cache
from operator import attrgetter

import numpy as np
import pandas as pd
import pytest
from cases import counts
from public_calls import CALLS, RNG
from written_calls import BUILDERS, built

import pufferflow as pf
from pufferflow.audit import CountQuery
from pufferflow.models import confidence_family
from pufferflow.publish import Plan
from pufferflow.records import StateSpace
from pufferflow.records.read import read
from reproduction.data.sample import Participant, Sample

pytestmark = pytest.mark.usefixtures("only_svg")
NO_NUMBER = ("3", True, math.nan, [], [None], 1j, math.inf)
NEVER = {int: (*NO_NUMBER, 1.5, [1.5]), float: (*NO_NUMBER, -1, 10**400)}
SOMETHING = (None, "x", True, math.nan, -1, 0, 1.5, [1.5], {}, RNG)
ANYTHING = (*SOMETHING, "", math.inf, [], [None], b"x", 1j)


def each(test):
    """Every function; an argument is given every kind of thing, or some of the kinds and the next
    argument others.
    """
    ids = [f"{function.__qualname__}-{','.join(arguments)}" for function, arguments in CALLS]
    test = pytest.mark.parametrize(("function", "arguments"), CALLS, ids=ids)(test)
    return pytest.mark.usefixtures("in_a_folder")(
        pytest.mark.parametrize("every", counts(4, 1))(test)
    )


@pytest.fixture
def in_a_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@each
def test_one_sentence(function, arguments, every):
    if arguments.get("path") != "missing":
        function(**arguments)
    for number, (name, value) in enumerate(arguments.items()):
        if type(value) is int:
            function(**arguments | {name: np.int64(value)})
        if type(value) is float:
            function(**arguments | {name: np.float32(value)})
        for bad in NEVER.get(type(value), ()):
            with pytest.raises(pf.PufferflowError, match=name.rstrip("s")):
                function(**arguments | {name: bad})
        for odd in ANYTHING[number % every :: every]:
            with suppress(pf.PufferflowError):
                function(**arguments | {name: odd})


SECRET = "S3CRET"
NUMBER = 271829


class Secretive:
    """Something that shows what it holds, as a frame does."""

    def __repr__(self):
        return SECRET


VALUES = pd.Series([SECRET, "b", "b"] * 4 + [NUMBER] * 7, name="value")
COUNTS = np.array([[NUMBER, 3], [2, NUMBER]])
PERSON = Participant("p", "g", (6,), COUNTS[0], COUNTS)
SAMPLE = Sample("x", "file", "x", 60, ("a", "b"), (PERSON,))


@cache
def fitted():
    return pf.fit(VALUES, states=[SECRET, "b", str(NUMBER)])


@cache
def secrets():
    """Things that hold private records, of all kinds that could be given by mistake."""
    values, fit = VALUES[:12], fitted()
    numbers = pd.DataFrame({"value": [NUMBER, NUMBER + 1.5]})
    return [
        *(values, values.to_frame(), values.tolist(), values.to_numpy()),
        *(set(values), dict.fromkeys(values, 1)),
        *(numbers, numbers["value"], numbers.to_numpy()),
        *(COUNTS, COUNTS.tolist(), COUNTS[0], tuple(COUNTS[0].tolist())),
        *({"x": [NUMBER]}, [[NUMBER, SECRET]], [NUMBER * 1j]),
        *(f"time,value\n1,{SECRET}\n", SECRET * 50),
        *(fit, SAMPLE, PERSON, fit.model, [fit], (SAMPLE,), Secretive(), [Secretive()]),
        *(SECRET.encode(), bytearray(SECRET.encode())),
        *(values.index.map(str) + SECRET, pd.Categorical(values)),
    ]


def made_from_records():
    """One object of every class that is made from records, of secret ones."""
    fit = fitted()
    schema = replace(fit.model.records, states=StateSpace.categories([SECRET, "b", str(NUMBER)]))
    public = replace(fit.model, records=schema)
    yield from (PERSON, SAMPLE, fit, fit.family, fit.family.chains[0], read(VALUES, schema))
    yield from (pf.Accountant(fit, 5), pf.mqm_exact(fit, 5, 1.0))
    yield from (confidence_family(COUNTS, 0.9), pf.fit_chain(COUNTS))
    yield pf.release(VALUES, public, 1.0, seed=1, accept_noise=True, fitted_to_others=True)
    ages = pf.dp.Domain({"age": range(NUMBER - 1, NUMBER + 1)})
    yield pf.dp.Publisher([(NUMBER,)], ages, d=0.1, gamma=0.5)
    yield pf.dp.publish([(NUMBER,)], ages, pf.dp.choose_alpha_beta(0.1, 0.5), insecure_seed=1)


PATHS = ("source", "theta", "path", "ledger", "output")
"""What a message about a missing file has to name: a text of one line is taken for a name."""

MODELS = (
    *("document", "columns", "priors", "secrets", "parents", "quilt", "mechanisms"),
    *("initial_distributions", "parameters", "query", "outputs", "epsilons", "pairs"),
    *("distributions", "scenarios", "belief", "groups"),
)
"""Names in them are those of a model, which a message may say; numbers are not."""


def may_be_shown(name, secret):
    """Names of files and of parts of models are no records."""
    one_line = isinstance(secret, str) and "\n" not in secret
    return (name in PATHS and one_line) or name in MODELS


def told(error):
    """All that a traceback says of an error and of those it came from."""
    text = str(error)
    before = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    return text if before is None else f"{text}\n{told(before)}"


@each
def test_no_error_shows_what_an_argument_holds(function, arguments, every):
    first = next(i for i, (_, given) in enumerate(CALLS) if given is arguments)
    for number, name in enumerate(arguments, first):
        for secret in secrets()[number % every :: every]:
            if name == "lengths":  # numbers would be lengths, of which long ones take long
                continue
            try:
                function(**arguments | {name: secret})
            except Exception as error:
                said = told(error)
                assert SECRET not in said or may_be_shown(name, secret), (name, type(secret), said)
                digits = said.replace(",", "").replace(".", "")
                assert str(NUMBER) not in digits, (name, type(secret), said)


# -- results --------------------------------------------------------------------------------------


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


@pytest.mark.usefixtures("in_a_folder")
def test_every_public_object_is_one_line():
    ours = [thing for thing in made() if type(thing).__module__.startswith("pufferflow")]
    for line in (repr(thing) for thing in ours if not isinstance(thing, Plan)):  # it is a table
        assert "\n" not in line, line
        assert " object at 0x" not in line, line
        assert len(line) < 400, line
    assert {type(thing) for thing in ours} >= public_classes()


def test_what_is_made_from_records_shows_none_of_them():
    for thing in made_from_records():
        for text in (repr(thing), str(thing), repr([thing])):
            assert SECRET not in text
            assert str(NUMBER) not in text.replace(",", "")
            assert "\n" not in text
        assert ("NOT PRIVATE" in repr(thing)) == isinstance(thing, pf.Release)


def test_completion_offers_public_names():
    for part in (pf.hmm, pf.networks, pf.dp):
        assert set(part.__all__) <= set(dir(part))


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
