"""Randomised weighted majority: follow an expert drawn with Pr ∝ exp(−η · its losses so far).

Losses lie in [0, 1]. Two loss tables are neighbours when they differ in one round, by any amount for any expert.

Regret. Expected loss a round minus that of the best expert is at most η + ln k/(ηT), which is 2√(ln k/T) at
η = √(ln k/T). Hoeffding's lemma gives the sharper η/8 + ln k/(ηT) (Freund and Schapire, 1997).

Privacy. Changing a round moves each later sum of losses by at most 1, so each later choice is an exponential mechanism
that is 2η-DP and has bounded range 2η. Three accounts of the T − 1 choices after the first:

- ``pure``: their sum, 2η(T−1), with δ = 0;
- ``published``: ε = η √(32 T ln(1/δ)), from advanced composition, which must be checked to reach that far (Dwork and
  Roth, "The Algorithmic Foundations of Differential Privacy", 2014, section 11.2);
- ``zcdp``: a choice of bounded range 2η is η²/2-zCDP (Cesar and Rogers, "Bounding, Concentrating, and Truncating",
  ALT 2021), all together r = (T−1)η²/2, hence ε = r + 2√(r ln(1/δ)). About four times less than the published one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pufferflow._checks import check_choice, check_confidence, check_numbers, check_positive, check_whole, shown
from pufferflow._display import displayed
from pufferflow.errors import DataError, ParameterError
from pufferflow.related.dp import _sampling

Account: TypeAlias = Literal["pure", "published", "zcdp"]
ACCOUNTS: tuple[Account, ...] = ("pure", "published", "zcdp")

_MORE = 1 + 1e-12
"""Covers the roundings of a few elementary functions: losses are rounded up, rates down."""


@displayed()
@dataclass(frozen=True)
class WeightedMajority:
    """Randomised weighted majority among ``experts`` with learning rate ``rate`` (η)."""

    experts: int
    rate: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "experts", check_whole(self.experts, "experts"))
        object.__setattr__(self, "rate", check_positive(self.rate, "rate"))

    @classmethod
    def tuned(cls, experts: int, rounds: int) -> WeightedMajority:
        """Rate √(ln k/T) that minimises η + ln k/(ηT)."""
        if check_whole(experts, "experts") == 1:
            raise ParameterError("experts is 1: there is nothing to learn; give two or more")
        return cls(experts, math.sqrt(math.log(experts) / check_whole(rounds, "rounds")))

    def probabilities(self, losses_so_far: ArrayLike) -> NDArray[np.float64]:
        """Probability of each expert, given the sums of their losses; shape (..., experts)."""
        sums = self._sums(losses_so_far)
        weights = np.exp(-self.rate * (sums - sums.min(axis=-1, keepdims=True)))
        return np.asarray(weights / weights.sum(axis=-1, keepdims=True), np.float64)

    def choose(self, losses_so_far: ArrayLike, *, insecure_seed: int | None = None) -> int:
        """Draw one expert, given the sums of their losses; exact for these floats, see :meth:`play`."""
        sums = self._sums(losses_so_far)
        if sums.ndim > 1:
            raise DataError(f"losses_so_far has shape {sums.shape}; give one sum of losses an expert")
        return self._draw([Fraction(value) for value in sums.tolist()], _sampling.randomness(insecure_seed))

    def play(self, losses: ArrayLike, *, insecure_seed: int | None = None) -> NDArray[np.int64]:
        """Draw an expert a round, before the losses of that round are seen.

        Sums of losses and exponents are exact fractions and the draws are by rejection, an event of probability exp(−x)
        for each try, so the law is the stated one without rounding.

        Parameters
        ----------
        losses : array_like, shape (rounds, experts)
            In [0, 1].
        insecure_seed : int, optional
            Draw from a seeded generator instead of the operating system's. Not private; for experiments.

        Raises
        ------
        DataError
            A table of the wrong shape, or a loss outside [0, 1].
        """
        table = self._check(losses)
        source = _sampling.randomness(insecure_seed)
        sums = [Fraction(0)] * self.experts
        chosen = np.empty(len(table), np.int64)
        for now, row in enumerate(table.tolist()):
            chosen[now] = self._draw(sums, source)
            sums = [total + Fraction(loss) for total, loss in zip(sums, row, strict=True)]
        return chosen

    def regret(self, losses: ArrayLike) -> float:
        """Expected loss a round minus the best expert's, exact up to rounding."""
        table = self._check(losses)
        before = np.vstack([np.zeros(self.experts), np.cumsum(table, axis=0)[:-1]])
        expected = float((self.probabilities(before) * table).sum())
        return (expected - float(table.sum(axis=0).min())) / len(table)

    def regret_bound(self, rounds: int, *, sharper: bool = False) -> float:
        """Bound η + ln k/(ηT) on :meth:`regret`; with ``sharper`` Hoeffding's η/8 in place of η."""
        first = self.rate / 8 if sharper else self.rate
        return first + math.log(self.experts) / (self.rate * check_whole(rounds, "rounds"))

    def epsilon(self, rounds: int, delta: float = 0.0, *, account: Account = "zcdp") -> float:
        """Privacy loss of all choices at this ``delta``, in nats, rounded up; see the module for the accounts."""
        _check_account(account, delta)
        later = check_whole(rounds, "rounds") - 1
        if account == "pure":
            return 2 * self.rate * later * _MORE
        log = math.log(1 / delta)
        if account == "zcdp":
            r = later * self.rate**2 / 2
            return (r + 2 * math.sqrt(r * log)) * _MORE
        loss = self.rate * math.sqrt(32 * rounds * log) * _MORE
        each = 2 * self.rate
        composed = each * math.sqrt(2 * rounds * log) + rounds * each * math.expm1(each)
        if composed > loss:
            raise ParameterError(
                f"the published account does not hold at rate {self.rate:g}, {rounds} rounds and delta {delta:g}: "
                f"advanced composition gives {composed:g}, not {loss:g}; use the zcdp account"
            )
        return loss

    def _draw(self, sums: list[Fraction], source: _sampling.Randomness) -> int:
        least, rate = min(sums), Fraction(self.rate)
        while True:
            expert = _sampling.integer_below(source, self.experts)
            if _sampling.bernoulli_exp(source, rate * (sums[expert] - least)):
                return expert

    def _sums(self, losses_so_far: ArrayLike) -> NDArray[np.float64]:
        sums = check_numbers(losses_so_far, "losses_so_far")
        if sums.shape[-1:] != (self.experts,) or not np.isfinite(sums).all():
            raise DataError(f"losses_so_far must have one finite number for each of the {self.experts} experts")
        return sums

    def _check(self, losses: ArrayLike) -> NDArray[np.float64]:
        table = check_numbers(losses, "the losses")
        if table.ndim != 2 or table.shape[1] != self.experts or len(table) == 0:
            raise DataError(f"the losses must have shape (rounds, {self.experts}); they have {table.shape}")
        outside = np.argwhere(~((table >= 0) & (table <= 1)))
        if len(outside):
            now, expert = outside[0]
            raise DataError(f"the loss of expert {expert + 1} in round {now + 1} is not in [0, 1]")
        return table


