"""What Section 5.3 says of the histograms of the groups: who sits longest, who is most active, and what noise hides."""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd

from pufferflow.reporting.comparison import Row, claim
from pufferflow.reporting.style import group_label, in_order, mechanism_style

PLACE = "Section 5.3, activity"
LONGEST = {
    "sedentary": ("the sedentary time of overweight women is the longest", "overweight_women_18_54"),
    "active": ("cyclists are the most active group", "men_18_54"),
}
"""By state: the claim, and the group here that stands for the paper's."""


def pattern_claims(releases: pd.DataFrame) -> Iterator[Row]:
    """Claims about the exact histograms, and how often a release shows who leads.

    ``releases`` is the table of ``studies.histograms.measure.releases``; other people's states give no row.
    """
    exact = releases.drop_duplicates(["group", "state"]).pivot_table(
        index="group", columns="state", values="exact_frequency"
    )
    for state, (text, group) in LONGEST.items():
        if state not in exact or group not in exact.index or len(exact) < 2:
            continue
        label = f"activity, {releases['label'].iloc[0]}"
        shares = exact[state].sort_values(ascending=False)
        leader = str(shares.index[0])
        ours = ", ".join(f"{group_label(str(name))} {share:.3f}" for name, share in shares.items())
        reason = f"other people: among ours it is {group_label(leader)}"
        yield claim(text, PLACE, "largest share", ours, leader == group, label, reason)
        yield from _visible(releases[releases["state"] == state], leader, state, label)


def _visible(of_state: pd.DataFrame, leader: str, state: str, label: str) -> Iterator[Row]:
    """How often the group that leads in the exact histograms also leads in their releases."""
    for epsilon, at_epsilon in of_state.groupby("epsilon", sort=False):
        shares = {}
        for mechanism, rows in at_epsilon.groupby("mechanism", sort=False):
            wide = rows.pivot_table(index="release", columns="group", values="released_frequency")
            shares[str(mechanism)] = float((wide.idxmax(axis=1) == leader).mean())
        quilts = [share for name, share in shares.items() if name.startswith("mqm")]
        if "group-dp" not in shares or not quilts:
            continue
        ours = ", ".join(f"{mechanism_style(name).label} {shares[name]:.0%}" for name in in_order(shares))
        yield claim(
            f"patterns are not necessarily visible under GroupDP: who has the largest share “{state}”, ε = {epsilon:g}",
            PLACE,
            "visible under the quilt mechanisms, not always under GroupDP",
            f"the right group leads in {ours} of the releases",
            shares["group-dp"] < min(quilts),
            label,
            "on these people the groups lie so far apart that GroupDP shows the leader as often",
        )
