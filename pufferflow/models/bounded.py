"""What families of chains known by bounds of their rows have in common."""

from __future__ import annotations

from typing import Any, ClassVar, Self

from pufferflow._util.checks import check_type
from pufferflow.errors import ChainError
from pufferflow.models.families import Family
from pufferflow.models.transition_bounds import TransitionBounds


class BoundedFamily(Family, TransitionBounds):
    """All chains whose rows lie in sets given one a state, each step free to follow other rows; immutable.

    Attributes
    ----------
    backward : BoundedFamily or None
        Sets of the distributions of a record given the one after it, where they are known.
    """

    no_chains = (
        "this needs finitely many chains, which a family between bounds does not have; use leakage, or give chains of "
        "it or a binary interval"
    )

    kind: ClassVar[str]
    """Key of model files."""

    backward: Self | None

    def _follow(self, backward: Self | None) -> None:
        """Keep bounds of the reversed chain, once they are known to be of this kind and size."""
        if backward is not None:
            check_type(backward, "backward", type(self))
            if backward.states != self.states:
                raise ChainError(f"backward has {backward.states} states, the family {self.states}; give the same ones")
            if backward.backward is not None:
                raise ChainError("backward has backward bounds itself; give those of the reversed chain alone")
        self.backward = backward

    def numbers(self) -> dict[str, Any]:
        """Return the fields of the rows in a model file, without those of the reversed chain."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.states} states{', both ways' if self.backward else ''})"

    @property
    def bounds(self) -> TransitionBounds:
        """Bounds of the transition probabilities."""
        return self

    @property
    def sizes(self) -> tuple[int, ...]:
        """Number of states, of all chains."""
        return (self.states,)

    def text(self, public: bool) -> str:
        """Say in words which chains these are."""
        which = "from any start" if self.backward is None else "read forwards and backwards"
        return f"any chain on these {self.states} states between the bounds of the model, {which}"

    def document(self) -> dict[str, Any]:
        """Return the model as plain JSON types."""
        backward = {} if self.backward is None else {"backward": self.backward.numbers()}
        return {self.kind: self.numbers() | backward}
