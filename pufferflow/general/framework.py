"""A Pufferfish framework with a scalar query: secrets, pairs that must not be told apart, and scenarios Θ."""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable, Iterable, Mapping
from fractions import Fraction
from functools import cached_property
from typing import Any, TypeAlias

from pufferflow._checks import check_epsilon, check_list, check_positive, check_type
from pufferflow._numbers import written_number
from pufferflow._rounding import float_up
from pufferflow.divergences import Law
from pufferflow.errors import ParameterError
from pufferflow.general.adversary import ScenarioDistance, closest_scenario
from pufferflow.general.databases import Databases, GroupSensitivity
from pufferflow.general.given import (
    MOST_PAIRS,
    given_databases,
    hashable,
    likely_pairs,
    named,
    pairs_of_records,
    scenario_laws,
)
from pufferflow.general.noise import add_lattice_noise
from pufferflow.general.sensitivity import (
    Laws,
    Pair,
    WassersteinSensitivity,
    laplace_loss,
    possible_values,
    widest_pair,
)
from pufferflow.general.tables import read_scenarios

GivenLaws: TypeAlias = "Mapping[Any, Mapping[Any, Law | Mapping[Any, Any]]]"


class PufferfishFramework:
    """A Pufferfish framework (S, Q, Θ) with the query F to be released, all finite and exact.

    Everything follows from the distributions P(F = w | s, θ), which depend on the beliefs of Θ and on no data. Numbers
    are integers, fractions, floats (which stand for their shortest decimal) or texts such as "1/3".

    Parameters
    ----------
    laws : mapping
        ``laws[scenario][secret][value]`` is P(F = value | secret, scenario). A secret that a scenario gives probability
        0 is left out there. Sums within 1e-9 of 1 are divided by.
    pairs : iterable of pairs of secrets, optional
        Those that must not be told apart (default: any two that some scenario gives positive probability).

    Attributes
    ----------
    laws : mapping from scenario to mapping from secret to Law
    pairs : tuple of pairs

    Raises
    ------
    ParameterError
        There is no scenario, a number is no probability, a distribution does not sum to 1, a pair names an unknown
        secret, or no scenario gives both secrets of a pair positive probability.

    Examples
    --------
    Four people meet, and N of them have the flu with P(N = 0, …, 4) = .1, .15, .5, .15, .1, whoever they are (section
    3): given that Ann is well, or ill, N has these distributions.

    >>> import pufferflow as pf
    >>> well = {0: "0.2", 1: "0.225", 2: "0.5", 3: "0.075"}
    >>> flu = pf.PufferfishFramework({"clique": {"well": well, "ill": {4 - n: p for n, p in well.items()}}})
    >>> flu.wasserstein().W, flu.wasserstein().scale(epsilon=0.5)
    (2.0, 4.0)
    >>> noisy = flu.release(3, epsilon=0.5)  # exact noise of that scale, from the operating system's randomness
    """

    def __init__(self, laws: GivenLaws, pairs: Iterable[Iterable[Hashable]] | None = None) -> None:
        check_type(laws, "laws", Mapping)
        if not laws:
            raise ParameterError("there is no scenario; give at least one")
        self.laws: Laws = {scenario: scenario_laws(given, scenario) for scenario, given in laws.items()}
        self.pairs = self._likely_pairs() if pairs is None else self._checked_pairs(pairs)
        self._databases: Databases | None = None

    @classmethod
    def from_databases(
        cls,
        scenarios: Mapping[Any, Any],
        query: Callable[[Any], Any],
        *,
        records: Iterable[str] | None = None,
        secrets: Mapping[Any, Callable[[Any], bool]] | None = None,
        pairs: Iterable[Iterable[Hashable]] | None = None,
    ) -> PufferfishFramework:
        """Return the framework of distributions of whole databases, from which the distributions of the query follow.

        Parameters
        ----------
        scenarios : mapping from scenario to databases with probabilities
            A mapping from database to probability, or an iterable of such pairs, as a program yields that runs through
            all that may happen; the probabilities of a database that is met several times add up. A database is a
            tuple, one entry a record.
        query : callable
            F of a database.
        records : iterable of str, optional
            Names of the records (default: X1, X2, …).
        secrets : mapping from secret to callable, optional
            Whether the secret holds in a database. By default the secrets are ``(record, value)``, as in the paper, and
            the pairs are any two values of one record.
        pairs : iterable of pairs of secrets, optional
            As for the class.

        Raises
        ------
        ParameterError
            As for the class, or the databases differ in their number of records.

        Examples
        --------
        >>> import pufferflow as pf
        >>> twins = {"same": {(0, 0): "1/2", (1, 1): "1/2"}, "apart": {(0, 1): "1/2", (1, 0): "1/2"}}
        >>> found = pf.PufferfishFramework.from_databases(twins, query=sum)
        >>> found.wasserstein()
        WassersteinSensitivity(W=2.0, law='same', pair=(('X1', 0), ('X1', 1)))
        >>> found.group_sensitivity([["X1", "X2"]])
        GroupSensitivity(sensitivity=2.0, group=('X1', 'X2'), independent=True)
        """
        databases = given_databases(scenarios, query, records)
        if secrets is None:
            laws = databases.laws(databases.states)
            return cls._of(databases, laws, pairs_of_records(laws) if pairs is None else pairs)
        check_type(secrets, "secrets", Mapping)
        tests = dict(secrets)
        if not all(map(callable, tests.values())):
            raise ParameterError("a secret is no function of a database that says whether it holds; give one")
        held = databases.laws(lambda database: [name for name, holds in tests.items() if holds(database)])
        return cls._of(databases, held, pairs)

    @classmethod
    def from_table(
        cls, source: str | os.PathLike[str], pairs: Iterable[Iterable[Hashable]] | None = None
    ) -> PufferfishFramework:
        """Return the framework of a table.

        Parameters
        ----------
        source : path
            A CSV file (``"-"`` is standard input) with the columns ``scenario`` (may be left out),
            ``secret``, ``value`` and ``probability``: a row is P(F = value | secret, scenario). Or without ``secret``,
            a column for each record instead: a row is P(database | scenario) and the query there, the secrets are the
            texts ``record=state`` and the pairs any two states of one record.
        pairs : iterable of pairs of secrets, optional
            As for the class.

        Raises
        ------
        DataError
            The table cannot be read, a column is missing or unknown, or its probabilities do not sum to 1.
        ParameterError
            A pair is not one of secrets of the table.
        """
        laws, databases, likely = read_scenarios(source)
        return cls._of(databases, laws, likely if pairs is None else pairs)

    @classmethod
    def _of(
        cls,
        databases: Databases | None,
        laws: Mapping[Any, Mapping[Any, Law]],
        pairs: Iterable[Iterable[Hashable]] | None,
    ) -> PufferfishFramework:
        framework = cls(laws, pairs)
        framework._databases = databases
        return framework

    def __repr__(self) -> str:
        return f"PufferfishFramework({len(self.laws)} scenarios, {len(self.pairs)} pairs of secrets)"

    def wasserstein(self) -> WassersteinSensitivity:
        """W of Algorithm 1: max over θ and pairs (s, s') of W∞(P(F | s, θ), P(F | s', θ)).

        Releasing F with Laplace noise of ``scale(epsilon)``, which is W/ε rounded up, is ε-private.
        """
        return WassersteinSensitivity(float_up(self._widest[0]), *self._widest[1:])

    @cached_property
    def _widest(self) -> tuple[Fraction, Hashable | None, Pair | None]:
        return widest_pair(self.laws, self.pairs)

    def release(self, value: Any, epsilon: float) -> int | float:
        """Release the query by the Wasserstein Mechanism: with noise of scale W/ε, exactly drawn.

        The noise is discrete, on the lattice of all values that the query has under Θ, and comes from the operating
        system's randomness: floating-point numbers play no part. Where W is 0 there is none, for the query tells
        nothing of the secrets. Further releases of the same query add up: together they are Σ ε_k-private, since one
        coupling serves all of them. Of releases of different queries no such sum is known in general.

        Parameters
        ----------
        value : number
            What the query is; no message shows it.
        epsilon : float
            ε > 0.

        Returns
        -------
        int or float

        Raises
        ------
        ParameterError
            ε is out of range, no scenario gives ``value`` positive probability, or the lattice is too fine.
        """
        budget = Fraction(check_epsilon(epsilon))
        values = possible_values(self.laws)
        try:
            exact = written_number(value, "the value")
        except ParameterError:
            exact = None  # its message could show it
        if exact not in values:
            raise ParameterError(
                "the value to release is none that the query has under any scenario, so what is guaranteed does not "
                "hold for it; check the value, or give scenarios that allow it"
            )
        assert exact is not None
        noisy = add_lattice_noise(exact, values, self._widest[0] / budget) if self._widest[0] else exact
        return int(noisy) if noisy.denominator == 1 else float(noisy)

    def privacy_loss(self, scale: float) -> float:
        """Largest log-ratio of the densities of F + Lap(scale) given two secrets of a pair, in nats, rounded up.

        What noise of this scale really loses, at most ε where ``scale`` is W/ε. Raises ParameterError: ``scale`` is not
        a positive number, or so small that the loss passes what floats hold.
        """
        return laplace_loss(self.laws, self.pairs, check_positive(scale, "scale"))

    def close_adversary(self, belief: Mapping[Any, Law | Mapping[Any, Any]]) -> ScenarioDistance:
        """Distance of an adversary who believes a scenario outside Θ (Theorem 2.4); ``.loss(ε)`` is ε + 2Δ.

        The distributions compared are those of the query: what is released depends on the database through it alone,
        and their distance is at most that of the distributions of whole databases, of which the theorem speaks. The
        secrets are those of pairs that the adversary gives positive probability.

        Parameters
        ----------
        belief : mapping
            ``belief[secret][value]``, as one scenario of ``laws``.

        Raises
        ------
        ParameterError
            As for the class, or the belief has a secret that is in no scenario.
        """
        believed = scenario_laws(belief, "the adversary's")
        known = {secret for given in self.laws.values() for secret in given}
        for secret in believed:
            if secret not in known:
                raise ParameterError(f"the adversary's scenario has the secret {named(secret)}, which no other has")
        likely = (pair for pair in self.pairs if pair[0] in believed and pair[1] in believed)
        return closest_scenario(self.laws, believed, dict.fromkeys(secret for pair in likely for secret in pair))

    def group_sensitivity(self, groups: Iterable[Iterable[str]]) -> GroupSensitivity:
        """Largest change of the query when all records of one correlated group change (Definition 2.2 and B.2).

        Over the databases given, also those of probability 0. Where the groups are independent under every scenario, W
        of pairs of values of a record is at most this (Theorem 3.3): the coupling that changes the record's group and
        keeps the others moves the query no further.

        Parameters
        ----------
        groups : iterable of iterables of str
            Names of the records of each group; a record in none is a group of its own.

        Raises
        ------
        ParameterError
            A record is unknown or in two groups, or the framework was not made of databases.
        """
        if self._databases is None:
            raise ParameterError(
                "the scenarios are distributions of the query, which do not say how records change it; give databases"
            )
        return self._databases.group_sensitivity(groups)

    def _checked_pairs(self, pairs: Iterable[Iterable[Hashable]]) -> tuple[Pair, ...]:
        known = {secret for given in self.laws.values() for secret in given}
        checked = []
        for given in check_list(pairs, "pairs"):
            names = hashable(check_list(given, "a pair"), "a secret")
            if len(names) != 2 or names[0] == names[1]:
                raise ParameterError("one of the pairs does not consist of two different secrets; give two")
            for name in names:
                if name not in known:
                    raise ParameterError(f"a pair has the secret {named(name)}, which no scenario has")
            if not any(names[0] in laws and names[1] in laws for laws in self.laws.values()):
                raise ParameterError(
                    f"no scenario gives both {named(names[0])} and {named(names[1])} positive probability; leave the "
                    "pair out, for it asks for nothing, or add a scenario"
                )
            checked.append((names[0], names[1]))
        if not checked:
            raise ParameterError("there is no pair of secrets, so nothing would be protected; give at least one")
        if len(checked) > MOST_PAIRS:
            raise ParameterError(f"there are {len(checked):,} pairs of secrets; at most {MOST_PAIRS:,} can be handled")
        return tuple(dict.fromkeys(checked))

    def _likely_pairs(self) -> tuple[Pair, ...]:
        """Any two secrets that some scenario gives positive probability."""
        return self._checked_pairs(likely_pairs(self.laws.values()))
