"""Settings of the experiments as config/config.yaml ships them, for tests to change a few."""

from pathlib import Path
from typing import Any

import yaml

_CONFIG = Path(__file__).parents[2] / "config/config.yaml"


def shipped(experiment: str, **changes: Any) -> dict[str, Any]:
    """Settings of ``experiment`` with ``changes`` to keys it has."""
    settings = yaml.safe_load(_CONFIG.read_text(encoding="utf-8"))["experiments"][experiment]
    assert changes.keys() <= settings.keys()
    return settings | changes
