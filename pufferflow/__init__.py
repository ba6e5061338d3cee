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
    from pufferflow.accounting import Accountant, Cost, guarantee
    from pufferflow.audit import CountQuery, HistogramQuery, PrivacyLoss, privacy_loss, smallest_scale
    from pufferflow.certificates import certify
    from pufferflow.coupling import LowerBound, lower_bound
    from pufferflow.dp.base2_exponential import Base2Exponential, Base2Laplace, Eta
    from pufferflow.errors import (
        BudgetError,
        ChainError,
        ConfigError,
        DataError,
        DownloadError,
        LedgerError,
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
        leakage,
        leakage_loss,
        mqm_approx,
        mqm_exact,
    )
    from pufferflow.verify import CertificateError, Verification, verify_certificate

__version__ = "0.1.0"

__all__ = [
    "MECHANISMS",
    "Accountant",
    "Base2Exponential",
    "Base2Laplace",
    "BinaryInterval",
    "BudgetError",
    "CertificateError",
    "ChainError",
    "ChainFamily",
    "ConfigError",
    "Cost",
    "CountQuery",
    "DataError",
    "DownloadError",
    "Eta",
    "HistogramQuery",
    "IntervalFamily",
    "LedgerError",
    "LowerBound",
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
    "guarantee",
    "leakage",
    "leakage_loss",
    "lower_bound",
    "mqm_approx",
    "mqm_exact",
    "privacy_loss",
    "smallest_scale",
    "verify_certificate",
]


def __getattr__(name: str) -> Any:
    """Import a public name on first use: tables and figures need none of the numerical code."""
    if name in __all__:
        for home in (
            "errors",
            "dp.base2_exponential",
            "markov",
            "mechanisms",
            "verify",
            "certificates",
            "accounting",
            "audit",
            "coupling",
        ):
            module = import_module(f"{__name__}.{home}")
            if hasattr(module, name):
                return getattr(module, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
