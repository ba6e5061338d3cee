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
    from pufferflow.accounting import (
        Accountant,
        Cost,
        guarantee,
    )
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
    from pufferflow.bayesnet import (
        BayesianNetwork,
        MarkovQuilt,
        NetworkScale,
        Variable,
        chain_network,
        markov_quilt_mechanism,
        markov_quilts,
        max_influence,
    )
    from pufferflow.beliefs import (
        close_adversary,
    )
    from pufferflow.coupling import (
        LowerBound,
        lower_bound,
    )
    from pufferflow.dp.base2_exponential import (
        Base2Exponential,
        Base2Laplace,
        Eta,
    )
    from pufferflow.errors import (
        BudgetError,
        ChainError,
        ConfigError,
        DataError,
        DownloadError,
        LedgerError,
        ModelError,
        NetworkError,
        ParameterError,
        PufferflowError,
    )
    from pufferflow.interval_family import (
        IntervalFamily,
        confidence_family,
    )
    from pufferflow.ledger import (
        Ledger,
    )
    from pufferflow.markov import (
        BinaryInterval,
        ChainFamily,
        MarkovChain,
        fit_chain,
    )
    from pufferflow.mechanisms import (
        MECHANISMS,
        NoiseScale,
        Quilt,
        certify,
        entry_dp,
        gk16,
        group_dp,
        leakage,
        leakage_loss,
        mqm_approx,
        mqm_exact,
        wasserstein,
    )
    from pufferflow.models import (
        PublicModel,
        read_public_model,
    )
    from pufferflow.publishing.fitting import (
        Fit,
        States,
        fit_records,
    )
    from pufferflow.publishing.histogram import (
        PrivateHistogram,
    )
    from pufferflow.publishing.planning import (
        Plan,
        error_quantile,
        plan_release,
    )
    from pufferflow.publishing.release import (
        rehearse_release,
        release_histogram,
        simulate_release,
    )
    from pufferflow.records.format import (
        RecordFormat,
        StateSpace,
    )
    from pufferflow.records.reading import (
        Reading,
    )
    from pufferflow.transport import (
        chain_sensitivity,
        wasserstein_sensitivity,
    )
    from pufferflow.verify import (
        CertificateError,
        Verification,
        verify_certificate,
    )

__version__ = "0.1.0"

__all__ = [
    "MECHANISMS",
    "Accountant",
    "AnyLengthLoss",
    "Base2Exponential",
    "Base2Laplace",
    "BayesianNetwork",
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
    "Fit",
    "HistogramQuery",
    "IntervalFamily",
    "Ledger",
    "LedgerError",
    "LowerBound",
    "MarkovChain",
    "MarkovQuilt",
    "ModelError",
    "NetworkError",
    "NetworkScale",
    "NoiseScale",
    "ParameterError",
    "Plan",
    "PrivacyLoss",
    "PrivateHistogram",
    "PublicModel",
    "PufferflowError",
    "Quilt",
    "Reading",
    "RecordFormat",
    "StateSpace",
    "States",
    "Variable",
    "Verification",
    "certify",
    "chain_network",
    "chain_sensitivity",
    "close_adversary",
    "confidence_family",
    "entry_dp",
    "error_quantile",
    "fit_chain",
    "fit_records",
    "gk16",
    "group_dp",
    "guarantee",
    "leakage",
    "leakage_loss",
    "loss_at_any_length",
    "lower_bound",
    "markov_quilt_mechanism",
    "markov_quilts",
    "max_influence",
    "mqm_approx",
    "mqm_exact",
    "plan_release",
    "privacy_loss",
    "read_public_model",
    "rehearse_release",
    "release_histogram",
    "scale_for_any_length",
    "simulate_release",
    "smallest_scale",
    "verify_certificate",
    "wasserstein",
    "wasserstein_sensitivity",
]

_HOMES = {
    "accounting": (
        "Accountant",
        "Cost",
        "guarantee",
    ),
    "audit": (
        "AnyLengthLoss",
        "CountQuery",
        "HistogramQuery",
        "PrivacyLoss",
        "loss_at_any_length",
        "privacy_loss",
        "scale_for_any_length",
        "smallest_scale",
    ),
    "bayesnet": (
        "BayesianNetwork",
        "MarkovQuilt",
        "NetworkScale",
        "Variable",
        "chain_network",
        "markov_quilt_mechanism",
        "markov_quilts",
        "max_influence",
    ),
    "beliefs": ("close_adversary",),
    "coupling": (
        "LowerBound",
        "lower_bound",
    ),
    "dp.base2_exponential": (
        "Base2Exponential",
        "Base2Laplace",
        "Eta",
    ),
    "errors": (
        "BudgetError",
        "ChainError",
        "ConfigError",
        "DataError",
        "DownloadError",
        "LedgerError",
        "ModelError",
        "NetworkError",
        "ParameterError",
        "PufferflowError",
    ),
    "interval_family": (
        "IntervalFamily",
        "confidence_family",
    ),
    "ledger": ("Ledger",),
    "markov": (
        "BinaryInterval",
        "ChainFamily",
        "MarkovChain",
        "fit_chain",
    ),
    "mechanisms": (
        "MECHANISMS",
        "NoiseScale",
        "Quilt",
        "certify",
        "entry_dp",
        "gk16",
        "group_dp",
        "leakage",
        "leakage_loss",
        "mqm_approx",
        "mqm_exact",
        "wasserstein",
    ),
    "models": (
        "PublicModel",
        "read_public_model",
    ),
    "publishing.fitting": (
        "Fit",
        "States",
        "fit_records",
    ),
    "publishing.histogram": ("PrivateHistogram",),
    "publishing.planning": (
        "Plan",
        "error_quantile",
        "plan_release",
    ),
    "publishing.release": (
        "rehearse_release",
        "release_histogram",
        "simulate_release",
    ),
    "records.format": (
        "RecordFormat",
        "StateSpace",
    ),
    "records.reading": ("Reading",),
    "transport": (
        "chain_sensitivity",
        "wasserstein_sensitivity",
    ),
    "verify": (
        "CertificateError",
        "Verification",
        "verify_certificate",
    ),
}
"""Where each public name lives: it is imported on first use, so that nothing pays for what it does not use."""

_PACKAGES = ("dp", "hmm")
"""What has names of its own: ``pufferflow.hmm.check``."""

_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    """Import a public name on first use."""
    if name in _HOME_OF:
        return getattr(import_module(f"{__name__}.{_HOME_OF[name]}"), name)
    if name in _PACKAGES:
        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_PACKAGES})
