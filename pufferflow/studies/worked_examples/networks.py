"""The flu network (section 2.2) by general Pufferfish: Theorems 2.4 and 3.3, and Theorem 4.4 on a Bayesian network."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import product
from math import comb, prod

import numpy as np
import pandas as pd

from pufferflow.general import PufferfishFramework
from pufferflow.related.bayesnet import BayesianNetwork, Variable, markov_quilt_mechanism, network_cost
from pufferflow.studies.values import Value

Database = tuple[int, ...]
Law = Mapping[Database, Fraction]

CLIQUE = ("0.1", "0.15", "0.5", "0.15", "0.1")
"""P(N = 0, …, 4) of the ill of a clique of four (section 3); who they are is equally likely."""

BELIEF = ("0.2", "0.1", "0.4", "0.1", "0.2")
"""What an adversary outside Θ believes instead: more often nobody or everybody."""

GROUPS = (("ann", "bob", "cem", "dan"), ("eva", "fay", "gil"), ("hal", "ida"))
"""Cliques of the flu network: those within one meet, and nobody else does."""

SEASONS = {
    "winter": (CLIQUE, ("0.3", "0.3", "0.25", "0.15"), ("0.5", "0.3", "0.2")),
    "summer": (("0.4", "0.3", "0.2", "0.08", "0.02"), ("0.6", "0.25", "0.1", "0.05"), ("0.8", "0.15", "0.05")),
}
"""Θ of the flu network: laws of the number of the ill of each clique."""

PEOPLE = tuple(name for group in GROUPS for name in group)
MET = [[0.9, 0.1], [0.6, 0.4]]
CONTACTS = {"bob": "ann", "cem": "ann", "dan": "bob", "eva": "bob", "fay": "cem"}
"""Who may have caught the flu from whom, one contact each, and how likely."""

FRAMEWORKS = 200
SEED = 33
"""Of the random frameworks."""


def clique_law(numbers: Sequence[str]) -> dict[Database, Fraction]:
    """Probability of each database of a clique, from that of the number of its ill."""
    size = len(numbers) - 1
    return {d: Fraction(numbers[sum(d)]) / comb(size, sum(d)) for d in product((0, 1), repeat=size)}


def union_law(cliques: Sequence[Law]) -> dict[Database, Fraction]:
    """Probability of each database of a union of independent cliques."""
    return {
        sum(parts, ()): prod((law[part] for law, part in zip(cliques, parts, strict=True)), start=Fraction(1))
        for parts in product(*cliques)
    }


def flu_network() -> PufferfishFramework:
    """Return the flu network: whether a person is ill is secret, and the number of the ill is released."""
    scenarios = {name: union_law([clique_law(law) for law in laws]) for name, laws in SEASONS.items()}
    return PufferfishFramework.from_databases(scenarios, sum, records=PEOPLE)


def flu_table() -> pd.DataFrame:
    """Every database of the flu network, as ``pufferflow general`` reads them."""
    names = ("well", "ill")
    rows = [
        {"scenario": season}
        | dict(zip(PEOPLE, (names[x] for x in database), strict=True))
        | {"value": sum(database), "probability": str(probability)}
        for season, laws in SEASONS.items()
        for database, probability in union_law([clique_law(law) for law in laws]).items()
    ]
    return pd.DataFrame(rows)


def network_values() -> Iterator[Value]:
    """What general Pufferfish says of flu networks."""
    yield from _clique()
    yield from _network()
    yield from _adversary()
    yield from _random_frameworks()
    yield from _composition()


def _clique() -> Iterator[Value]:
    people = PufferfishFramework.from_databases({"clique": clique_law(CLIQUE)}, sum, records=PEOPLE[:4])
    for state in (0, 1):
        law = people.laws["clique"][PEOPLE[0], state]
        shares = {int(value): mass / law.total for value, mass in law.pairs}
        for ill in range(5):
            yield Value("flu clique", f"P(N={ill} | X={state})", f"flu/{state}/{ill}", shares.get(ill, 0.0))
    W = people.wasserstein().W
    yield Value("flu clique", "Wasserstein sensitivity W", "flu/wasserstein", W)
    yield Value("flu clique", "group-DP sensitivity", "flu/group", people.group_sensitivity(GROUPS[:1]).sensitivity)


def _network() -> Iterator[Value]:
    example, network = "flu network", flu_network()
    sensitivity, group = network.wasserstein(), network.group_sensitivity(GROUPS)
    yield Value(example, "Wasserstein sensitivity W", "flu/network/wasserstein", sensitivity.W)
    yield Value(example, "group-DP sensitivity", "flu/network/group", group.sensitivity)
    quilts = markov_quilt_mechanism([_bayesian(laws) for laws in SEASONS.values()], 1.0)
    yield Value(example, "Markov Quilt scale × ε at ε = 1", "flu/network/quilts", quilts.scale)
    yield Value(example, "loss of noise W/ε at ε = 1", "flu/network/loss", network.privacy_loss(sensitivity.scale(1.0)))


def _bayesian(laws: Sequence[Sequence[str]]) -> BayesianNetwork:
    """A union of cliques as a Bayesian network: each person depends on those before in the clique."""
    variables = []
    for names, numbers in zip(GROUPS, laws, strict=True):
        law = clique_law(numbers)
        for place, name in enumerate(names):
            shape = (2,) * (place + 1)
            table = np.zeros(shape)
            for start in np.ndindex(shape):
                table[start] = float(sum(p for database, p in law.items() if database[: place + 1] == start))
            table /= table.sum(axis=-1, keepdims=True)
            variables.append(Variable(name, table, names[:place], ["well", "ill"]))
    return BayesianNetwork(variables)


def _adversary() -> Iterator[Value]:
    example, epsilon = "close adversary", 1.0
    believed, assumed = (
        PufferfishFramework.from_databases({"clique": clique_law(law)}, sum) for law in (BELIEF, CLIQUE)
    )
    close = assumed.close_adversary(believed.laws["clique"])
    yield Value(example, "Δ of the belief", "theorem-2.4/delta", close.delta)
    yield Value(example, "guaranteed, ε + 2Δ at ε = 1", "theorem-2.4/guaranteed", close.loss(epsilon))
    lost = believed.privacy_loss(assumed.wasserstein().scale(epsilon))
    yield Value(example, "lost to the adversary", "theorem-2.4/lost", lost)


def _random_frameworks() -> Iterator[Value]:
    """W beside the sensitivity of groups, for random queries, groups and laws within them."""
    rng, ratios = np.random.default_rng(SEED), list[float]()
    while len(ratios) < FRAMEWORKS:
        sizes = rng.integers(1, 4, int(rng.integers(1, 4)))
        groups, start = [], 1
        for size in sizes:
            groups.append([f"X{i}" for i in range(start, start + size)])
            start += int(size)
        law = union_law([_random_law(rng, int(size)) for size in sizes])
        query = dict(zip(law, rng.integers(0, 10, len(law)).tolist(), strict=True))
        framework = PufferfishFramework.from_databases({"random": law}, query.__getitem__)
        needed = framework.group_sensitivity(groups)
        if needed.sensitivity:  # a query that no group changes needs no noise either way
            ratios.append(framework.wasserstein().W / needed.sensitivity)
    example = f"{FRAMEWORKS} random frameworks"
    larger = float(sum(ratio > 1 for ratio in ratios))
    yield Value(example, "those where W exceeds the group sensitivity", "theorem-3.3/larger", larger)
    yield Value(example, "W ÷ group sensitivity, on average", "theorem-3.3/ratio", float(np.mean(ratios)))


def _random_law(rng: np.random.Generator, size: int) -> dict[Database, Fraction]:
    """Law of a group in which every record may have both values; a third of the databases is impossible."""
    databases = list(product((0, 1), repeat=size))
    while True:
        masses = (rng.integers(0, 10, len(databases)) * (rng.random(len(databases)) > 1 / 3)).tolist()
        possible = [database for database, mass in zip(databases, masses, strict=True) if mass]
        if all(len(set(states)) == 2 for states in zip(*possible, strict=True)) and possible:
            return {database: Fraction(mass, sum(masses)) for database, mass in zip(databases, masses, strict=True)}


def _composition() -> Iterator[Value]:
    """Three releases of the number of the ill among six people who had one contact each."""
    tree = BayesianNetwork([Variable("ann", [0.8, 0.2]), *(Variable(who, MET, [by]) for who, by in CONTACTS.items())])
    epsilon, releases = 3.0, 3
    scale = markov_quilt_mechanism(tree, epsilon).scale
    cost = network_cost(tree, [scale] * releases)
    example = "flu tree"
    yield Value(example, "scale of one release at ε = 3", "composition/network/scale", scale)
    yield Value(example, "three of them, Theorem 4.4", "composition/network/theorem", cost.theorem_4_4)
    yield Value(example, "three of them, one quilt for all", "composition/network/quilts", cost.quilts)
