"""OpenDP, from which the classical mechanisms take their samplers."""

from __future__ import annotations

from typing import Any


def open_dp() -> Any:
    """OpenDP with its contributed mechanisms on; it takes long to import, so only where it is used."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    return dp
