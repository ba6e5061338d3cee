"""Numbers as texts: one state for all ways of writing a number, and what is no number among many is refused."""

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from cases import examples
from hypothesis import given
from hypothesis import strategies as st

import pufferflow as pf
from pufferflow._numbers import shortest
from pufferflow.records.reading import Reading

pytestmark = pytest.mark.usefixtures("scales_once")
RNG = np.random.default_rng(8)
BITS = RNG.integers(0, 2, 60)
STRAYS = ("abc", "inf", "1e400", "1,234.5", "-Infinity", "0x10")


def csv(path, texts, header="value"):
    path.write_text("\n".join([header, *map(str, texts)]) + "\n")
    return path


@pytest.mark.parametrize(
    ("text", "short"),
    [
        *(
            ("0.0", "0"),
            ("-0", "0"),
            ("+0.10", "0.1"),
            ("1.0e-3", "0.001"),
            (".5", "0.5"),
            ("5.", "5"),
            ("1e3", "1000"),
        ),
        *(("1234567890123456789012345678901234567890.10", "1234567890123456789012345678901234567890.1"),),
        *((text, None) for text in ("", "abc", "inf", "nan", "1e400", "1,5", "0x1", "1_0", " 1", "-", "１")),
    ],
)
def test_the_shortest_text(text, short):
    assert shortest(text) == short


@examples(12, 120)
@given(st.decimals(allow_nan=False, allow_infinity=False, min_value=Decimal("-1E300"), max_value=Decimal("1E300")))
def test_the_shortest_text_is_the_same_number_exactly(number):
    short = shortest(str(number))
    assert short is not None
    assert Fraction(short) == Fraction(str(number))
    assert shortest(short) == shortest(f"{number:E}") == shortest(f"{number:f}") == short


def test_zero_is_one_state_however_it_is_written(tmp_path):
    """pandas writes 0 and 1 as 0.0 and 1.0 once a value is missing."""
    fit = pf.fit_records(csv(tmp_path / "a.csv", BITS))
    later = pd.DataFrame({"value": [None, *map(float, BITS)]})
    later.to_csv(tmp_path / "b.csv", index=False)
    later.to_parquet(tmp_path / "b.parquet")
    assert "1.0" in (tmp_path / "b.csv").read_text()
    exact = []
    tables = [tmp_path / "b.csv", tmp_path / "b.parquet", later, later.astype("str"), later.astype("float32")]
    for table in tables:
        fitted = pf.fit_records(table)
        assert fitted.sample.states == ("0", "1")
        exact.append(fitted.sample.participants[0].state_counts.tolist())
        made = pf.release_histogram(table, fit.model, 1e6, ledger=None)
        assert list(made.counts) == np.bincount(BITS).tolist()  # at this epsilon there is no noise
    assert exact == [np.bincount(BITS).tolist()] * len(tables)
    named = pf.RecordFormat(pf.StateSpace.categories(["0.00", "1.0"]))
    chain = fit.model.family.chains[0]
    assert pf.release_histogram(later, chain, 1e6, ledger=None, form=named).states == ("0.00", "1.0")
    with pytest.raises(pf.ParameterError, match=r"the states '1' and '1.0' are the same number; name it once"):
        pf.StateSpace.categories(["1", "0", "1.0"])


def test_numbers_are_read_with_their_signs(tmp_path):
    texts = ["+0.1", "1.0e-3", "0.5", "0.50", ".1"] * 12
    assert pf.fit_records(csv(tmp_path / "a.csv", texts)).sample.states == ("0.001", "0.1", "0.5")
    german = csv(tmp_path / "b.csv", ["0,5", "1.234,50", "1.234,5"] * 20)
    reading = Reading(decimal=",", thousands=".")
    with pytest.raises(pf.DataError, match="seem to be separated"):
        pf.fit_records(csv(tmp_path / "c.csv", ["1;2"] * 5, "a;b"), reading=Reading(decimal=","))
    german.write_text(german.read_text().replace("value", "n;value").replace("\n0", "\n1;0").replace("\n1.", "\n2;1."))
    reading = Reading(separator=";", decimal=",", thousands=".", rows_are_steps=True)
    fit = pf.fit_records(german, reading=reading)
    assert fit.sample.states == ("0.5", "1234.5")
    many = [f"{i},{j:03}.5" for i in range(1, 4) for j in range(0, 900, 70)]
    frame = pd.DataFrame({"value": many})
    english = pf.fit_records(frame, reading=Reading(thousands=","), states=pf.States(edges=(2000.0, 3000.0)))
    assert english.sample.participants[0].state_counts.tolist() == [13, 13, 13]
    with pytest.raises(pf.DataError, match="the value '1,5' is no number"):
        pf.fit_records(
            pd.DataFrame({"value": ["1,5", *many]}), reading=Reading(thousands=","), states=pf.States(bins=3)
        )


