"""Where a page shows something, and what it says of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field
from typing import Any


@dataclass(frozen=True)
class Place:
    """Place of a table, figure or note on a page.

    Attributes
    ----------
    title : str
    anchor : str
        Letters, digits and dashes, unique on the page.
    caption : str
        What is shown, empty for that of a table itself; of a figure also its description for those who do not see it.
    settings : mapping
        Settings the content depends on.
    lead : bool
        Whether it belongs on the first screen.
    under : str
        Anchor of the section below which it is folded.
    link : str
        Address, from the page, of what a note is about.
    """

    title: str
    anchor: str
    _: KW_ONLY
    caption: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict)
    lead: bool = False
    under: str = ""
    link: str = ""
