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
    from pufferflow.audit import (
        AnyLengthLoss,
        CountQuery,
        HistogramQuery,
        PrivacyLoss,
        loss_at_any_length,
        privacy_loss,
        scale_for_any_length,
        smallest_scale,
    )
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
    )
    from pufferflow.verify import CertificateError, Verification, verify_certificate

__version__ = "0.1.0"

__all__ = [
    "MECHANISMS",
    "AnyLengthLoss",
    "BinaryInterval",
    "CertificateError",
    "ChainError",
    "ChainFamily",
    "ConfigError",
    "CountQuery",
    "DataError",
    "DownloadError",
    "HistogramQuery",
    "IntervalFamily",
    "MarkovChain",
    "ModelError",
    "NoiseScale",
    "ParameterError",
    "PrivacyLoss",
    "PufferflowError",
    "Quilt",
    "Verification",
    "certify",
    "confidence_family",
    "entry_dp",
    "fit_chain",
    "gk16",
    "group_dp",
    "loss_at_any_length",
    "mqm_approx",
    "mqm_exact",
    "privacy_loss",
    "scale_for_any_length",
    "smallest_scale",
    "verify_certificate",
]


def __getattr__(name: str) -> Any:
    """Import a public name on first use: tables and figures need none of the numerical code."""
    if name in __all__:
        for home in ("errors", "markov", "mechanisms", "verify", "certificates", "audit"):
            module = import_module(f"{__name__}.{home}")
            if hasattr(module, name):
                return getattr(module, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
