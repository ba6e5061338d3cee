"""The one short text of a number, however it is written."""

from fractions import Fraction

import pytest
from cases import examples
from hypothesis import given
from hypothesis import strategies as st

from pufferflow.records.states import shortest

LONG = "1234567890123456789012345678901234567890.1"
SHORT = {"0.0": "0", "-0": "0", "+0.10": "0.1", "1.0e-3": "0.001", ".5": "0.5", "5.": "5"}
SHORT |= {"1e3": "1000", f"{LONG}0": LONG}
SHORT |= dict.fromkeys(["", "abc", "inf", "nan", "1e400", "1,5", "0x1", "1_0", " 1", "-", "１"])


@pytest.mark.parametrize(("text", "short"), SHORT.items())
def test_the_shortest_text(text, short):
    assert shortest(text) == short


@examples(12, 120)
@given(st.decimals("-1E300", "1E300"))
def test_the_shortest_text_is_the_same_number_exactly(number):
    short = shortest(str(number))
    assert short is not None
    assert Fraction(short) == Fraction(str(number))
    assert shortest(short) == shortest(f"{number:E}") == shortest(f"{number:f}") == short
