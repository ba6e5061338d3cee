"""What differential privacy promises and what it does not: two textbook examples, computed.

*The smoker* (Dwork and Roth, 2014, section 1). A study counts the ill among smokers. Its result teaches an insurer that
smoking causes cancer, and costs a smoker dearly whether or not he took part; differential privacy bounds only what his
own record adds.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pufferflow._noise import discrete_laplace
from pufferflow.related.dp._binomials import window, window_law
from pufferflow.related.dp.differencing import difference_guess
from pufferflow.related.dp.laplace import Laplace

Law = NDArray[np.float64]


@dataclass(frozen=True)
class SmokingStudy:
    """Count of the ill among smokers, with Laplace noise, and an insurer who holds smoking for harmful or not.

    Parameters
    ----------
    others : int
        Smokers in the study but for the one of interest.
    epsilon : float
        Privacy of the count.
    harmless, harmful : float
        Share of smokers who fall ill if smoking does not, or does, cause it.
    belief : float
        The insurer's probability that it does.
    """

    others: int
    epsilon: float
    harmless: float = 0.05
    harmful: float = 0.2
    belief: float = 0.5

    @property
    def risk_before(self) -> float:
        """The insurer's probability that the smoker falls ill, before the study."""
        return (1 - self.belief) * self.harmless + self.belief * self.harmful

    def risk_without(self) -> float:
        """Its mean after a study without the smoker, if smoking is harmful."""
        harmless, harmful = self._laws(0)
        return float(harmful @ self._risk(harmless, harmful, harmless, harmful))

    def risk_with(self, ill: bool) -> float:
        """Its mean after a study with the smoker, if smoking is harmful and he is ``ill`` or is not."""
        well, sick = self._laws(0), self._laws(1)
        return float((sick if ill else well)[1] @ self._risk(*well, *sick))

    def risk_known(self, ill: bool) -> float:
        """The same for an insurer who knows that smoking is harmful and how many of the others are ill."""
        likelihoods = [discrete_laplace(self._reach() - bit, self._scale()) for bit in (0, 1)]
        sick = self.harmful * likelihoods[1]
        return float(likelihoods[ill] @ (sick / (sick + (1 - self.harmful) * likelihoods[0])))

    def _risk(self, harmless_well: Law, harmful_well: Law, harmless_sick: Law, harmful_sick: Law) -> Law:
        """Posterior of illness by the published count, from its laws given what is true."""
        sick = (1 - self.belief) * self.harmless * harmless_sick + self.belief * self.harmful * harmful_sick
        well = (1 - self.belief) * (1 - self.harmless) * harmless_well + self.belief * (1 - self.harmful) * harmful_well
        evidence = sick + well
        return np.asarray(np.divide(sick, evidence, out=np.zeros_like(sick), where=evidence > 0), np.float64)

    def _laws(self, bit: int) -> tuple[Law, Law]:
        """Laws of the published count if smoking is harmless, or harmful, and the smoker's record counts ``bit``."""
        noise = discrete_laplace(self._reach(), self._scale())
        empty = np.zeros(1)
        parts = [np.convolve(_count_law(self.others, rate), noise) for rate in (self.harmless, self.harmful)]
        moved = [np.concatenate([empty, law] if bit else [law, empty]) for law in parts]
        return moved[0], moved[1]

    def _scale(self) -> float:
        return Laplace(1.0, self.epsilon).scale

    def _reach(self) -> NDArray[np.int64]:
        """Noises but for a mass below 1e-16."""
        most = math.ceil(37 * self._scale()) + 1
        return np.arange(-most, most + 1)


def _count_law(people: int, rate: float) -> Law:
    """Probabilities of 0, 1, …, ``people`` ill ones."""
    law = np.zeros(people + 1)
    law[slice(*window(people, rate))] = window_law(people, rate)
    return law


def exact_differencing(bits: NDArray[np.int64]) -> float:
    """Share of people whom two exact counts, with and without each, give away."""
    everybody = int(bits.sum())
    right = [difference_guess(everybody, int(np.delete(bits, i).sum())) == bit for i, bit in enumerate(bits)]
    return float(np.mean(right))


def noisy_differencing(epsilon: float, stream: np.random.Generator, repetitions: int) -> Law:
    """Whether the attacker was right (1) or not (0), in independent attacks on people with an even bit."""
    bits = stream.integers(2, size=repetitions)
    scale = Laplace(1.0, epsilon).scale
    draws = stream.geometric(-math.expm1(-1 / scale), (2, 2, repetitions))
    noise = draws[0] - draws[1]  # the difference of two geometric counts is the discrete Laplace law
    return np.asarray(difference_guess(bits + noise[0], noise[1]) == bits, np.float64)
