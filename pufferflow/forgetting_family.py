"""Chains that are known to forget, and by nothing else: no matrix, no states."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from numbers import Real
from typing import Any

from pufferflow._checks import LONGEST, check_whole, shown
from pufferflow._display import displayed
from pufferflow.errors import ChainError
from pufferflow.markov.families import FamilyWithoutMatrix


@displayed()
@dataclass(frozen=True)
class ForgettingFamily(FamilyWithoutMatrix):
    """All Markov chains, homogeneous or not and on any states, that forget at least so much in so many steps.

    For every time t and any two values that X_t can take, the laws of X_{t+m} given either overlap in at least α,
    Σ_z min(p(z), q(z)) ≥ α, and so do those of X_{t−m}. Nothing else is assumed: no matrix is fitted, and it does not
    depend on the states. :func:`pufferflow.forgetting` says which such families a given chain lies in.

    Parameters
    ----------
    steps : int
        m, at least 1.
    overlap : float
        α, above 0 and at most 1; it stands for its shortest decimal (0.4 for ``0.4``). At 1 records m steps apart are
        independent.

    Raises
    ------
    ChainError
        ``overlap`` is no such number.
    ParameterError
        ``steps`` is not a whole number from 1 on.

    Examples
    --------
    >>> import pufferflow as pf
    >>> round(pf.leakage(pf.ForgettingFamily(60, 0.4), 10**6, 1.0).scale, 1)
    349.5
    """

    _no_chains = (
        "this needs a transition matrix, which a forgetting family does not have; use leakage or group-dp, or "
        "give chains"
    )

    steps: int = 60
    overlap: float = 0.4

    def __post_init__(self) -> None:
        object.__setattr__(self, "steps", check_whole(self.steps, "steps", most=LONGEST))
        if isinstance(self.overlap, bool) or not (isinstance(self.overlap, Real) and 0 < self.overlap <= 1):
            raise ChainError(f"overlap is {shown(self.overlap)}; it must be above 0 and at most 1")
        object.__setattr__(self, "overlap", float(self.overlap))

    @property
    def kept(self) -> Fraction:
        """1 − α, the largest total variation distance of two such laws, exactly."""
        return 1 - Fraction(repr(self.overlap))

    @property
    def is_chosen(self) -> bool:
        """Two numbers, which are a choice."""
        return True

    @property
    def sizes(self) -> tuple[int, ...]:
        """Empty: any number of states."""
        return ()

    def text(self, public: bool) -> str:
        """Say in words which chains these are; the numbers are a choice, not a fit, and always said."""
        return (
            "some Markov chain, homogeneous or not, that forgets (for any two states at one time the laws of the "
            f"states {self.steps} steps later overlap in at least {self.overlap!r}, and so do those {self.steps} steps "
            "before)"
        )

    def document(self) -> dict[str, Any]:
        """Return the model as plain JSON types."""
        return {"forgetting": {"steps": self.steps, "overlap": self.overlap}}