def private_rate(epsilon: float, rounds: int, delta: float = 0.0, *, account: Account = "zcdp") -> float:
    """Largest rate η whose ``rounds`` choices are (ε, δ)-DP by one account, rounded down.

    Raises
    ------
    ParameterError
        A parameter out of range, or an ε beyond the reach of the published account.
    """
    epsilon = check_positive(epsilon, "epsilon")
    _check_account(account, delta)
    later = max(check_whole(rounds, "rounds") - 1, 1)
    if account == "pure":
        return epsilon / (2 * later) / _MORE**2
    log = math.log(1 / delta)
    if account == "zcdp":
        # √r = √(ln(1/δ) + ε) − √ln(1/δ), without cancellation
        root = epsilon / (math.sqrt(log + epsilon) + math.sqrt(log))
        return root * math.sqrt(2 / later) / _MORE**2
    rate = epsilon / math.sqrt(32 * rounds * log) / _MORE**2
    WeightedMajority(1, rate).epsilon(rounds, delta, account="published")
    return rate


def _check_account(account: str, delta: float) -> None:
    check_choice(account, "account", ACCOUNTS)
    if account == "pure" and delta != 0:
        raise ParameterError(f"delta is {shown(delta)}; the pure account has delta 0")
    if account != "pure":
        check_confidence(delta, "delta", 1e-6)
