"""Say in a few lines where the results are and how the comparison came out."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pandas as pd

from pufferflow.errors import PufferflowError
from pufferflow.reporting.comparison import verdicts_of
from pufferflow.studies.checksums import check
from pufferflow.studies.tidy import read_table


def summary(results: Path) -> str:
    """Return the closing lines of a run whose outputs are in ``results``."""
    comparison = results / "tables" / "comparison.csv"
    check([comparison], results)
    table = read_table(comparison)
    lines = [
        f"Report:  {results / 'report.html'}",
        f"Tables:  {results / 'tables'}   Figures: {results / 'figures'}",
        "Comparison with the sources:",
        *_counted(table, "paper"),
        "by where the reported value comes from:",
        *_counted(table, "source"),
    ]
    return "\n".join(lines)


def _counted(table: pd.DataFrame, column: str) -> Iterator[str]:
    for name, counts in verdicts_of(table, column).items():
        yield f"  {name}: {', '.join(f'{count} {verdict}' for verdict, count in counts.items())}"


def main() -> int:
    """Print :func:`summary` of the folder named on the command line (default: results)."""
    try:
        print(summary(Path(sys.argv[1] if len(sys.argv) > 1 else "results")))
    except PufferflowError as error:
        print(f"pufferflow: error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
