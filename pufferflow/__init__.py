"""Pufferfish privacy for correlated data.

>>> import pufferflow as pf
>>> chain = pf.MarkovChain([[0.9, 0.1], [0.4, 0.6]], initial_distribution=[1, 0])
>>> round(pf.mqm_exact(chain, length=100, epsilon=1.0).scale, 6)
12.934051
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pufferflow.beliefs import close_adversary
    from pufferflow.certificates import certify
    from pufferflow.errors import (
        ChainError,
        ConfigError,
        DataError,
        DownloadError,
        ModelError,
        ParameterError,
        PufferflowError,
    )
    from pufferflow.markov import (
        BinaryInterval,
        ChainFamily,
        IntervalFamily,
        MarkovChain,
        confidence_family,
        fit_chain,
    )
    from pufferflow.mechanisms import (
        MECHANISMS,
        NoiseScale,
        Quilt,
        entry_dp,
        gk16,
        group_dp,
        mqm_approx,
        mqm_exact,
        wasserstein,
    )
    from pufferflow.transport import chain_sensitivity, wasserstein_sensitivity
    from pufferflow.verify import CertificateError, Verification, verify_certificate

__version__ = "0.1.0"

__all__ = [
    "MECHANISMS",
    "BinaryInterval",
    "CertificateError",
    "ChainError",
    "ChainFamily",
    "ConfigError",
    "DataError",
    "DownloadError",
    "IntervalFamily",
    "MarkovChain",
    "ModelError",
    "NoiseScale",
    "ParameterError",
    "PufferflowError",
    "Quilt",
    "Verification",
    "certify",
    "chain_sensitivity",
    "close_adversary",
    "confidence_family",
    "entry_dp",
    "fit_chain",
    "gk16",
    "group_dp",
    "mqm_approx",
    "mqm_exact",
    "verify_certificate",
    "wasserstein",
    "wasserstein_sensitivity",
]


def __getattr__(name: str) -> Any:
    """Import a public name on first use: tables and figures need none of the numerical code."""
    if name in __all__:
        for home in ("errors", "markov", "mechanisms", "verify", "certificates", "transport", "beliefs"):
            module = import_module(f"{__name__}.{home}")
            if hasattr(module, name):
                return getattr(module, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
