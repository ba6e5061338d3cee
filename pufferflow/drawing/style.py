"""The look of all figures: fonts, colours, mechanisms, and files that are the same on every run."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zlib import crc32

from pufferflow._util.files import write_atomic
from pufferflow.errors import DataError

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

TEXT_WIDTH = 7.0
"""Width in inches of a figure across both columns of a paper."""
COLUMN_WIDTH = 3.4
"""Width in inches of a figure in one column."""

INK = "#222222"
MUTED = "#5a5a5a"

VERBATIM: dict[str, Any] = {"parse_math": False}
"""For names that come from data and settings: ``$5%$`` is a name, not a formula."""

STYLE = ["default", str(Path(__file__).with_name("figures.mplstyle"))]
"""Independent of the user's settings."""

# By default the writers add dates and their own names.
METADATA: dict[str, dict[str, None]] = {
    "svg": dict.fromkeys(("Date", "Creator", "Format", "Type")),
    "pdf": dict.fromkeys(("CreationDate", "Creator", "Producer")),
    "png": {"Software": None},
}

SVG_FONTS = "'DejaVu Sans', Verdana, Geneva, sans-serif"
"""Fonts of SVG files: the font of the layout, then others of equal width."""

Dashes = tuple[float, tuple[float, ...]]


@dataclass(frozen=True)
class MechanismStyle:
    """Name and look of a mechanism; marker and dashes distinguish it in grey."""

    label: str
    color: str
    marker: str
    dashes: Dashes


# Okabe-Ito colours (its yellow is too pale for lines), in the order of the paper's tables.
MECHANISMS: dict[str, MechanismStyle] = {
    "participant-dp": MechanismStyle("DP", "#56b4e9", "x", (0, (1, 1))),
    "entry-dp": MechanismStyle("EntryDP", "#e69f00", "P", (0, (3, 1, 1, 1, 1, 1))),
    "group-dp": MechanismStyle("GroupDP", "#cc79a7", "D", (0, (1, 2))),
    "gk16": MechanismStyle("GK16", "#d55e00", "^", (0, (5, 2))),
    "mqm-approx": MechanismStyle("MQMApprox", "#0072b2", "s", (0, (4, 1.5, 1, 1.5))),
    "mqm-exact": MechanismStyle("MQMExact", "#009e73", "o", (0, ())),
    "wasserstein": MechanismStyle("Wasserstein", "#8a6d00", "p", (0, (8, 2))),
    "leakage": MechanismStyle("Leakage", "#000000", "X", (0, (8, 2, 2, 2))),
    # not a mechanism: the lower bound of all Laplace mechanisms
    "lower-bound": MechanismStyle("lower bound", MUTED, "_", (0, (2, 3))),
}
SPARE_COLORS = ("#7f3c8d", "#4b6a2f", "#a5402d", "#3b5b92")
SPARE_MARKERS = ("<", ">", "h", "d", "*")
SPARE_DASHES: tuple[Dashes, ...] = ((0, (2, 1)), (0, (6, 1)), (0, (6, 1, 2, 1, 2, 1)))


def mechanism_style(name: str) -> MechanismStyle:
    """Return the style of a mechanism; that of an unknown one depends on its name alone."""
    if name in MECHANISMS:
        return MECHANISMS[name]
    key = crc32(name.encode())
    return MechanismStyle(
        name,
        SPARE_COLORS[key % len(SPARE_COLORS)],
        SPARE_MARKERS[key % len(SPARE_MARKERS)],
        SPARE_DASHES[key % len(SPARE_DASHES)],
    )


def in_order(names: Iterable[str]) -> list[str]:
    """Return distinct mechanism names in the order of the paper's tables, unknown ones last."""
    given = dict.fromkeys(names)
    unknown = [name for name in given if name not in MECHANISMS]
    return [name for name in MECHANISMS if name in given] + unknown


def state_label(name: str) -> str:
    """Return the display name of a state, such as ``"standing still"`` or ``"0–200 W"``."""
    return re.sub(r"(?<=\d)-(?=\d)", "–", name.replace("_", " ").replace(">=", "≥ "))


@contextmanager
def _style() -> Iterator[None]:
    import matplotlib.style  # loads slowly, and tables need names and labels only

    with matplotlib.style.context(STYLE):
        yield


styled = _style()
"""Decorator of functions that draw or save in this style."""


def check(table: pd.DataFrame) -> None:
    """Raise :class:`DataError` if the table has no row."""
    if table.empty:
        raise DataError("the table to draw has no row; check the settings that make it")


def points(look: MechanismStyle) -> dict[str, Any]:
    """Return the style of the points of a mechanism."""
    hollow = {"markerfacecolor": "white", "markeredgewidth": 0.7}
    return {"linestyle": "none", "marker": look.marker, **hollow}


def handle(name: str, *, applies: bool = True, text: str = "") -> Line2D:
    """Return the legend entry of a mechanism; ``text`` is added to its label."""
    from matplotlib.lines import Line2D

    look = mechanism_style(name)
    label = f"{look.label}{text}" if applies else f"{look.label} (not applicable)"
    shown = points(look) | {"linestyle": look.dashes, "color": look.color}
    return Line2D([], [], label=label, **shown)


def footer(figure: Figure, text: str) -> None:
    """Set ``text`` below the panels, in lines as wide as the figure."""
    lines = textwrap.fill(text, int(22 * figure.get_figwidth()))
    look: dict[str, Any] = {"fontsize": 6, "color": MUTED, "linespacing": 1.3}
    figure.supxlabel(lines, x=0.01, ha="left", **look, **VERBATIM)


@styled
def save_figure(figure: Figure, stem: str | Path, formats: Iterable[str] = ()) -> list[Path]:
    """Write ``figure`` to ``stem`` plus .svg, .pdf and .png, or to some of these ``formats``.

    The same figure gives the same bytes.
    """
    written, layout = [], figure.get_layout_engine()
    if layout is not None:  # most of the time is layout: compute it once for all formats
        layout.execute(figure)
        figure.set_layout_engine(None)
    for suffix in formats or METADATA:
        stream, metadata = BytesIO(), METADATA[suffix]
        figure.savefig(stream, format=suffix, metadata=metadata, facecolor="white")
        content = stream.getvalue()
        if suffix == "svg":
            content = content.replace(b"'DejaVu Sans'", SVG_FONTS.encode())
        written.append(write_atomic(f"{stem}.{suffix}", content))
    figure.set_layout_engine(layout)
    return written
