"""Randomised response: each person answers truthfully with a known probability, else with another category."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd

from pufferflow._checks import check_list, check_positive, check_whole, shown
from pufferflow._display import displayed
from pufferflow._noise import open_dp
from pufferflow.errors import DataError, ParameterError


@displayed()
@dataclass(frozen=True)
class RandomisedResponse:
    """Answer truthfully with probability ``truth``, else one of the other categories, all equally likely.

    Parameters
    ----------
    categories : tuple of str
        At least two; answers outside them are refused.
    truth : float
        Probability of the true answer, between 1/k (says nothing) and 1 (excluded: no privacy). Two fair coins, "heads:
        the truth, tails: what the second coin says", are two categories with ``truth`` = 3/4, which is ln 3-DP.

    Raises
    ------
    ParameterError
        Fewer than two categories, one named twice, or ``truth`` out of range.
    """

    categories: tuple[str, ...]
    truth: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "categories", tuple(check_list(self.categories, "categories")))
        if not all(isinstance(category, str) for category in self.categories):
            raise ParameterError("the categories must be texts")
        if len(set(self.categories)) < 2 or len(set(self.categories)) < len(self.categories):
            raise ParameterError(
                f"randomised response needs two or more distinct categories; {len(self.categories)} are given"
            )
        check_positive(self.truth, "truth")
        if not 1 / len(self.categories) <= self.truth < 1:
            raise ParameterError(
                f"truth is {self.truth}; it must be a probability of at least 1/{len(self.categories)} and below 1"
            )

    @classmethod
    def for_epsilon(cls, categories: Sequence[str], epsilon: float) -> RandomisedResponse:
        """Most truthful response that is ``epsilon``-DP, rounded to less truth."""
        categories = check_list(categories, "categories")
        others = len(categories) - 1
        truth = 1 / (1 + others * math.exp(-check_positive(epsilon, "epsilon")))
        truth = max(1 / len(categories), math.nextafter(truth, 0)) if others > 0 else truth
        response = cls(tuple(categories), min(truth, math.nextafter(1, 0)))
        while response.epsilon > epsilon and response.truth > 1 / len(categories):
            response = cls(response.categories, max(1 / len(categories), math.nextafter(response.truth, 0)))
        return response

    @property
    def epsilon(self) -> float:
        """Privacy loss in nats, as OpenDP rounds it (never below the exact value)."""
        return float(self._measurement().map(1))

    def probability(self, answer: str, truth: str) -> Fraction:
        """Exact probability of an answer given the true category."""
        for category in (answer, truth):
            if category not in self.categories:
                raise ParameterError(f"{shown(category)} is none of the categories {self.categories}")
        kept = Fraction(self.truth)
        return kept if answer == truth else (1 - kept) / (len(self.categories) - 1)

    def release(self, values: Sequence[str]) -> list[str]:
        """Randomise every value with OpenDP's sampler.

        Raises
        ------
        DataError
            A value that is none of the categories.
        """
        values = check_list(values, "values")
        self._check(values)
        measurement = self._measurement()
        return [measurement(value) for value in values]

    def estimate(self, answers: Sequence[str]) -> pd.DataFrame:
        """Unbiased counts of the true categories from randomised answers.

        Returns
        -------
        DataFrame
            ``category``, ``count`` and ``standard_error`` (that of the estimated count taken between 0 and all).
        """
        answers = check_list(answers, "answers")
        self._check(answers)
        total = len(answers)
        seen = pd.Series(answers, dtype=object).value_counts().reindex(self.categories, fill_value=0).to_numpy(float)
        lie = (1 - self.truth) / (len(self.categories) - 1)
        if self.truth - lie <= 0:
            raise ParameterError("truth is 1/k: the answers say nothing about the data, no estimate exists")
        counts = (seen - total * lie) / (self.truth - lie)
        errors = [self.standard_error(count, total) for count in np.clip(counts, 0, total)]
        return pd.DataFrame({"category": self.categories, "count": counts, "standard_error": errors})

    def standard_error(self, count: float, total: int) -> float:
        """Standard error of the estimate of a category with ``count`` of ``total`` people."""
        count, total = check_positive(count, "count", or_zero=True), check_whole(total, "total", 0)
        lie = (1 - self.truth) / (len(self.categories) - 1)
        variance = count * self.truth * (1 - self.truth) + (total - count) * lie * (1 - lie)
        return math.sqrt(variance) / (self.truth - lie)

    def _measurement(self) -> Any:
        return open_dp().m.make_randomized_response(list(self.categories), self.truth)

    def _check(self, values: Sequence[Hashable]) -> None:
        for row, value in enumerate(values):
            if value not in self.categories:
                raise DataError(f"answer {row + 1} is none of the categories {self.categories}")
