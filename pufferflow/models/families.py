"""Families Θ, the chains that an adversary may have as prior; secrets and side information."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from inspect import getattr_static
from numbers import Real
from typing import Any, ClassVar, Literal, Protocol, Self, TypeAlias, TypedDict, get_args

import numpy as np

from pufferflow._util import checks
from pufferflow._util.rounding import SAFE_MINIMUM
from pufferflow._util.types import Bools
from pufferflow.errors import ChainError, ParameterError
from pufferflow.models.chain import ANY, ByValue, GapKind, MarkovChain

STARTS = {"stationary": "its stationary start", "any": "any start", "given": "its given start"}
"""Descriptions of the kinds of initial distributions."""

SideInformation: TypeAlias = Literal["none", "any"]
"""Side information: none, or any other records of the participant."""

PROTECTION = ("window", "side_information")
"""The fields of :class:`Protection`, which are options of mechanisms."""


@dataclass(frozen=True)
class Protection:
    """Secrets and adversaries of a Pufferfish guarantee; ParameterError: one is out of range."""

    window: int = 1
    """Number of consecutive records of one segment whose values are the secret."""
    side_information: SideInformation = "none"

    def __post_init__(self) -> None:
        checks.check_choice(self.side_information, "side_information", get_args(SideInformation))
        object.__setattr__(self, "window", checks.check_whole(self.window, "window"))


class ProtectionOptions(TypedDict, total=False):
    """The fields of :class:`Protection` as options."""

    window: int
    side_information: SideInformation


class Family(ByValue):
    """A class Θ of processes; subclasses override the attributes that differ."""

    chains: tuple[MarkovChain, ...] = ()
    """Finitely many chains whose largest noise scale is that of Θ, if there are any."""
    members: tuple[MarkovChain, ...] = ()
    """All chains of Θ if there are finitely many, otherwise none."""
    states: int | None = None
    """Number of states of its chains; None if they may have any number."""
    occurring: Bools | None = None
    """Mask of the states (observations) that can occur, shape (k,); None if all may occur."""
    has_given_start = False
    """Whether one of its chains has a given initial distribution."""
    kind: ClassVar[str]
    """Its key in model files."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.description()})"

    def in_steps(self, step_seconds: int | None) -> Self:
        """Return the family with times in steps; raises ParameterError: the step is missing."""
        return self

    def description(self) -> str:
        """Return a description of these chains, without numbers that may depend on records."""
        raise NotImplementedError

    def document(self) -> dict[str, Any]:
        """Return the model as plain JSON types."""
        found: dict[str, Any] = {}
        for name in (field.rstrip("?") for field in self.fields):
            value = getattr(self, name)
            if isinstance(value, Family):
                found |= {name: value.document()[value.kind]}
            elif value is not None:
                found[name] = np.asarray(value).tolist()
        return {self.kind: found}

    def smallest_stationary_probability(self) -> float:
        """Return π_min = min over θ and x of π_θ(x) (Algorithm 4), rounded down.

        Raises ChainError: there are no ``chains``.
        """
        chains = finite_chains(self)
        least = (c.stationary_distribution.min() * (1 - c.stationary_error) for c in chains)
        return smallest if (smallest := float(min(least))) >= SAFE_MINIMUM else 0.0

    def eigengap(self, kind: GapKind) -> float:
        """Return the smallest eigengap over Θ (Algorithm 4); ChainError: no ``chains``."""
        return min(chain.eigengap(kind) for chain in finite_chains(self))


def common_states(sizes: Iterable[int], what: str) -> int:
    """Return the number of states of several chains or matrices; ChainError: they differ."""
    if len(found := {*sizes}) != 1:
        different = " and ".join(map(str, sorted(found))) or "no"
        advice = "give at least one, all with the same states"
        raise ChainError(f"the {what} have {different} states; {advice}")
    return found.pop()


