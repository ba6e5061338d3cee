"""Families Θ: the chains an adversary may believe in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from inspect import getattr_static
from numbers import Real
from typing import Any, ClassVar, Literal, NoReturn, Protocol, TypeAlias, cast

import numpy as np

from pufferflow._checks import check_list, named_type, shown
from pufferflow._rounding import SAFE_MINIMUM
from pufferflow._types import Bools
from pufferflow.errors import ChainError, ParameterError
from pufferflow.markov.bounds import TransitionBounds
from pufferflow.markov.chain import ANY, MarkovChain

GapKind: TypeAlias = Literal["auto", "general", "reversible"]


STARTS = {"stationary": "its stationary start", "any": "any start", "given": "its given start"}
"""What the kinds of initial distributions of a chain are called."""


class Family(Protocol):
    """What a family Θ answers for itself; a kind that has no such chains or numbers raises :class:`ChainError`."""

    @property
    def chains(self) -> tuple[MarkovChain, ...]:
        """Finitely many chains whose largest noise scale is that of the whole family."""

    @property
    def bounds(self) -> TransitionBounds | None:
        """Bounds of the transition probabilities, of a family for which no such chains are known; otherwise None."""

    @property
    def members(self) -> tuple[MarkovChain, ...]:
        """All chains of Θ where they are finitely many, otherwise none."""

    @property
    def sizes(self) -> tuple[int, ...]:
        """Numbers of states that its chains have, each once; none where they may have any number."""

    @property
    def occurring(self) -> Bools | None:
        """States that can occur by every chain of Θ, shape (k,); None where none is known that cannot."""

    @property
    def has_given_start(self) -> bool:
        """Whether records begin with a law that is given, by one of its chains at least."""

    @property
    def is_chosen(self) -> bool:
        """Whether it is a choice of few numbers, which tells nothing of any record."""

    def text(self, public: bool) -> str:
        """Say in words which chains these are, and their numbers where they are ``public``."""

    def document(self) -> dict[str, Any]:
        """Return the model as plain JSON types."""

    def smallest_stationary_probability(self) -> float:
        """Smallest entry of a stationary distribution over Θ (Algorithm 4)."""

    def eigengap(self, kind: GapKind) -> float:
        """Smallest eigengap over Θ (Algorithm 4)."""


@dataclass(frozen=True)
class ChainFamily:
    """A finite Θ.

    Raises
    ------
    ChainError
        It is empty or holds something that is not a :class:`MarkovChain`.
    """

    chains: tuple[MarkovChain, ...]

    def __init__(self, chains: Sequence[MarkovChain]) -> None:
        object.__setattr__(self, "chains", tuple(check_list(chains, "chains")))
        if not self.chains:
            raise ChainError("the family holds no chain; give at least one")
        for chain in self.chains:
            if not isinstance(chain, MarkovChain):
                raise ChainError(f"the family holds {named_type(chain)}, which is not a MarkovChain")

    @property
    def bounds(self) -> None:
        """None: the chains stand for themselves."""

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
        """Whether one of the chains has it."""
        return any(chain.start == "given" for chain in self.chains)

    @property
    def is_chosen(self) -> bool:
        """Chains are taken for fitted ones."""
        return False

    def text(self, public: bool) -> str:
        """Say in words which chains these are."""
        kinds = " or ".join(dict.fromkeys(STARTS[chain.start] for chain in self.chains))
        count = len(self.chains)
        these = "the chain of the model" if count == 1 else f"one of the {count} chains of the model,"
        return f"{these} from {kinds}"

    def document(self) -> dict[str, Any]:
        """Return the model as plain JSON types."""
        return {"chains": [chain.document() for chain in self.chains]}

    def smallest_stationary_probability(self) -> float:
        """π_min = min over θ and x of π_θ(x), rounded down."""
        smallest = min(float(c.stationary_distribution.min()) * (1 - c.stationary_error) for c in self.chains)
        return smallest if smallest >= SAFE_MINIMUM else 0.0

    def eigengap(self, kind: GapKind) -> float:
        """Smallest gap; ``"auto"`` takes the reversible one for each chain in detailed balance."""
        return min(
            c.eigengap(("reversible" if c.is_reversible else "general") if kind == "auto" else kind)
            for c in self.chains
        )


@dataclass(frozen=True)
class BinaryInterval:
    """All binary chains with P(0|0) and P(1|1) in [low, high], and every initial distribution.

    The class of the paper's synthetic experiment is ``BinaryInterval(α, 1 − α)``.

    Notes
    -----
    *The supremum over the class is attained at one symmetric chain*: P(0|0) = P(1|1) = p with p the
    endpoint farther from ½. Write v = 1 − P(0|0), u = 1 − P(1|1), λ = 1 − u − v, ρ = v/u and
    Σ_n = 1 + λ + … + λ^(n−1), so that P^n(1,0) = u Σ_n and P^n(0,1) = v Σ_n. Every max-influence
    (eq. 5, all initial distributions) is a sum of logarithms of three kinds of factor.

    For λ ≥ 0 they are f_n(ρ) = (1 + ρλ^n)/(1 − λ^n) and f_n(1/ρ): the forward term is one of them
    (n = b), and the backward and initial terms together are f_a(ρ) f_{i−1}(1/ρ) or its mirror image.
    (i) Scaling (u, v) down keeps ρ and raises λ, which raises every factor, until u or v meets its
    lower bound, 1 − high. (ii) Let v = 1 − high and lower u: then λ and ρ rise, so f_n(ρ) rises, and
    f_n(1/ρ) = (1/Σ_n − u)/v rises too, because d(1/Σ_n − u)/du = Σ_n'/Σ_n² − 1 ≤ 0 (coefficient by
    coefficient Σ_n' ≤ Σ_n² as polynomials in λ). So the corner u = v = 1 − high dominates.

    For λ < 0 put μ = |λ|. Even n give f_n(ρ^±1) with λ^n = μ^n; odd n give
    (1 + μ^n)/(1 − ρ^±1 μ^n). As u + v = 1 + μ and neither exceeds 1 − low, ρ^±1 ≤ (1 − low)/(μ + low),
    and ρ^±1 μ^n ≤ R = (1 − 2 low)^n since μ ≤ 1 − 2 low. Every factor is at most (1 + R)/(1 − R),
    its value at u = v = 1 − low. Domination holds for every quilt and node at once, hence for the
    noise scale; for symmetric chains it depends on |2p − 1| alone and grows with it.

    The local influence of GK16 grows towards the same corner: for λ ≥ 0 it is half the logarithm of
    P(0|0) (P(1|1)² + uv) / (uv (1 + λ)), increasing in both, and mirrored for λ < 0.

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
    def bounds(self) -> None:
        """None: the dominating chain stands for the class."""

    @property
    def members(self) -> tuple[MarkovChain, ...]:
        """The one chain of the class where it holds no other."""
        return self.chains if self.low == self.high else ()

    @property
    def sizes(self) -> tuple[int, ...]:
        """Two states."""
        return (2,)

    @property
    def occurring(self) -> None:
        """None: both states occur."""

    @property
    def has_given_start(self) -> bool:
        """Every start is in the class."""
        return False

    @property
    def is_chosen(self) -> bool:
        """Its bounds may be fitted."""
        return False

    def text(self, public: bool) -> str:
        """Say in words which chains these are, and their probabilities where they are ``public``."""
        between = f"in [{self.low:g}, {self.high:g}]" if public else "between the bounds of the model"
        return f"any binary chain that stays with probabilities {between}, from any start"

    def document(self) -> dict[str, Any]:
        """Return the model as plain JSON types."""
        return {"binary_interval": [self.low, self.high]}

    def smallest_stationary_probability(self) -> float:
        """π_min = (1 − high) / ((1 − high) + (1 − low)), at P = (high, low) or (low, high); rounded down."""
        return (1 - self.high) / ((1 - self.high) + (1 - self.low)) * (1 - 1e-15)

    def eigengap(self, kind: GapKind) -> float:
        """Gap at the largest |λ| = |2p − 1|: reversible 2(1 − |λ|), general 1 − λ²; rounded down.

        Two-state chains are reversible, so ``"auto"`` is ``"reversible"``.
        """
        modulus = max(abs(2 * self.high - 1), abs(2 * self.low - 1))
        gap = 1 - modulus**2 if kind == "general" else 2 * (1 - modulus)
        return max(0.0, gap - 4e-16)


