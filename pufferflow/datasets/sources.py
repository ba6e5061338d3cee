"""Where each data set comes from: the rows of ``sources.json`` and the files shipped with the package."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

SPLIT_BECAUSE = "the settings say so"
"""Why a pause starts a new, independent chain: it is for whoever sets the gaps to know."""

_HERE = Path(__file__).parent


@cache
def load_sources() -> dict[str, dict[str, Any]]:
    """Return one row a data set: title, creators, kind, version, url, sha256, licence, doi, file, ...

    ``kind`` is "download", "bundled" or "file" (given by the user); ``sha256`` is that of the
    unpacked file, None where it is not known.
    """
    rows: dict[str, dict[str, Any]] = json.loads((_HERE / "sources.json").read_text(encoding="utf-8"))
    return rows


def bundled_path(dataset: str) -> Path:
    """Return the path of the file shipped for ``dataset``, a key of :func:`load_sources`."""
    return _HERE / "bundled" / str(load_sources()[dataset]["file"])