class ChainFamily(Family):
    """A finite Θ."""

    kind = "chains"

    def __init__(self, chains: Sequence[MarkovChain]) -> None:
        self.chains = self.members = tuple(checks.check_list(chains, "chains"))
        for chain in self.chains:
            checks.check_type(chain, "an entry of chains", MarkovChain)
        self.states = common_states((chain.states for chain in self.chains), "chains")
        self.occurring = np.logical_and.reduce([chain.occurring for chain in self.chains])
        self.has_given_start = any(chain.start == "given" for chain in self.chains)

    def description(self) -> str:
        """Return a description of these chains."""
        kinds = " or ".join(dict.fromkeys(STARTS[chain.start] for chain in self.chains))
        several = f"one of the {len(self.chains)} chains of the model,"
        return f"{several if self.chains[1:] else 'the chain of the model'} from {kinds}"

    def document(self) -> dict[str, Any]:
        """Return the model as plain JSON types."""
        return {self.kind: [chain.document() for chain in self.chains]}


class BinaryInterval(Family):
    """All binary chains with P(0|0) and P(1|1) in [low, high], and every initial distribution.

    The class of the paper's synthetic experiment is ``BinaryInterval(α, 1 − α)``. Its supremum is
    attained at one symmetric chain, P(0|0) = P(1|1) = p with p the endpoint farther from ½
    (``docs/leakage.md``, section 14).
    """

    kind, states = "binary_interval", 2

    def __init__(self, low: float, high: float) -> None:
        if not (isinstance(low, Real) and isinstance(high, Real) and 0 < low <= high < 1):
            ends = f"[{checks.shown(low)}, {checks.shown(high)}]"
            raise ChainError(f"binary interval {ends}: needs 0 < low ≤ high < 1")
        self.low: float = float(low)
        self.high: float = float(high)
        stay = self.high if 1 - self.high <= self.low else self.low
        self.chains = (MarkovChain([[stay, 1 - stay], [1 - stay, stay]], ANY),)
        """The dominating symmetric chain, with any initial distribution."""
        self.members = self.chains if low == high else ()  # the only chain of a class with one

    def description(self) -> str:
        """Return a description of these chains."""
        bounds = "between the bounds of the model"
        return f"any binary chain that stays with probabilities {bounds}, from any start"

    def document(self) -> dict[str, Any]:
        """Return the model as plain JSON types."""
        return {self.kind: [self.low, self.high]}

    def smallest_stationary_probability(self) -> float:
        """Return π_min, at P = (high, low) or (low, high), rounded down."""
        return (1 - self.high) / ((1 - self.high) + (1 - self.low)) * (1 - 1e-15)

    def eigengap(self, kind: GapKind) -> float:
        """Return the gap at the largest |λ| = |2p − 1|, rounded down; ``"auto"`` is reversible."""
        modulus = max(abs(2 * self.high - 1), abs(2 * self.low - 1))
        gap = 1 - modulus**2 if kind == "general" else 2 * (1 - modulus)
        return max(0.0, gap - 4e-16)


class HasFamily(Protocol):
    """An object with a family, such as a fit or a model file."""

    @property
    def family(self) -> Family: ...  # noqa: D102


AnyFamily: TypeAlias = Family | MarkovChain | HasFamily


def as_family(family: AnyFamily) -> Family:
    """Return a family unchanged, a chain as a family, or the family of an object; or raise."""
    if isinstance(family, Family):
        return family.in_steps(None)
    if isinstance(family, MarkovChain):
        return ChainFamily([family])
    if getattr_static(family, "family", None) is not None:
        return as_family(family.family)
    known = "a MarkovChain, a family, or what fit or read_public_model returns"
    raise ParameterError(f"family is {checks.shown(family)}; give {known}")


def finite_chains(family: AnyFamily, who: str = "") -> tuple[MarkovChain, ...]:
    """Return chains with the scale of Θ, or all chains of Θ for ``who``; raises ChainError."""
    theta = as_family(family)
    if not (chains := theta.members if who else theta.chains):
        why = f"which {checks.named_type(theta)} lacks; use leakage or group-dp, or give chains"
        raise ChainError(f"{who or 'this'} needs finitely many homogeneous observed chains, {why}")
    return chains
