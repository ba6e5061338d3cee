"""What can go wrong, one class a failure; each message says what, where, which value and what to do."""


class PufferflowError(Exception):
    """Base of every error this package raises on bad input."""


class ParameterError(PufferflowError, ValueError):
    """A number or an option outside its range (epsilon, length, mechanism name, ...)."""


class ChainError(PufferflowError, ValueError):
    """A matrix or vector that is not a Markov chain, or a chain a mechanism cannot work on."""


class NetworkError(PufferflowError, ValueError):
    """Variables and tables that are not a Bayesian network, or a variable that a network lacks."""


class ModelError(PufferflowError, ValueError):
    """A model file that does not describe a family of chains, or a network."""


class ConfigError(PufferflowError, ValueError):
    """A configuration with an unknown key or an impossible value."""


class DataError(PufferflowError, ValueError):
    """A data file that is missing, empty, malformed or inconsistent."""


class DownloadError(PufferflowError, OSError):
    """A download that failed or whose content is not what was asked for."""


class LedgerError(PufferflowError, ValueError):
    """A budget ledger that is missing, foreign, damaged or misused."""


class BudgetError(PufferflowError):
    """A release that would pass the limit of its ledger.

    Attributes
    ----------
    left : float
        ε that is left.
    largest : float
        Largest ε at which such a release would fit, rounded down to three digits; 0 where none does.
    """

    def __init__(self, message: str, left: float, largest: float = 0.0) -> None:
        super().__init__(message)
        self.left = left
        self.largest = largest
