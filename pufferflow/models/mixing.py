"""Chains of which a mixing condition is assumed and nothing else: no matrix, no states."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from numbers import Real
from typing import Any

from pufferflow._util.checks import check_whole, shown
from pufferflow._util.units import exact_seconds, steps_of
from pufferflow.errors import ChainError
from pufferflow.models.families import Family


@dataclass(frozen=True)
class MixingFamily(Family):
    """All Markov chains, homogeneous or not and on any states, that mix (a Doeblin-type condition).

    For every time t and any two values that X_t can take, the distributions of X_{t+m} given
    either overlap by α or more, Σ_z min(p(z), q(z)) ≥ α, and so do those of X_{t−m}. Nothing else
    is assumed: no matrix is fitted, and it does not depend on the states.
    :func:`pufferflow.models.mixing_of` computes which such families a given chain lies in.

    Parameters
    ----------
    steps : int
        m, at least 1.
    overlap : float
        α, above 0 and at most 1; it stands for its shortest decimal (0.4 for ``0.4``). At 1
        records m steps apart are independent.
    time : str, optional
        m as a time, such as "1h", which becomes steps where the time step is known
        (:meth:`in_steps`).

    Examples
    --------
    >>> import pufferflow as pf
    >>> round(pf.leakage(pf.MixingFamily(60, 0.4), 10**6, 1.0).scale, 1)
    349.5
    """

    no_chains = (
        "this needs a transition matrix, which a mixing family does not have; use leakage or group-dp, or give chains"
    )

    is_chosen = True

    steps: int = 60
    overlap: float = 0.4
    time: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "steps", check_whole(self.steps, "steps"))
        overlap = self.overlap
        if isinstance(overlap, bool) or not (isinstance(overlap, Real) and 0 < overlap <= 1):
            raise ChainError(f"overlap is {shown(overlap)}; it must be above 0 and at most 1")
        object.__setattr__(self, "overlap", float(overlap))

    def in_steps(self, step_seconds: int | None) -> MixingFamily:
        """Return the family with its time in steps, rounded up, which assumes less.

        Raises ParameterError: it has a time and no step is known.
        """
        if self.time is None:
            return self
        return MixingFamily(steps_of(self.time, step_seconds, "the time of mixing"), self.overlap)

    @property
    def unresolved(self) -> str:
        """What is still to be said before anything can be computed."""
        if self.time is None:
            return ""
        what = f"mixing within {self.time} is a number of steps only where the time step is known"
        return f"{what}; call in_steps(step_seconds), or give steps"

    @property
    def kept(self) -> Fraction:
        """1 − α, the largest total variation distance of two such distributions, exactly."""
        return 1 - Fraction(repr(self.overlap))

    def text(self, public: bool) -> str:
        """Describe these chains in words; the numbers are a choice, not a fit, and always given."""
        return (
            "some Markov chain, homogeneous or not, that mixes: given any two values of a reading, "
            f"the distributions of the readings {self.steps} steps later (and earlier) overlap by "
            f"at least {self.overlap!r}"
        )

    def document(self) -> dict[str, Any]:
        """Return the model as plain JSON types."""
        return {"mixing": {"steps": self.steps, "overlap": self.overlap}}


def mixing(time: str | int, overlap: float) -> MixingFamily:
    """Assume mixing: given any two values, the distributions ``time`` later, and earlier, overlap.

    Parameters
    ----------
    time : str or int
        A time such as "1h", or a number of steps.
    overlap : float
        At least by how much, above 0, at most 1.

    Examples
    --------
    >>> import pufferflow as pf
    >>> pf.mixing("1h", 0.4).in_steps(1800).steps
    2
    """
    if exact_seconds(time, "time") is None:
        return MixingFamily(steps_of(time, None, "time"), overlap)
    return MixingFamily(1, overlap, str(time).strip())
