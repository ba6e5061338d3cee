"""Whatever is given for an argument of a public function: a result in one line, or one sentence."""

import math
from contextlib import suppress
from functools import cache

import numpy as np
import pandas as pd
import pytest
from cases import counts
from public_calls import CALLS, RNG

import pufferflow as pf
from reproduction.data.sample import Participant, Sample

pytestmark = pytest.mark.usefixtures("only_svg", "scales_once")
NO_NUMBER = ("3", True, math.nan, [], [1.5], 1j)
NEVER = {int: (*NO_NUMBER, math.inf, 1.5), float: (*NO_NUMBER, math.inf, -1, 10**400)}
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


@cache
def secrets():
    """Things that hold private records, of all kinds that could be given by mistake."""
    values = pd.Series([SECRET, "b", "b"] * 4, name="value")
    fit = pf.fit(values, states=[SECRET, "b"])
    counts = np.array([[NUMBER, 3], [2, NUMBER]])
    numbers = pd.DataFrame({"value": [NUMBER, NUMBER + 1.5]})
    exact = Participant("p", "g", (6,), counts[0], counts)
    sample = Sample("x", "file", "x", 60, ("a", "b"), (exact,))
    return [
        *(values, values.to_frame(), values.tolist(), values.to_numpy()),
        *(set(values), dict.fromkeys(values, 1)),
        *(numbers, numbers["value"], numbers.to_numpy()),
        *(counts, counts.tolist(), counts[0], tuple(counts[0].tolist())),
        *({"x": [NUMBER]}, [[NUMBER, SECRET]], [NUMBER * 1j]),
        *(f"time,value\n1,{SECRET}\n", SECRET * 50),
        *(fit, sample, exact, fit.model, [fit], (sample,), Secretive(), [Secretive()]),
        *(SECRET.encode(), bytearray(SECRET.encode())),
        *(values.index.map(str) + SECRET, pd.Categorical(values)),
    ]


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
                assert str(NUMBER) not in said.replace(",", "").replace(".", ""), (
                    name,
                    type(secret),
                    said,
                )
