"""The tables: tidy tables in; CSV with all digits, Markdown and LaTeX with readable ones out."""

from pufferflow.reporting.tables.beyond import cohort, engine, least_noise
from pufferflow.reporting.tables.paper import chain_properties, comparison, stated_values, table1, table2, table3
from pufferflow.reporting.tables.rendering import render, save_table
from pufferflow.reporting.tables.table import Table

__all__ = [
    "Table",
    "chain_properties",
    "cohort",
    "comparison",
    "engine",
    "least_noise",
    "render",
    "save_table",
    "stated_values",
    "table1",
    "table2",
    "table3",
]
