"""How names, figures and files look, in one place."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zlib import crc32

from pufferflow._files import write_atomic

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

TEXT_WIDTH = 7.0
"""Width in inches of a figure across both columns of a paper."""
COLUMN_WIDTH = 3.4
"""Width in inches of a figure in one column."""

INK = "#222222"
MUTED = "#5a5a5a"

VERBATIM: dict[str, Any] = {"parse_math": False}
"""For texts that hold names from data and settings, of which one may be ``$5%$``: they are no formulas."""

RC: dict[str, Any] = {
    "font.family": ["DejaVu Sans"],
    "mathtext.fontset": "dejavusans",
    "font.size": 7.5,
    "axes.titlesize": 8,
    "axes.labelsize": 7.5,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "legend.fontsize": 7,
    "legend.frameon": False,
    "legend.handlelength": 3,
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.edgecolor": MUTED,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "axes.linewidth": 0.6,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#e4e4e4",
    "grid.linewidth": 0.5,
    "lines.linewidth": 1.1,
    "lines.markersize": 3.2,
    "lines.markeredgewidth": 0.7,
    "savefig.dpi": 300,
    # Text as text, to be found, copied and read aloud; a fixed salt: the same bytes on every run.
    "svg.fonttype": "none",
    "svg.hashsalt": "pufferflow",
    "pdf.fonttype": 42,
    "ps.fonttype": 42,  # by which PDF files, too, are given one font for all characters and not one for each 256
}

# Whatever a writer would say about itself or the clock, it says nothing.
METADATA: dict[str, dict[str, None]] = {
    "svg": dict.fromkeys(("Date", "Creator", "Format", "Type")),
    "pdf": dict.fromkeys(("CreationDate", "Creator", "Producer")),
    "png": {"Software": None},
}

SVG_FONTS = "'DejaVu Sans', Verdana, Geneva, sans-serif"
"""Fonts of the text in SVG files: the one that the layout is computed with, then others as wide."""

Dashes = tuple[float, tuple[float, ...]]


@dataclass(frozen=True)
class MechanismStyle:
    """Name and look of a mechanism; marker and dashes alone tell it from the others in grey."""

    label: str
    color: str
    marker: str
    dashes: Dashes


# Okabe-Ito colours (its yellow is too pale for lines); the order is that of the paper's tables.
MECHANISMS: dict[str, MechanismStyle] = {
    "dp": MechanismStyle("DP", "#56b4e9", "x", (0, (1, 1))),
    "entry-dp": MechanismStyle("EntryDP", "#e69f00", "P", (0, (3, 1, 1, 1, 1, 1))),
    "group-dp": MechanismStyle("GroupDP", "#cc79a7", "D", (0, (1, 2))),
    "gk16": MechanismStyle("GK16", "#d55e00", "^", (0, (5, 2))),
    "mqm-approx": MechanismStyle("MQMApprox", "#0072b2", "s", (0, (4, 1.5, 1, 1.5))),
    "mqm-exact": MechanismStyle("MQMExact", "#009e73", "o", (0, ())),
    "wasserstein": MechanismStyle("Wasserstein", "#8a6d00", "p", (0, (8, 2))),
    "wasserstein-grid": MechanismStyle("Wasserstein, grid of chains", "#6b4f00", "h", (0, (8, 2, 1, 2, 1, 2))),
    "leakage": MechanismStyle("Leakage", "#000000", "X", (0, (8, 2, 2, 2))),
    # no mechanism: what none can go below
    "lower-bound": MechanismStyle("lower bound", MUTED, "_", (0, (2, 3))),
}
SPARE_COLORS = ("#7f3c8d", "#4b6a2f", "#a5402d", "#3b5b92")
SPARE_MARKERS = ("<", ">", "h", "d", "*")
SPARE_DASHES: tuple[Dashes, ...] = ((0, (2, 1)), (0, (6, 1)), (0, (6, 1, 2, 1, 2, 1)))

GROUPS = {
    "men_18_54": "men 18–54",
    "older_women_55plus": "women 55+",
    "overweight_women_18_54": "women 18–54, BMI ≥ 25",
}
DATA = {
    "bundled": "bundled real data",
    "downloaded": "downloaded real data",
    "file": "data from a file of the user",
    "synthetic": "synthetic data",
    "surrogate": "surrogate data",
}


def mechanism_style(name: str) -> MechanismStyle:
    """Return the style of a mechanism; an unknown one gets a style that depends on its name alone."""
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
    """Sort distinct mechanism names as the paper's tables do, unknown ones last as they come."""
    known = list(MECHANISMS)
    return sorted(dict.fromkeys(names), key=lambda name: known.index(name) if name in MECHANISMS else len(known))


