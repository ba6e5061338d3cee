"""W of joint laws over listed outcomes (Song et al., Algorithm 1)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping
from fractions import Fraction

from pufferflow._checks import check_list, check_type
from pufferflow._numbers import held_numbers
from pufferflow._rounding import float_up
from pufferflow.divergences import Law, Number, whole_multiples
from pufferflow.errors import ParameterError
from pufferflow.general.sensitivity import WassersteinSensitivity, widest_pair


def wasserstein_sensitivity(
    laws: Iterable[Iterable[Number]],
    query: Iterable[Number],
    secrets: Mapping[Hashable, Iterable[bool]],
    pairs: Iterable[tuple[Hashable, Hashable]],
) -> WassersteinSensitivity:
    """W = max over θ and pairs (s, s') of W∞(P(F | s, θ), P(F | s', θ)); releasing F + Lap(W/ε) is ε-private.

    Parameters
    ----------
    laws : iterable of sequences, each of shape (n,)
        Θ: joint laws over the same n outcomes (databases), as weights; each is divided by its sum. Floats are taken
        for the rationals they are (see :func:`pufferflow.divergences.wasserstein_infinity`).
    query : sequence of numbers, shape (n,)
        F of each outcome.
    secrets : mapping from name to sequence of bool, shape (n,)
        Which outcomes each secret holds in.
    pairs : iterable of pairs of names
        Pairs that must not be told apart. One with a secret of probability 0 under θ does not count under θ.
        :class:`pufferflow.PufferfishFramework` refuses one that counts under no θ, and releases.

    Returns
    -------
    WassersteinSensitivity

    Raises
    ------
    ParameterError
        Lengths differ, a number is not finite, a weight is negative, or a pair names an unknown secret.

    Examples
    --------
    The flu of four people, of whom N are ill with P(N = 0, …, 4) = .1, .15, .5, .15, .1 (section 3): an
    outcome is N and whether one of them, X, is ill.

    >>> from fractions import Fraction as F
    >>> ill = [F(j, 4) * p for j, p in enumerate((F(10), F(15), F(50), F(15), F(10)))]
    >>> well = [F(4 - j, 4) * p for j, p in enumerate((F(10), F(15), F(50), F(15), F(10)))]
    >>> secrets = {"well": [True] * 5 + [False] * 5, "ill": [False] * 5 + [True] * 5}
    >>> wasserstein_sensitivity([well + ill], [0, 1, 2, 3, 4] * 2, secrets, [("well", "ill")]).W
    2.0
    """
    values = held_numbers(query, "the query")
    check_type(secrets, "secrets", Mapping)
    masks = {name: check_list(mask, f"secret {name!r}") for name, mask in secrets.items()}
    for name, mask in masks.items():
        if len(mask) != len(values):
            raise ParameterError(f"secret {name!r} has {len(mask)} marks, the query {len(values)}; give one an outcome")
    asked = [tuple(check_list(pair, "a pair")) for pair in check_list(pairs, "pairs")]
    for pair in asked:
        if len(pair) != 2 or not all(name in masks for name in pair):
            raise ParameterError(f"each of the pairs must name two of the secrets {', '.join(map(repr, masks))}")
    given = [held_numbers(law, f"law {index + 1}") for index, law in enumerate(check_list(laws, "laws"))]
    if not given:
        raise ParameterError("there is no law; give at least one")
    used = {name: masks[name] for pair in asked for name in pair}
    conditional: dict[Hashable, dict[Hashable, Law]] = {}
    for index, law in enumerate(given):
        if len(law) != len(values):
            raise ParameterError(
                f"law {index + 1} has {len(law)} weights, the query {len(values)} values; give one an outcome"
            )
        if any(weight < 0 for weight in law) or not any(law):
            raise ParameterError(f"the weights of law {index + 1} must be non-negative and not all 0")
        masses = whole_multiples(law, f"the weights of law {index + 1}")
        conditional[index] = {}
        for name, mask in used.items():
            inside: Counter[Fraction] = Counter()
            for held, mass, value in zip(mask, masses, values, strict=True):
                if held:
                    inside[value] += mass
            if any(inside.values()):
                conditional[index][name] = Law.counted(inside)
    widest, index_of_law, pair_of_names = widest_pair(conditional, [(one, other) for one, other in asked])
    return WassersteinSensitivity(float_up(widest), index_of_law, pair_of_names)
