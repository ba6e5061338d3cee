"""Several αβ views of one table, within one bound on what they tell together."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import pandas as pd

from pufferflow._checks import check_type
from pufferflow._display import displayed
from pufferflow.errors import ParameterError
from pufferflow.related.dp.alpha_beta import (
    AlphaBeta,
    PrivacyCheck,
    Probability,
    Publication,
    check_bounds,
    check_views,
    data_table,
    publish,
)
from pufferflow.related.dp.domains import Domain


@displayed("domain", "d", "gamma")
class Publisher:
    """Publish views of one table that stay (d, γ)-private together.

    A view is counted before it is drawn, and one with which the bound would not hold is refused. The data are fixed:
    views of a table that changes tell of its changes too, which this account does not cover, and neither does it know
    views that other publishers made of the same data.

    Parameters
    ----------
    data : DataFrame, or collection of tuples in the order of the domain's columns
    domain : Domain
    d, gamma : Fraction, str or float
        Bounds on prior and posterior, 0 < d ≤ γ ≤ 1, d < 1.

    Raises
    ------
    DataError
        Data that are not a set of tuples of the domain.
    ParameterError
        Bounds out of range.

    Examples
    --------
    >>> from pufferflow import dp
    >>> people = dp.Domain({"age": range(100), "ill": [False, True]})
    >>> publisher = dp.Publisher([(30, True), (62, False)], people, d=0.1, gamma=0.5)
    >>> view = publisher.publish(dp.choose_alpha_beta(0.1, 0.5, views=2))
    >>> publisher.check(dp.choose_alpha_beta(0.1, 0.5)).private
    False
    """

    def __init__(
        self,
        data: pd.DataFrame | Collection[tuple[Any, ...]],
        domain: Domain,
        d: Probability,
        gamma: Probability,
    ) -> None:
        check_type(domain, "domain", Domain)
        self._data = data_table(data, domain)
        domain.encode(self._data)
        self.domain = domain
        self.d, self.gamma = check_bounds(d, gamma)
        self._views: list[AlphaBeta] = []

    @property
    def views(self) -> tuple[AlphaBeta, ...]:
        """Parameters of the views that were published."""
        return tuple(self._views)

    def check(self, parameters: AlphaBeta) -> PrivacyCheck:
        """Check all views so far and one more, of these parameters, together."""
        return check_views([*self._views, parameters], self.d, self.gamma)

    def publish(self, parameters: AlphaBeta, *, insecure_seed: int | None = None) -> Publication:
        """Publish one more view.

        Parameters
        ----------
        parameters : AlphaBeta
            For k views of the same kind: ``choose_alpha_beta(d, gamma, views=k)``.
        insecure_seed : int, optional
            As :func:`~pufferflow.dp.publish` has it; not private.

        Raises
        ------
        ParameterError
            With this view a tuple's posterior could pass γ, or fall too far; nothing was published.
        """
        views = self.check(parameters)
        if not views.private:
            raise ParameterError(
                f"view {len(self._views) + 1} is refused: with it a tuple's posterior could reach "
                f"{float(views.posterior_inside):.3g} (gamma is {float(self.gamma):g}) or fall to "
                f"{float(views.ratio_outside):.3g} of its prior (d / gamma is {float(self.d / self.gamma):.3g}); "
                "choose parameters for all views together"
            )
        self._views.append(parameters)
        return publish(self._data, self.domain, parameters, insecure_seed=insecure_seed)