class FamilyWithoutChains:
    """What families have in common for which no chains are known that stand for them all: what needs these raises."""

    _no_chains: ClassVar[str]
    """What is missing, and what to do."""

    @property
    def chains(self) -> tuple[MarkovChain, ...]:
        """There are none, so this raises."""
        self._refuse()

    @property
    def members(self) -> tuple[MarkovChain, ...]:
        """Empty: they are not finitely many Markov chains."""
        return ()

    @property
    def occurring(self) -> Bools | None:
        """None: of what is known by bounds, or not at all, every state may occur."""
        return None

    @property
    def has_given_start(self) -> bool:
        """Nothing is said of the start, or that it is stationary or any."""
        return False

    @property
    def is_chosen(self) -> bool:
        """What is assumed may be fitted."""
        return False

    def smallest_stationary_probability(self) -> float:
        """Not available, as :attr:`chains`."""
        self._refuse()

    def eigengap(self, kind: GapKind) -> float:
        """Not available, as :attr:`chains`."""
        self._refuse()

    def _refuse(self) -> NoReturn:
        raise ChainError(self._no_chains)


class FamilyWithoutMatrix(FamilyWithoutChains):
    """What families have in common that no transition matrix describes."""

    @property
    def bounds(self) -> None:
        """None: no transition probability is bounded."""


