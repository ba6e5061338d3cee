"""The tables: tidy tables in; CSV with all digits, Markdown and LaTeX with readable ones out."""

from pufferflow.reporting.tables.comparing import comparison, stated_values
from pufferflow.reporting.tables.rendering import render, save_table
from pufferflow.reporting.tables.table import Table

__all__ = ["Table", "comparison", "render", "save_table", "stated_values"]
