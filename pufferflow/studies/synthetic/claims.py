"""What Section 5.2 and Figure 4, upper row, say: the order of the mechanisms, where GK16 applies, and what helps."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import pandas as pd

from pufferflow.reporting.comparison import PAPERS, UNJUDGED, Row, claim, increasing, stated_numbers
from pufferflow.reporting.style import mechanism_style
from pufferflow.studies.values import Value, values_table

PLACE = "Figure 4, upper row"
OTHER_GRID = "the claim is about the classes and the length of the figure"


class _Setting(NamedTuple):
    epsilons: tuple[float, ...]
    length: int
    alphas: tuple[float, float]


FIGURE_4 = _Setting((0.2, 1.0, 5.0), 100, (0.1, 0.4))
"""The paper's settings of the upper row of Figure 4; α from the first to the second."""


def synthetic_claims(errors: pd.DataFrame, limits: pd.DataFrame, growth: pd.DataFrame) -> Iterator[Row]:
    """All claims about synthetic chains, from the tables of ``studies.synthetic.measure``."""
    yield from ordinal_claims(errors, limits)
    yield from growth_claims(growth)


def growth_claims(growth: pd.DataFrame) -> Iterator[Row]:
    """What becomes of scales and errors as the chain grows longer, and GroupDP's error, which does not change."""
    growth = growth.dropna(subset=["scale"])
    for epsilon, at_epsilon in growth.groupby("epsilon", sort=False):
        group = at_epsilon[(at_epsilon["mechanism"] == "group-dp") & (at_epsilon["length"] == FIGURE_4.length)]
        if epsilon in FIGURE_4.epsilons and len(group):
            yield from _stated(f"figure4/group-dp/{float(str(epsilon)):g}", float(group["expected_error"].iloc[0]))
        for mechanism in ("mqm-exact", "mqm-approx"):
            curve = at_epsilon[at_epsilon["mechanism"] == mechanism].sort_values("length")
            if len(curve) > 1:
                yield from _longer(mechanism_style(mechanism).label, float(str(epsilon)), curve)


def _stated(key: str, computed: float) -> Iterator[Row]:
    return stated_numbers(values_table([Value("", "", key, computed)]), "synthetic")


def _longer(label: str, epsilon: float, curve: pd.DataFrame) -> Iterator[Row]:
    first, last = curve.iloc[0], curve.iloc[-1]
    ends = (f"{row['expected_error']:.4g} at T = {row['length']}" for row in (first, last))
    ours = " down to ".join(ends)
    # a chain too short for any quilt hides all its records, at an error of 1/ε
    errors = curve["expected_error"]
    falls = bool(errors.is_monotonic_decreasing and errors.iloc[-1] < errors.iloc[0])
    where, alpha = "Section 5, utility", f"α = {first['alpha']:g}, ε = {epsilon:g}"
    text = f"longer chains give better utility: the error of the mean under {label}, {alpha}"
    yield claim(text, where, "falls", ours, falls, "synthetic", "at these lengths it does not")
    settled = curve[curve["scale"] == last["scale"]]["length"].min()
    paper, reason = PAPERS["pufferfish"], "a theorem about all lengths; here those of the grid"
    yield Row(
        paper, "illustration", f"the scale of {label} does not grow with the chain beyond some length, {alpha}",
        "Theorem 4.10", "restored", "bounded", f"{last['scale']:.4g} from T = {settled} on", None, None, "",
        UNJUDGED, reason, "synthetic",
    )  # fmt: skip


def ordinal_claims(errors: pd.DataFrame, limits: pd.DataFrame | None = None) -> Iterator[Row]:
    """Claims of the figure, each with what holds here."""
    alphas = errors["alpha"].astype(float)
    own_chains = bool((errors["length"] == FIGURE_4.length).all()) and (
        abs(alphas.min() - FIGURE_4.alphas[0]) < 1e-9 and abs(alphas.max() - FIGURE_4.alphas[1]) < 1e-9
    )
    for epsilon, at_epsilon in errors.groupby("epsilon", sort=False):
        own = own_chains and epsilon in FIGURE_4.epsilons
        wide = at_epsilon.pivot_table(index="alpha", columns="mechanism", values="expected_error", dropna=False)
        yield from _at(float(str(epsilon)), wide, own)
    if "gk16" in set(errors["mechanism"]) and limits is not None and len(limits):
        yield from _limit(limits, own_chains)


def _at(epsilon: float, wide: pd.DataFrame, own: bool) -> Iterator[Row]:
    """Claims at one ε; ``wide`` has one row an α and one column a mechanism."""

    def row(text: str, reported: str, ours: str, holds: bool, reason: str = OTHER_GRID) -> Row:
        return claim(f"{text}, ε = {epsilon:g}", PLACE, reported, ours, holds, "synthetic", reason, same_setting=own)

    if {"mqm-exact", "mqm-approx"} <= set(wide):
        below = wide["mqm-exact"] < wide["mqm-approx"]
        ours = f"at {int(below.sum())} of {len(below)} values of α"
        yield row("MQMExact < MQMApprox", "at every α", ours, bool(below.all()))
    for mechanism in ("mqm-exact", "mqm-approx", "gk16"):
        if mechanism in wide and wide[mechanism].count() > 1:
            curve = wide[mechanism].dropna().sort_index()
            first, last = (f"{curve.iloc[end]:.4g} at α = {curve.index[end]:g}" for end in (0, -1))
            ours = f"{first} down to {last}"
            # a larger α is a smaller Θ
            text = f"the error of {mechanism_style(mechanism).label} falls as α rises and Θ shrinks"
            yield row(text, "falls", ours, increasing(curve.to_list()[::-1]))
    if {"mqm-exact", "gk16"} <= set(wide):
        both = wide[["mqm-exact", "gk16"]].dropna().sort_index()
        if len(both) > 1:
            better = both["mqm-exact"] < both["gk16"]
            holds = bool(better.iloc[0] and not better.iloc[-1] and better.is_monotonic_decreasing)
            yield row(
                "MQMExact against GK16 where that applies",
                "better for a range of α, somewhat worse beyond it",
                _range(better),
                holds,
                "the text names no ε; at this one the other thing happens over the whole of the figure",
            )


def _range(better: pd.Series[bool]) -> str:
    """Where MQMExact is better, in words."""
    if better.all() or not better.any():
        return f"{'better' if better.all() else 'worse'} at all {len(better)} values of α"
    return f"better at α = {', '.join(f'{alpha:g}' for alpha in better.index[better])}"


def _limit(limits: pd.DataFrame, own: bool) -> Iterator[Row]:
    alphas = dict(zip(limits["quantity"], limits["alpha"], strict=True))
    interior = next(float(alpha) for name, alpha in alphas.items() if name.startswith("interior"))
    whole = next(float(alpha) for name, alpha in alphas.items() if name.startswith("class"))
    if own:
        yield from _stated("figure4/gk16/interior", interior)
    yield from _stated("figure4/gk16/class", whole)
