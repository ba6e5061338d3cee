"""Scales and certificates worked out once for all tests of what is done with them.

Both depend on their arguments alone, and the tests of mechanisms and certificates work them out
anew.
"""

from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from typing import Any

import pytest

from pufferflow.certificates import prove as certificates
from pufferflow.mechanisms import Mechanism, NoiseScale

_KNOWN: dict[Any, Any] = {}


def work_out_once(monkeypatch: pytest.MonkeyPatch) -> None:
    compute, prove = Mechanism.compute, certificates.prove

    def compute_once(self, family, length, epsilon, **options) -> NoiseScale:
        asked = self, family, length, epsilon
        return replace(_once((*asked, options), lambda: compute(*asked, **options)))

    def prove_once(claim) -> dict[str, Any]:
        return deepcopy(_once((claim,), lambda: prove(claim)))

    monkeypatch.setattr(Mechanism, "compute", compute_once)
    monkeypatch.setattr(certificates, "prove", prove_once)


def _once(question: tuple[Any, ...], answer: Callable[[], Any]) -> Any:
    try:
        hash(key := _key(question))
    except TypeError:
        return answer()
    if key not in _KNOWN:
        _KNOWN[key] = answer()
    return _KNOWN[key]


def _key(value: Any) -> Any:
    """What can be hashed, with its types: True and 1 are asked for apart."""
    if isinstance(value, dict):
        return tuple((name, _key(entry)) for name, entry in sorted(value.items()))
    if isinstance(value, list | tuple):
        return (type(value), *map(_key, value))
    return type(value), value
