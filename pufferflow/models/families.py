"""Families Θ: the chains an adversary may believe in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from inspect import getattr_static
from numbers import Real
from typing import Any, ClassVar, Literal, Protocol, TypeAlias

import numpy as np

from pufferflow._util.checks import check_list, named_type, shown
from pufferflow._util.rounding import SAFE_MINIMUM
from pufferflow._util.types import Bools
from pufferflow._util.values import ByValue
from pufferflow.errors import ChainError, ParameterError
from pufferflow.models.chain import ANY, MarkovChain
from pufferflow.models.transition_bounds import TransitionBounds

GapKind: TypeAlias = Literal["auto", "general", "reversible"]

STARTS = {"stationary": "its stationary start", "any": "any start", "given": "its given start"}
"""What the kinds of initial distributions of a chain are called."""


class Family(ByValue):
    """A class Θ of processes. What a kind of family does not say of itself is as here."""

    no_chains: ClassVar[str] = ""
    """Why no finite set of chains has the noise scale of the whole family, and what to do."""
    is_chosen: ClassVar[bool] = False
    """Whether it is a choice of few numbers, which depends on no record."""

    @property
    def chains(self) -> tuple[MarkovChain, ...]:
        """Finitely many chains whose largest noise scale is that of the whole family.

        Raises ChainError: there are none.
        """
        raise ChainError(self.no_chains)

    @property
    def members(self) -> tuple[MarkovChain, ...]:
        """All chains of Θ where they are finitely many, otherwise none."""
        return ()

    @property
    def bounds(self) -> TransitionBounds | None:
        """Bounds of the transition probabilities, of a family that is described by them."""
        return None

    @property
    def sizes(self) -> tuple[int, ...]:
        """Numbers of states that its chains have, each once; none where they may have any number."""
        return ()

    @property
    def has_given_start(self) -> bool:
        """Whether one of its chains has a given initial distribution."""
        return False

    @property
    def occurring(self) -> Bools | None:
        """States that can occur by every chain of Θ, shape (k,); None where none is known that cannot."""
        return None

    @property
    def unresolved(self) -> str:
        """What is missing before anything can be computed; empty where nothing is."""
        return ""

    def text(self, public: bool) -> str:
        """Describe these chains in words, with their numbers where they are ``public``."""
        raise NotImplementedError

    def smallest_stationary_probability(self) -> float:
        """Return the smallest entry of a stationary distribution over Θ (Algorithm 4); raises as ``chains``."""
        raise ChainError(self.no_chains)

    def eigengap(self, kind: GapKind) -> float:
        """Return the smallest eigengap over Θ (Algorithm 4); raises as ``chains``."""
        raise ChainError(self.no_chains)


class ChainFamily(Family):
    """A finite Θ.

    Raises
    ------
    ChainError
        It is empty or holds something that is not a :class:`MarkovChain`.
    """

    def __init__(self, chains: Sequence[MarkovChain]) -> None:
        self._chains: tuple[MarkovChain, ...] = tuple(check_list(chains, "chains"))
        if not self.chains:
            raise ChainError("the family holds no chain; give at least one")
        for chain in self.chains:
            if not isinstance(chain, MarkovChain):
                raise ChainError(f"the family holds {named_type(chain)}, which is not a MarkovChain")

    def __repr__(self) -> str:
        return f"ChainFamily({', '.join(map(repr, self.chains))})"

    @property
    def chains(self) -> tuple[MarkovChain, ...]:
        """The chains."""
        return self._chains

    @property
    def members(self) -> tuple[MarkovChain, ...]:
        """The chains."""
        return self.chains

    @property
    def sizes(self) -> tuple[int, ...]:
        """Numbers of states that the chains have, each once."""
        return tuple(dict.fromkeys(chain.states for chain in self.chains))

    @property
    def occurring(self) -> Bools | None:
        """States that can occur by all chains, which are of one size, shape (k,)."""
        occurring: Bools = np.logical_and.reduce([chain.occurring for chain in self.chains])
        return occurring

    @property
    def has_given_start(self) -> bool:
        """Whether one of the chains has a given initial distribution."""
        return any(chain.start == "given" for chain in self.chains)

    def text(self, public: bool) -> str:
        """Describe these chains in words."""
        kinds = " or ".join(dict.fromkeys(STARTS[chain.start] for chain in self.chains))
        count = len(self.chains)
        these = "the chain of the model" if count == 1 else f"one of the {count} chains of the model,"
        return f"{these} from {kinds}"

    def document(self) -> dict[str, Any]:
        """Return the model as plain JSON types."""
        return {"chains": [chain.document() for chain in self.chains]}

    def smallest_stationary_probability(self) -> float:
        """Return π_min = min over θ and x of π_θ(x), rounded down."""
        smallest = min(
            float(chain.stationary_distribution.min()) * (1 - chain.stationary_error) for chain in self.chains
        )
        return smallest if smallest >= SAFE_MINIMUM else 0.0

    def eigengap(self, kind: GapKind) -> float:
        """Return the smallest gap; ``"auto"`` takes the reversible one for each chain in detailed balance."""
        return min(
            c.eigengap(("reversible" if c.is_reversible else "general") if kind == "auto" else kind)
            for c in self.chains
        )


@dataclass(frozen=True, eq=False)
class BinaryInterval(Family):
    """All binary chains with P(0|0) and P(1|1) in [low, high], and every initial distribution.

    The class of the paper's synthetic experiment is ``BinaryInterval(α, 1 − α)``. Its supremum is attained at one
    symmetric chain, P(0|0) = P(1|1) = p with p the endpoint farther from ½ (``docs/leakage.md``, section 14).

    Raises
    ------
    ChainError
        Unless 0 < low ≤ high < 1.
    """

    low: float
    high: float

    def __post_init__(self) -> None:
        if not (isinstance(self.low, Real) and isinstance(self.high, Real) and 0 < self.low <= self.high < 1):
            raise ChainError(f"binary interval [{shown(self.low)}, {shown(self.high)}]: needs 0 < low ≤ high < 1")

    @property
    def chains(self) -> tuple[MarkovChain, ...]:
        """The dominating symmetric chain, with any initial distribution."""
        stay = self.high if 1 - self.high <= self.low else self.low
        return (MarkovChain([[stay, 1 - stay], [1 - stay, stay]], ANY),)

    @property
    def members(self) -> tuple[MarkovChain, ...]:
        """The one chain of the class where it holds no other."""
        return self.chains if self.low == self.high else ()

    @property
    def sizes(self) -> tuple[int, ...]:
        """Two states."""
        return (2,)

    def text(self, public: bool) -> str:
        """Describe these chains in words, with their probabilities where they are ``public``."""
        between = f"in [{self.low:g}, {self.high:g}]" if public else "between the bounds of the model"
        return f"any binary chain that stays with probabilities {between}, from any start"

    def document(self) -> dict[str, Any]:
        """Return the model as plain JSON types."""
        return {"binary_interval": [self.low, self.high]}

    def smallest_stationary_probability(self) -> float:
        """Return π_min = (1 − high) / ((1 − high) + (1 − low)), at P = (high, low) or (low, high); rounded down."""
        return (1 - self.high) / ((1 - self.high) + (1 - self.low)) * (1 - 1e-15)

    def eigengap(self, kind: GapKind) -> float:
        """Return the gap at the largest |λ| = |2p − 1|: reversible 2(1 − |λ|), general 1 − λ²; rounded down.

        Two-state chains are reversible, so ``"auto"`` is ``"reversible"``.
        """
        modulus = max(abs(2 * self.high - 1), abs(2 * self.low - 1))
        gap = 1 - modulus**2 if kind == "general" else 2 * (1 - modulus)
        return max(0.0, gap - 4e-16)


class HasFamily(Protocol):
    """What was made with a family, such as a fit or a model file."""

    @property
    def family(self) -> Family:
        """Θ."""


AnyFamily: TypeAlias = Family | MarkovChain | HasFamily


def as_family(family: AnyFamily) -> Family:
    """Return a family as it is, a single chain as a family, and the family of what has one.

    Raises
    ------
    ParameterError
        It is none of these, or something is missing in it.
    """
    if isinstance(family, Family):
        if family.unresolved:
            raise ParameterError(family.unresolved)
        return family
    if isinstance(family, MarkovChain):
        return ChainFamily([family])
    if getattr_static(family, "family", None) is not None:
        return as_family(family.family)
    raise ParameterError(
        f"family is {shown(family)}; give a MarkovChain, a ChainFamily, a BinaryInterval, an IntervalFamily, "
        "a TotalVariationFamily, a MixingFamily, or what fit or read_public_model returns"
    )


def standing_chains(family: AnyFamily) -> tuple[MarkovChain, ...]:
    """Return :attr:`Family.chains`, none where there are none; raises as :func:`as_family`."""
    theta = as_family(family)
    return () if theta.no_chains else theta.chains


def finite_chains(family: AnyFamily, who: str) -> tuple[MarkovChain, ...]:
    """Return the chains of a finite Θ; the chain that dominates a class for some mechanisms does not stand for it here.

    ``who`` names what needs them. Raises ChainError: Θ is not finite; ParameterError: it is no family.
    """
    theta = as_family(family)
    if theta.members:
        return theta.members
    why = theta.no_chains or "not for all between bounds; give chains of them"
    raise ChainError(f"{who} is computed for finitely many chains: {why}")
