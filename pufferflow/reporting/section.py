"""What a page of results is made of: titled tables, figures and notes."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from pufferflow.errors import ParameterError
from pufferflow.reporting.place import Place
from pufferflow.reporting.tables import Table


@dataclass(frozen=True)
class Section(Place):
    """One table, figure or note of a page.

    Attributes
    ----------
    kind : {"table", "figure", "note"}
    content : Table or str
        A :class:`~pufferflow.reporting.tables.Table`; the text of an SVG file as ``save_figure`` writes it;
        or plain text, paragraphs separated by empty lines.
    data_label : str
        How the data came here, in words; of a table, its own if empty.
    """

    kind: Literal["table", "figure", "note"]
    content: Table | str
    data_label: str = ""

    def __post_init__(self) -> None:
        where = f"section {self.title!r}"
        if not re.fullmatch(r"[A-Za-z][A-Za-z0-9-]*", self.anchor):
            raise ParameterError(f"{where}: anchor {self.anchor!r} must be a letter, then letters, digits and dashes")
        if self.kind not in ("table", "figure", "note"):
            raise ParameterError(f"{where}: kind {self.kind!r} is none of table, figure, note")
        if (self.kind == "table") != isinstance(self.content, Table):
            raise ParameterError(f"{where}: content of a {self.kind} cannot be a {type(self.content).__name__}")
        if self.kind == "figure" and not self.caption:
            raise ParameterError(f"{where}: a figure needs a caption, it is also its description in words")


Block = tuple[Section, Sequence[Section]]
"""A section, and what is folded below it."""


def blocks(sections: Sequence[Section], reserved: Collection[str] = ()) -> list[Block]:
    """Return the sections that stand for themselves, in their order, each with those that are folded below it.

    Raises
    ------
    ParameterError
        Two sections share an anchor, or one takes a ``reserved`` one; or one is folded below another that is not
        there, or is folded itself.
    """
    anchors = [section.anchor for section in sections]
    repeated = [anchor for anchor, n in Counter(anchors).items() if n > 1]
    if taken := [*repeated, *(anchor for anchor in anchors if anchor in reserved)]:
        raise ParameterError(f"anchor {taken[0]!r} is used twice on the page; give each section its own")
    main = [section for section in sections if not section.under]
    for section in sections:
        if section.under and section.under not in {s.anchor for s in main}:
            raise ParameterError(
                f"section {section.title!r}: there is no section {section.under!r} below which to fold it"
            )
    return [(section, list(_below(section, sections))) for section in main]


def _below(section: Section, sections: Sequence[Section]) -> Iterator[Section]:
    return (other for other in sections if other.under == section.anchor)
