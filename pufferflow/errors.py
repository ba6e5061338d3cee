"""Errors, one class per failure; each message states the fault, its location, and a remedy."""


class PufferflowError(Exception):
    """Base of every error this package raises on bad input."""


class ParameterError(PufferflowError, ValueError):
    """A number or an option outside its range (epsilon, length, mechanism name, ...)."""


class ChainError(PufferflowError, ValueError):
    """A matrix or vector is not a Markov chain, or a mechanism does not apply to the chain."""


class NetworkError(PufferflowError, ValueError):
    """Variables and tables that are not a Bayesian network, or a variable that a network lacks."""


class ModelError(PufferflowError, ValueError):
    """A model file that does not describe a family of chains, or a network."""


class ConfigError(PufferflowError, ValueError):
    """A configuration with an unknown key or an impossible value."""


class DataError(PufferflowError, ValueError):
    """A data file that is missing, empty, malformed or inconsistent."""


class DownloadError(PufferflowError, OSError):
    """A download that failed or whose content is not the expected one."""


class UselessError(PufferflowError, ValueError):
    """A release of which most numbers would be noise; nothing was charged for it."""


class LedgerError(PufferflowError, ValueError):
    """A budget ledger that is missing, foreign, damaged or misused."""


class BudgetError(PufferflowError):
    """A release that would break a promise of its ledger."""


class CertificateError(PufferflowError, ValueError):
    """A certificate that is malformed or proves less than it states."""
