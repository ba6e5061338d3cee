"""What Section 5.3 says of the household beside the people: a longer chain, a smaller error in each bin."""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd

from pufferflow.reporting.comparison import Row, claim


def bin_claims(household: pd.DataFrame, people: pd.DataFrame) -> Iterator[Row]:
    """The error per bin of MQMExact for the household and for single people, where both have one at an ε.

    Both are tables of ``studies.histograms.measure.errors``.
    """
    tables = (household, people[people["task"] == "individual"])
    exact = [table[table["mechanism"] == "mqm-exact"].dropna(subset=["expected_error"]) for table in tables]
    for epsilon in sorted(set(exact[0]["epsilon"]) & set(exact[1]["epsilon"])):
        own, theirs = ((t["expected_error"] / t["bins"])[t["epsilon"] == epsilon] for t in exact)
        yield claim(
            f"longer chains give better utility: error per bin of the household below that of any person, MQMExact, "
            f"ε = {epsilon:g}",
            "Section 5.3, electricity",
            "smaller",
            f"{own.max():.2g} against {theirs.min():.2g} to {theirs.max():.2g}",
            bool(own.max() < theirs.min()),
            f"electricity, {household['label'].iloc[0]}",
            "our household's chain forgets more slowly than these people's by more than it is longer",
        )
