"""What Figure 4, upper row, shows: the order of the mechanisms, and where GK16 does not apply."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import pandas as pd

from pufferflow.reporting.comparison import Row, claim, increasing
from pufferflow.reporting.style import mechanism_style


class _Setting(NamedTuple):
    epsilons: tuple[float, ...]
    length: int
    alphas: tuple[float, float]


FIGURE_4 = _Setting((0.2, 1.0, 5.0), 100, (0.1, 0.4))
"""The paper's settings of the upper row of Figure 4; α from the first to the second."""


def ordinal_claims(errors: pd.DataFrame, limits: pd.DataFrame | None = None) -> Iterator[Row]:
    """Claims of the figure, each with what holds here."""
    place = "Figure 4, upper row"
    present = set(errors["mechanism"])
    alphas = errors["alpha"].astype(float)
    own_chains = bool((errors["length"] == FIGURE_4.length).all()) and (
        abs(alphas.min() - FIGURE_4.alphas[0]) < 1e-9 and abs(alphas.max() - FIGURE_4.alphas[1]) < 1e-9
    )
    for epsilon, at_epsilon in errors.groupby("epsilon", sort=False):
        own = own_chains and epsilon in FIGURE_4.epsilons
        wide = at_epsilon.pivot_table(index="alpha", columns="mechanism", values="expected_error", dropna=False)
        if {"mqm-exact", "mqm-approx"} <= present:
            below = wide["mqm-exact"] < wide["mqm-approx"]
            ours = f"at {int(below.sum())} of {len(below)} values of α"
            text = f"MQMExact < MQMApprox, ε = {epsilon:g}"
            yield claim(text, place, "at every α", ours, bool(below.all()), "synthetic", same_setting=own)
        for mechanism in ("mqm-exact", "mqm-approx"):
            if mechanism in present and len(wide) > 1:
                curve = wide[mechanism].sort_index(ascending=False).to_list()
                text = f"the error of {mechanism_style(mechanism).label} falls as α rises, ε = {epsilon:g}"
                ours = f"{curve[-1]:.4g} at α = {wide.index.min():g} down to {curve[0]:.4g} at α = {wide.index.max():g}"
                yield claim(text, place, "falls", ours, increasing(curve), "synthetic", same_setting=own)
    if "gk16" in present and limits is not None and len(limits):
        limit = float(limits["alpha"].iloc[0])
        gk16 = errors[errors["mechanism"] == "gk16"]
        holds = bool(((gk16["alpha"] > limit) == (gk16["status"] == "ok")).all())
        ours = f"not applicable below α = {limit:.4f} at every ε"
        text = "GK16 is not applicable left of the dashed line"
        yield claim(text, place, "not applicable", ours, holds, "synthetic", same_setting=own_chains)
