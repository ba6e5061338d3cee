"""The largest cost C per changed reading, a function of Θ, the level and ε.

C is the largest c for which the leakage of releases that cost c per changed reading is at most ε at
any length (docs/account.md, section 4). A certificate proves it for T = 10⁷ readings, longer spans
are refused, and so is a Θ whose bound still rises between 10⁶ and 10⁷.
"""

from dataclasses import asdict
from fractions import Fraction

from pufferflow._util.checks import check_epsilon
from pufferflow.accounting.account import MAX_STEPS, Level, Promise
from pufferflow.errors import ParameterError
from pufferflow.mechanisms import compute_scale
from pufferflow.models.chain import MarkovChain
from pufferflow.models.families import ChainFamily, Family
from pufferflow.models.mixing import MixingFamily

STILL_RISING = 1 + 1e-3


def calibrate(family: Family | None, level: Level, epsilon: float, delta: float = 0.0) -> Promise:
    """Return a promise of (ε, δ) with the largest cost that keeps ε, and its proof, without data.

    The certificate proves 1/C as the scale of a query of Lipschitz constant 1.

    Raises ParameterError: ε is out of range, Θ is missing though the level needs one, mixes too
    slowly for ε, or has no proof.
    """
    epsilon = check_epsilon(epsilon)
    if level.whole:
        return Promise(level, epsilon, Fraction(0), delta=delta)
    if family is None:
        raise ParameterError(
            "missing model of the readings: give `mixing` TIME OVERLAP (1h 0.4), "
            "or as `chain` a model of public data"
        )
    if isinstance(family, MixingFamily) and level.side_information == "any":
        raise _refusal("does not mix with side information any")
    if family.has_given_start:  # a record may begin at any time, so the start is arbitrary
        chains = [(c, MarkovChain(c.transition_matrix, "any")) for c in family.chains]
        family = ChainFamily([c if c.start == "stationary" else free for c, free in chains])
    scale, before = (
        compute_scale("leakage", family, steps, epsilon, **asdict(level))
        for steps in (MAX_STEPS, MAX_STEPS // 10)
    )
    if scale.scale is None or before.scale is None:
        raise _refusal(f"has no certified noise ({scale.reason})")
    if scale.scale > before.scale * STILL_RISING:
        raise _refusal(
            f"mixes too slowly for epsilon {epsilon:g}, or never, as an absorbing or a cyclic chain"
        )
    try:
        proved = scale.certified(family)
    except ParameterError as error:
        raise _refusal(f"cannot be certified for {MAX_STEPS:,} steps ({error})") from None
    assert proved.scale is not None
    return Promise(level, epsilon, 1 / Fraction(proved.scale), proved.certificate, delta)


def _refusal(why: str) -> ParameterError:
    return ParameterError(
        f"this assumption {why}; give `protect` participant, which needs none, or another chain"
    )
