"""The table of data and chains."""

from __future__ import annotations

import pandas as pd

from pufferflow.reporting.style import data_labels, group_label
from pufferflow.reporting.tables.formats import (
    UNDEFINED,
    count,
    significant,
    yes_no,
)
from pufferflow.reporting.tables.table import Table


def chain_properties(**described: pd.DataFrame) -> Table:
    """Size of each group's data and the properties of its chain.

    Parameters
    ----------
    **described : DataFrame
        Tables of ``studies.real_data.chains.describe_chains`` by data set.
    """
    chains = pd.concat(described.values(), ignore_index=True)
    display = pd.DataFrame(
        {
            "data": [f"{d}, {group_label(g)}" for d, g in zip(chains["dataset"], chains["group"], strict=True)],
            "people": chains["participants"].map(count),
            "observations": chains["observations"].map(count),
            "independent chains": chains["segments"].map(count),
            "longest": chains["longest_segment"].map(count),
            "states": chains["states"].map(count),
            "π_min": [significant(value, 3) for value in chains["smallest_stationary_probability"]],
            "irreducible": chains["irreducible"].map(yes_no),
            "period": chains["period"].map(count),
            "reversible": chains["reversible"].map(yes_no),
            "eigengap": [significant(value, 3) for value in chains["eigengap_general"]],
        }
    )
    note = f"π_min: smallest stationary probability; eigengap: that of P P*; {UNDEFINED}: the chain has none."
    return Table("chains", "Data and fitted Markov chains.", data_labels(chains), chains, display, note=note)
