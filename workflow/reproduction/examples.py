"""The paper's worked examples, definitions computed exactly, and quilts of Figures 2 and 3."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import chain, product
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from pufferflow import networks
from pufferflow.general import PufferfishFramework, max_divergence
from pufferflow.general.distributions import distribution
from pufferflow.influence.quilts import QuiltSearch
from pufferflow.mechanisms import mqm_approx, mqm_exact
from pufferflow.models.chain import MarkovChain
from pufferflow.models.families import ChainFamily
from reproduction import tidy

Database = tuple[int, ...]
Values = Iterator[tuple[str, str, str, float | str]]
"""Example, quantity, key of the reported value, and the computed value."""

THETA_1 = MarkovChain([[0.9, 0.1], [0.4, 0.6]], [1.0, 0.0])
THETA_2 = MarkovChain([[0.8, 0.2], [0.3, 0.7]], [0.9, 0.1])
LENGTH, EPSILON = 100, 1.0
"""The running example of section 4.4."""
KINDS: tuple[Literal["general", "reversible"], ...] = ("general", "reversible")

CLIQUE = ("0.1", "0.15", "0.5", "0.15", "0.1")
"""P(N = 0, …, 4) for the number N of ill people in a clique of four (section 3)."""
PEOPLE = ("ann", "bob", "cem", "dan", "eva", "fay", "gil", "hal", "ida")
CLIQUES = (PEOPLE[:4], PEOPLE[4:7], PEOPLE[7:])
"""Cliques of a flu network (section 2.2): people meet only within their own."""
CONTACTS = {"bob": "ann", "cem": "ann", "dan": "bob", "eva": "bob", "fay": "cem"}
"""A tree: the person from whom each may have caught the flu."""


def worked_values() -> pd.DataFrame:
    """Return the tidy table "values": all worked examples, one row per value."""
    examples = (_divergences(), _definitions(), _flu(), _composition(), _running())
    rows = (dict(zip(tidy.SCHEMAS["values"], value, strict=True)) for value in chain(*examples))
    return tidy.frame(rows, "values")


def _divergences() -> Values:
    """Yield max-divergences of section 2, and of the example after Theorem 2.4."""
    given: Any = (("1/3", "1/2", "1/6"), ("1/2", "1/4", "1/4"))
    p, q = (distribution(dict(enumerate(each))) for each in given)
    yield "max-divergence", "D∞(p‖q)", "max-divergence", max_divergence(p, q)
    # Given the secret "X is not 3" the divergence of θ and the adversary's θ̃ is larger.
    assumed, prior = np.array([0.9, 0.05, 0.05]), np.array([0.01, 0.95, 0.04])
    given, given_prior = (each[:2] / each[:2].sum() for each in (assumed, prior))
    delta = _apart(given, given_prior)
    rounded = _apart(given.round(4), given_prior.round(4))
    example, key = "close adversary", "theorem-2.4"
    yield example, "exp D∞(θ‖θ̃)", f"{key}/unconditional", math.exp(_apart(assumed, prior))
    yield example, "exp Δ, given the secret", f"{key}/conditional", math.exp(delta)
    yield example, "exp Δ of probabilities of four digits", f"{key}/rounded", math.exp(rounded)
    yield example, "guaranteed, ε + 2Δ at ε = 1", f"{key}/guaranteed", 1 + 2 * delta


def _apart(p: Any, q: Any) -> float:
    one, other = (distribution(dict(enumerate(each))) for each in (p, q))
    return max(max_divergence(one, other), max_divergence(other, one))


def clique(numbers: Sequence[Fraction | str]) -> dict[Database, Fraction]:
    """Return the probability of each database from those of the number of ill people."""
    size = len(numbers) - 1
    ill = product((0, 1), repeat=size)
    return {d: Fraction(numbers[sum(d)]) / math.comb(size, sum(d)) for d in ill}


def contagion(size: int) -> dict[Database, Fraction]:
    """Return the distribution of a clique of section 2.2: P(N = j) ∝ e^{2j}, to six digits."""
    weights = [Fraction(f"{math.exp(2 * ill):.6g}") for ill in range(size + 1)]
    return clique([weight / sum(weights) for weight in weights])


def union(cliques: Iterable[Mapping[Database, Fraction]]) -> dict[Database, Fraction]:
    """Return the probability of each database of a union of independent cliques."""
    joint: dict[Database, Fraction] = {(): Fraction(1)}
    for one in cliques:
        joint = {d + own: p * q for (d, p), (own, q) in product(joint.items(), one.items())}
    return joint


def flu_table() -> pd.DataFrame:
    """Return every database of the flu network, as ``pufferflow related general`` reads them."""
    databases = union(contagion(len(names)) for names in CLIQUES)
    table = pd.DataFrame(list(databases), columns=list(PEOPLE)).replace({0: "well", 1: "ill"})
    table.insert(0, "scenario", "flu")
    return table.assign(value=[*map(sum, databases)], probability=[*map(str, databases.values())])


def _definitions() -> Values:
    """Yield examples of composition, of DP as a special case, and of post-processing."""
    # A secret bit X and a fair coin Y: neither Y nor X + Y mod 2 depends on X, both together do.
    coins = dict.fromkeys(product((0, 1), repeat=2), "1/4")
    outputs = {"Y": (0, 1, 0, 1), "X + Y mod 2": (0, 1, 1, 0), "both": (0, 3, 1, 2)}
    for name, released in outputs.items():
        release = dict(zip(coins, released, strict=True)).__getitem__
        framework = PufferfishFramework.from_databases({"fair": coins}, release)
        given, other = (framework.distributions["fair"]["X1", x] for x in (0, 1))
        loss = max(max_divergence(given, other), max_divergence(other, given))
        example = "Pufferfish does not always compose"
        yield example, f"loss of {name}, without noise", f"no-composition/{name}", loss
    # For independent records of any distribution the noise of DP for a count, 1/ε, gives ε.
    biased = [clique((1 - p, p)) for p in (Fraction(1, 10), Fraction(1, 2))]
    priors = {str(number): union(three) for number, three in enumerate(product(biased, repeat=3))}
    count, example = PufferfishFramework.from_databases(priors, sum), "DP as a special case"
    yield example, "W of a count of independent records", "dp/wasserstein", count.wasserstein().W
    yield example, "loss of noise 1/ε at ε = 1", "dp/loss", count.privacy_loss(1.0)
    # A hundred people smoke or not, independently; the share of smokers is released.
    others = {n: Fraction(math.comb(99, n), 2**99) for n in range(100)}
    share = {x: {Fraction(n + x, 100): p for n, p in others.items()} for x in (0, 1)}
    W = PufferfishFramework({"independent": share}).wasserstein().W
    yield "smokers", "W of their share among N = 100", "smokers/sensitivity", W
    # Post-processing the noisy number to "at most two are ill" loses no more.
    flu = PufferfishFramework.from_databases({"clique": clique(CLIQUE)}, sum)
    scale, by_secret = flu.wasserstein().scale(1.0), flu.distributions["clique"]
    below = []
    for number in (by_secret["X1", 0], by_secret["X1", 1]):
        ill = sum(float(p) * laplace_below((2 - float(n)) / scale) for n, p in number.items())
        below.append([ill, 1 - ill])
    answer = _apart(*below)
    example = "post-processing"
    yield example, "loss of noise W/ε at ε = 1", f"{example}/noisy", flu.privacy_loss(scale)
    yield example, "loss of “at most two are ill” read from it", f"{example}/answer", answer


def laplace_below(x: ArrayLike) -> Any:
    """Return the probability that noise Lap(1) is below ``x``; scipy.stats loads slowly."""
    half = np.exp(-np.abs(x)) / 2
    return np.where(np.asarray(x) < 0, half, 1 - half)[()]


def _flu() -> Values:
    """Yield W and the group sensitivity of the clique of section 3 and the networks of 2.2."""
    ten, network = [[f"X{i}" for i in range(1, 11)]], union(map(contagion, (4, 3, 2)))
    for example, key, groups, databases in (
        ("flu clique", "flu", CLIQUES[:1], clique(CLIQUE)),
        ("flu network, cliques of 4, 3, 2", "flu/network", CLIQUES, network),
        ("flu network, a clique of 10", "flu/large", ten, contagion(10)),
    ):
        records = list(chain(*groups))
        framework = PufferfishFramework.from_databases({"flu": databases}, sum, records=records)
        for state in (0, 1) if key == "flu" else ():
            given = framework.distributions["flu"][records[0], state]
            shares = {int(value): float(p) for value, p in given.items()}
            for n in range(5):
                yield example, f"P(N={n} | X={state})", f"flu/{state}/{n}", shares.get(n, 0.0)
        group = framework.group_sensitivity(groups).sensitivity
        yield example, "Wasserstein sensitivity W", f"{key}/wasserstein", framework.wasserstein().W
        yield example, "group-DP sensitivity", f"{key}/group", group


def _composition() -> Values:
    """Yield the example of Theorem 4.4, of a chain of three, and three releases on a tree."""
    theta, epsilon = MarkovChain(THETA_1.transition_matrix, [0.8, 0.2]), 10.0
    search = QuiltSearch(theta, 3, epsilon)
    kinds = (("∅", 0, 0, 3), ("{X1}", 1, 0, 2), ("{X3}", 0, 1, 2), ("{X1,X3}", 1, 1, 1))
    for name, left, right, nearby in kinds:
        e, example = search.influence(search.nodes(2), left, right), "composition"
        yield example, f"max-influence of {name}", f"composition/influence/{name}", e
        yield example, f"score of {name}", f"composition/score/{name}", nearby / (epsilon - e)
    example, key, met = "flu tree", "composition/network", [[0.9, 0.1], [0.6, 0.4]]
    infected = [networks.Variable(who, met, [source]) for who, source in CONTACTS.items()]
    tree = networks.BayesianNetwork([networks.Variable("ann", [0.8, 0.2]), *infected])
    scale = networks.markov_quilt_mechanism(tree, 3.0).scale
    one, three = (networks.network_cost(tree, [scale] * releases) for releases in (1, 3))
    yield example, "scale of one release at ε = 3", f"{key}/scale", scale
    yield example, "three of them, Theorem 4.4", f"{key}/theorem", 3 * one
    yield example, "three of them, one quilt for all", f"{key}/quilts", three


def _running() -> Values:
    """Yield section 4.4: scales and active quilts of θ1 and θ2, and MQMApprox of both."""
    example = "running example"
    for name, theta in (("θ1", THETA_1), ("θ2", THETA_2)):
        for convention in ("published", "exact"):
            noise = tidy.scale_row(mqm_exact(theta, LENGTH, EPSILON, convention=convention))
            steps = (-(noise["quilt_left"] or 0), noise["quilt_right"] or 0)
            quilt = ",".join(f"X{noise['node'] + step}" for step in steps if step)
            key, of = f"running/{name}/{convention}", f"of {name}, {convention} convention"
            yield example, f"σ {of}", f"{key}/scale", noise["scale"]
            yield example, f"worst node {of}", f"{key}/node", f"X{noise['node']}"
            yield example, f"its quilt {of}", f"{key}/quilt", "{" + quilt + "}"
            yield example, f"max-influence {of}", f"{key}/influence", noise["influence"]
        reversal = str(theta.time_reversal.round(12).tolist())
        yield example, f"time reversal of {name}", f"running/{name}/reversal", reversal
        for kind in KINDS:
            gap, key = theta.eigengap(kind), f"running/{name}/gap/{kind}"
            yield example, f"eigengap of {name} ({kind})", key, gap
    family = ChainFamily([THETA_1, THETA_2])
    smallest = family.smallest_stationary_probability()
    yield example, "π_min of Θ", "running/pi_min", smallest
    for kind in KINDS:
        gap, base = family.eigengap(kind), math.exp(EPSILON / 6)
        reach = 2 * math.ceil(math.log((base + 1) / (base - 1) / smallest) / gap)
        scale = mqm_approx(family, LENGTH, EPSILON, eigengap=kind).scale
        yield example, f"eigengap of Θ ({kind})", f"running/gap/{kind}", gap
        yield example, f"a* of Θ ({kind})", f"running/a_star/{kind}", float(reach)
        yield example, f"MQMApprox σ of Θ ({kind})", f"running/approx/{kind}", scale or math.inf


Network = networks.BayesianNetwork
Positions = Mapping[str, tuple[float, float]]
SHOWN = 16  # records of the running example; the rest are remote


def quilts() -> pd.DataFrame:
    """Return the tidy table "quilts": a row for each variable of each quilt, with its role."""
    kinds = [("X2", "X6"), ("X2",), ("X6",), ()]
    noise = tidy.scale_row(mqm_exact(THETA_1, LENGTH, EPSILON, convention="published"))
    steps = (-noise["quilt_left"], noise["quilt_right"])
    active = tuple(f"X{noise['node'] + step}" for step in steps)
    text = f"σ = {noise['scale']:.4f}; X{SHOWN + 1} to X{LENGTH} are remote"
    running = f"active quilt of the running example θ1, T = {LENGTH}"
    of_4 = _of_a_chain("quilts of X4 in a chain of 7", 7, "X4", kinds)
    of_running = _of_a_chain(running, SHOWN, f"X{noise['node']}", [active], text)
    return tidy.frame(chain(of_4, of_running, _of_a_network(3, 5)), "quilts")


def _of_a_chain(
    panel: str, length: int, node: str, kinds: Sequence[tuple[str, ...]], text: str = ""
) -> Iterator[dict[str, Any]]:
    """Yield quilts of a node, one below the other; ``text`` replaces the description of one."""
    network = networks.chain_network(THETA_1, length)
    found = {quilt.quilt: quilt for quilt in networks.markov_quilts(network, node)}
    for y, kind in enumerate(kinds):
        name = "{" + ", ".join(kind) + "}" if kind else "∅"
        line = text or f"{name}: {len(found[kind].nearby)} nearby"
        positions = {name: (float(i), float(-y)) for i, name in enumerate(network.names, start=1)}
        yield from _rows(panel, line, network, found[kind], positions)


def _of_a_network(rows: int, columns: int) -> Iterator[dict[str, Any]]:
    """Yield the smallest quilt of B2 in a grid of records with any remote record."""
    grid = product(range(rows), range(columns))
    positions = {f"{'ABC'[r]}{c + 1}": (float(c), float(-r)) for r, c in grid}
    fair = []
    for name, (x, y) in positions.items():
        parents = [other for other, at in positions.items() if at in ((x - 1, y), (x, y + 1))]
        fair.append(networks.Variable(name, np.full((2,) * (len(parents) + 1), 0.5), parents))
    network = Network(fair)
    smallest = next(quilt for quilt in networks.markov_quilts(network, "B2") if quilt.remote)
    yield from _rows("a quilt in a network", "", network, smallest, positions)


def _rows(
    panel: str, line: str, network: Network, quilt: networks.MarkovQuilt, positions: Positions
) -> Iterator[dict[str, Any]]:
    roles = dict.fromkeys(quilt.nearby, "nearby") | dict.fromkeys(quilt.quilt, "quilt")
    roles[quilt.node] = "node"
    for name, parents in zip(network.names, network.parents, strict=True):
        x, y = positions[name]
        row = {"panel": panel, "line": line, "variable": name, "x": x, "y": y}
        row["role"] = roles.get(name, "remote")
        yield row | {"parents": " ".join(network.names[p] for p in parents)}