def group_label(name: str) -> str:
    """Return the display name of a group, or ``name`` itself."""
    return GROUPS.get(name, name)


def state_label(name: str) -> str:
    """Return the name of a state as one writes it, for example ``"standing still"`` or ``"0–200 W"``."""
    return re.sub(r"(?<=\d)-(?=\d)", "–", name.replace("_", " ").replace(">=", "≥ "))


def data_label(label: str, description: str = "") -> str:
    """Say in words how data came here, for example ``"bundled real data: NHANES 2003-04, 71 people"``."""
    words = DATA.get(label, label)
    return f"{words}: {description}" if description else words


def data_labels(table: pd.DataFrame) -> str:
    """Say how the data of a table came here, with the data sets' names where they differ in it."""
    words: dict[str, list[str]] = {}
    for dataset, label in dict.fromkeys(zip(table["dataset"], table["label"], strict=True)):
        words.setdefault(data_label(label), []).extend([dataset] if dataset != label else [])
    if len(words) == 1:
        return next(iter(words))
    return "; ".join(f"{word} ({', '.join(names)})" if names else word for word, names in words.items())


def display_names(text: str) -> str:
    """Replace the internal names of groups and mechanisms in a sentence by their display names."""
    shown = GROUPS | {name: style.label for name, style in MECHANISMS.items()}
    pattern = "|".join(re.escape(name) for name in sorted(shown, key=len, reverse=True))
    return re.sub(rf"(?<![\w-])({pattern})(?![\w-])", lambda match: shown[match[1]], text)


@contextmanager
def figure_style() -> Iterator[None]:
    """Use the style of this project inside the block, whatever the user's own settings are."""
    import matplotlib.style  # loads slowly, and tables want names and labels alone

    with matplotlib.style.context(["default", RC]):
        yield


@contextmanager
def _fonts_to_read() -> Iterator[None]:
    """Fonts in PDF files have glyphs alone: readers are told where each goes, and rules of layout took longest."""
    from fontTools.subset import Options  # what matplotlib embeds fonts with

    usual: list[str] | None = getattr(Options, "_drop_tables_default", None)
    if usual is None:  # a fontTools that has no such list: figures take a little longer
        yield
        return
    Options._drop_tables_default = [*usual, "GDEF", "GPOS", "GSUB", "MATH", "kern"]
    try:
        yield
    finally:
        Options._drop_tables_default = usual


def save_figure(figure: Figure, stem: str | Path) -> list[Path]:
    """Write ``figure`` to ``stem`` plus .svg, .pdf and .png; the same figure gives the same bytes.

    Parameters
    ----------
    figure : Figure
    stem : path
        Path without suffix.

    Returns
    -------
    list of Path
        The three files.
    """
    written, layout = [], figure.get_layout_engine()
    with figure_style(), _fonts_to_read():
        if layout is not None:
            layout.execute(figure)  # places everything, once for all formats: most of the time is layout
            figure.set_layout_engine(None)
        for suffix, metadata in METADATA.items():
            stream = BytesIO()
            figure.savefig(stream, format=suffix, metadata=metadata, facecolor="white")
            content = stream.getvalue()
            if suffix == "svg":
                content = content.replace(b"'DejaVu Sans'", SVG_FONTS.encode())
            written.append(write_atomic(f"{stem}.{suffix}", content))
    figure.set_layout_engine(layout)
    return written