class HasFamily(Protocol):
    """What was made with a family, such as a fit or a model file."""

    @property
    def family(self) -> Family:
        """Θ."""


AnyFamily: TypeAlias = Family | MarkovChain | HasFamily


def as_family(family: AnyFamily) -> Family:
    """Wrap a single chain as a family; leave a family as it is, and take that of what has one.

    Raises
    ------
    ParameterError
        It is neither.
    """
    if isinstance(family, MarkovChain):
        return ChainFamily([family])
    if isinstance(family, ChainFamily):
        return family  # known without the looks below, which are a thirtieth of a short chain's leakage
    if getattr_static(family, "family", None) is not None:
        return as_family(family.family)  # type: ignore[union-attr]
    if why := getattr(family, "unresolved", ""):
        raise ParameterError(why)
    # looked up without being evaluated: an interval family has no finite set of chains and says so when asked
    if any(
        getattr_static(family, name, None) is None for name in ("chains", "smallest_stationary_probability", "eigengap")
    ):
        raise ParameterError(
            f"family is {shown(family)}; give a MarkovChain, a ChainFamily, a BinaryInterval, an IntervalFamily, "
            "a TotalVariationFamily, a MixingFamily, or what fit or read_public_model returns"
        )
    return cast(Family, family) if getattr_static(family, "document", None) is not None else _Foreign(family)


class _Foreign(ChainFamily):
    """A kind of family from elsewhere, of which only the chains that have its noise scale are known."""

    members = ()
    occurring = None

    def __init__(self, family: Any) -> None:
        super().__init__(family.chains)
        for name in ("smallest_stationary_probability", "eigengap"):
            object.__setattr__(self, name, getattr(family, name))


def standing_chains(family: AnyFamily) -> tuple[MarkovChain, ...]:
    """Return :attr:`Family.chains`, none where a family says that it has none.

    Raises ParameterError: it is no family.
    """
    try:
        return as_family(family).chains
    except ChainError:
        return ()


def without_matrix(family: AnyFamily) -> str:
    """Say why a family has neither chains that stand for it nor bounds of a matrix; empty where it has one of them.

    What needs a transition matrix is not applicable then, for this reason. Raises ParameterError: it is no family.
    """
    theta = as_family(family)
    try:
        return "" if theta.bounds is not None or theta.chains else "the family has no chains"
    except ChainError as error:
        return str(error)


def finite_chains(family: AnyFamily, who: str) -> tuple[MarkovChain, ...]:
    """Return the chains of a finite Θ; the chain a class has for some mechanisms stands for it in these alone.

    ``who`` says what needs them. Raises ChainError: Θ is not finite; ParameterError: it is no family.
    """
    if chains := as_family(family).members:
        return chains
    why = without_matrix(family)
    what = f": {why}" if why else ", not for all between bounds; give chains of them"
    raise ChainError(f"{who} is computed for finitely many chains{what}")
