"""Approximate guarantees: the (ε, δ) of (c, δ0), zero-concentrated and Gaussian mechanisms.

A bound that turns every event-level c into a loss ε turns every event-level (c, δ0)-DP mechanism
into an (ε, δ)-Pufferfish one with δ = δ0 · (e^ε − 1)/(e^c − 1), at any length of the record:
docs/approximate.md, Theorem A. δ and σ are rounded up, budgets of mechanisms down.
"""

import math
from collections.abc import Callable

from pufferflow._util.checks import check_confidence, check_epsilon, check_positive

MARGIN = 1e-12
"""Relative; the formulas are exact to 1e-14 (in the exponent: 1e-14 of its terms)."""


def pufferfish_delta(epsilon: float, event_epsilon: float, event_delta: float) -> float:
    """Return δ of an event-level (c, δ0)-DP mechanism, rounded up (Theorem A).

    Parameters
    ----------
    epsilon : float
        A bound of the loss at c, such as :func:`pufferflow.leakage_loss` at scale 1/c.
    event_epsilon, event_delta : float
        c and δ0 of the mechanism for a change of one record.

    Raises ParameterError: a number is out of range.
    """
    allowed = check_positive(event_delta, "event_delta", or_zero=True)
    if not allowed:
        return 0.0
    return _exp(math.log(allowed), *_log_gain(epsilon, event_epsilon), up=True)


def event_delta(epsilon: float, delta: float, event_epsilon: float) -> float:
    """Return the total δ0 of event-level (c, δ0)-DP mechanisms, rounded down.

    Parameters and errors are those of :func:`pufferfish_delta`.
    """
    gain, loss = _log_gain(epsilon, event_epsilon)
    return _exp(math.log(check_confidence(delta, "delta")), -gain, -loss, up=False)


def concentrated_delta(epsilon: float, event_epsilon: float, rho: float) -> float:
    """Return δ of an event-level ρ-zCDP mechanism, rounded up (Theorem C).

    ``epsilon`` is a bound of the loss at c = ``event_epsilon``; the mechanism has a δ for each c.
    Raises ParameterError: a number is out of range.
    """
    event = check_positive(event_epsilon, "event_epsilon")
    ratio = event / math.sqrt(2 * check_positive(rho, "rho"))
    return _exp(_log_expm1(check_epsilon(epsilon)), _log_concentrated(ratio), up=True)


def event_rho(epsilon: float, delta: float, event_epsilon: float) -> float:
    """Return the total ρ of zero-concentrated mechanisms, rounded down (Theorem C).

    The exact samplers of OpenDP state their discrete Gaussian noise by ρ. Parameters and errors are
    those of :func:`pufferfish_delta`.
    """
    ratio = _smallest_ratio(epsilon, delta, _log_concentrated)
    return (check_positive(event_epsilon, "event_epsilon") / ratio) ** 2 / 2 * (1 - MARGIN)


def gaussian_ratio(epsilon: float, delta: float) -> float:
    """Return a, rounded up, such that Gaussian noise of σ = a Δ2/c is (ε, δ)-private (Theorem B).

    Δ2 is the change of the query by one record in L2 norm, c the event-level ε at which the loss is
    ε. Raises ParameterError: a number is out of range.
    """
    return _smallest_ratio(epsilon, delta, _log_gaussian)


def _log_gain(epsilon: float, event_epsilon: float) -> tuple[float, float]:
    """Return the two terms of log (e^ε − 1)/(e^c − 1)."""
    event = check_positive(event_epsilon, "event_epsilon")
    return _log_expm1(check_epsilon(epsilon)), -_log_expm1(event)


def _log_expm1(x: float) -> float:
    return math.log(math.expm1(x)) if x < 1 else x + math.log1p(-math.exp(-x))


def _log_concentrated(ratio: float) -> float:
    """Return log(e^(−a²/2 − 1)/a²)."""
    return -(ratio**2) / 2 - 1 - 2 * math.log(ratio)


def _log_gaussian(ratio: float) -> float:
    """Return log(φ(a)/a − Q(a)); beyond a = 30, for precision, its upper bound log(φ(a)/a³)."""
    log_density = -(ratio**2) / 2 - math.log(2 * math.pi) / 2
    if ratio > 30:
        return log_density - 3 * math.log(ratio)
    from scipy.special import erfcx  # loads slowly

    mills = math.sqrt(math.pi / 2) * float(erfcx(ratio / math.sqrt(2)))
    return log_density + math.log(1 / ratio - mills)


def _smallest_ratio(epsilon: float, delta: float, log_share: Callable[[float], float]) -> float:
    """Return the smallest a with (e^ε − 1) · share(a) ≤ δ, rounded up; the share falls in a."""
    target = math.log(check_confidence(delta, "delta")) - _log_expm1(check_epsilon(epsilon))
    low, high = -1.0, 1.0  # log2 of a; each step doubles or halves the bracket
    while log_share(2.0**low) <= target:
        low *= 2
    while log_share(2.0**high) > target:
        high *= 2
    while high - low > MARGIN:
        middle = (low + high) / 2
        low, high = (middle, high) if log_share(2.0**middle) > target else (low, middle)
    return float(2.0**high * (1 + MARGIN))


def _exp(*terms: float, up: bool) -> float:
    """Return e^(sum of the terms), at most 1, rounded by more than the errors of the terms."""
    slack = MARGIN * (1 + sum(map(abs, terms)))
    return math.exp(min(sum(terms) + (slack if up else -slack), 0.0))