@pytest.mark.parametrize(
    ("stray", "different"),
    [
        *((stray, 3) for stray in STRAYS),
        *(pytest.param(stray, 20, marks=() if stray in STRAYS[:2] else pytest.mark.long) for stray in STRAYS),
    ],
)
def test_a_stray_text_among_numbers_is_refused_with_its_line(tmp_path, stray, different):
    texts = [str(i % different / 4) for i in range(100)]
    texts[40] = f'"{stray}"'
    path = csv(tmp_path / "a.csv", texts)
    for states in (None, pf.States(bins=2)):
        with pytest.raises(pf.DataError, match=f"line 42: the value '{stray}' is no number"):
            pf.fit_records(path, states=states)
    fit = pf.fit_records(path, states=pf.States(top=different))
    assert fit.sample.states[-1] == "other"
    if different == 3:
        asked = pf.States(names=("0.0", "0.25", "0.5", stray))
        assert pf.fit_records(path, states=asked).sample.participants[0].state_counts[3] == 1


def test_an_infinite_number_of_a_frame_is_no_number():
    with pytest.raises(pf.DataError, match="row 3: the value 'inf' is no number"):
        pf.fit_records(pd.DataFrame({"value": [0.0, 1.0, np.inf, 2.0] * 9}))


def test_few_texts_with_some_numbers_are_categories():
    fit = pf.fit_records(pd.DataFrame({"value": ["1", "home", "away", "1"] * 9}))
    assert fit.sample.states == ("1", "away", "home")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"thousands": "."}, "thousands and decimal are both"),
        ({"thousands": "00"}, "must be one character"),
        ({"decimal": "e"}, "a part of numbers"),
        ({"thousands": "7"}, "a part of numbers"),
    ],
)
def test_signs_that_cannot_be(options, message):
    with pytest.raises(pf.ParameterError, match=message):
        Reading(**options)


def test_control_characters_in_names_of_states():
    with pytest.raises(pf.ParameterError, match=r"'a\\x1b\[2J' of a state has a control character"):
        pf.fit_records(pd.DataFrame({"value": ["a\x1b[2J", "b"] * 9}))


def numbers_of(values, **signs):
    from pufferflow.records.rows import open_records

    records = open_records(pd.DataFrame({"value": values}), Reading(value="value", **signs))
    [chunk] = records.chunks("reading")
    return records.numbers(chunk, strict=False)


@pytest.mark.parametrize("kind", ["decimal", "float", "object"])
def test_signs_are_those_of_texts_only(kind):
    """A chain fitted to a German CSV passes its signs on to typed tables, whose numbers are what they are."""
    from decimal import Decimal

    plain = [0.125, 0.25, 1.125, 12.5]
    values = {"decimal": [Decimal(str(v)) for v in plain], "float": plain, "object": pd.Series(plain, dtype=object)}
    found, bad = numbers_of(values[kind], decimal=",", thousands=".")
    assert found.tolist() == plain
    assert not bad.any()


def test_malformed_numbers_are_none():
    texts = ["1,5", "1.500", "12.500,25", "-1.234.567", "1500", ",5", "1e3"]
    found, bad = numbers_of(texts, decimal=",", thousands=".")
    assert found.tolist() == [1.5, 1500.0, 12500.25, -1234567.0, 1500.0, 0.5, 1000.0]
    assert not bad.any()
    for wrong in ("1.5", "0.500", "1.500.5", "12.500.00", "12345.678", "1.5000"):
        assert numbers_of(["1", wrong], decimal=",", thousands=".")[1].tolist() == [False, True]
    assert numbers_of(["1,5", "1.500"], decimal=",")[1].tolist() == [False, True]
    assert numbers_of(["12345,678", "12,345"], thousands=",")[1].tolist() == [True, False]


def test_numbers_among_names_are_numbers():
    space = pf.StateSpace.categories(["0", "1", "off"], other=True)
    assert space.encode_names(["0.0", "1.0", "off", "2", "1e0"]).tolist() == [0, 1, 2, 3, 1]
    with pytest.raises(pf.ParameterError, match=r"'0' and '0\.0' are the same number"):
        pf.StateSpace.categories(["0", "off", "0.0"])
