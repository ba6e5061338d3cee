"""The paper's worked examples: what it prints beside what the library computes."""

from __future__ import annotations

import math
from collections.abc import Iterator

import pandas as pd

from pufferflow.divergences import max_divergence
from pufferflow.influence import chain_influence
from pufferflow.markov import ChainFamily, MarkovChain
from pufferflow.mechanisms import mqm_approx, mqm_exact
from pufferflow.studies.values import Value, values_table
from pufferflow.studies.worked_examples.networks import flu_table, network_values

THETA_1 = MarkovChain([[0.9, 0.1], [0.4, 0.6]], [1.0, 0.0])
THETA_2 = MarkovChain([[0.8, 0.2], [0.3, 0.7]], [0.9, 0.1])


def worked_examples() -> tuple[pd.DataFrame, pd.DataFrame]:
    """Compute all worked examples, one row a value, and the databases of the flu network."""
    values = [*_max_divergence(), *network_values(), *_composition(), *_running_example()]
    return values_table(values), flu_table()


def _max_divergence() -> Iterator[Value]:
    p, q = [1 / 3, 1 / 2, 1 / 6], [1 / 2, 1 / 4, 1 / 4]
    yield Value("max-divergence", "D∞(p‖q)", "max-divergence", max_divergence(p, q))


def _composition() -> Iterator[Value]:
    chain = MarkovChain([[0.9, 0.1], [0.4, 0.6]], [0.8, 0.2])
    epsilon, length, node = 10.0, 3, 2
    for name, a, b in (("∅", None, None), ("{X1}", 1, None), ("{X3}", None, 1), ("{X1,X3}", 1, 1)):
        e = chain_influence(chain, length, node, a, b)
        card = length if a is None and b is None else 2 if a is None or b is None else 1
        yield Value("composition", f"max-influence of {name}", f"composition/influence/{name}", e)
        yield Value("composition", f"score of {name}", f"composition/score/{name}", card / (epsilon - e))


def _running_example() -> Iterator[Value]:
    length, epsilon = 100, 1.0
    for name, chain in (("θ1", THETA_1), ("θ2", THETA_2)):
        for convention in ("published", "exact"):
            result = mqm_exact(chain, length, epsilon, convention=convention)
            assert result.scale is not None
            assert result.quilt is not None
            assert result.node is not None
            assert result.influence is not None
            what = f"{name}, {convention} convention"
            nodes = [
                f"X{result.node + step}"
                for step in (
                    -result.quilt.left if result.quilt.left else None,
                    result.quilt.right,
                )
                if step is not None
            ]
            yield Value("running example", f"σ of {what}", f"running/{name}/{convention}/scale", result.scale)
            yield Value(
                "running example", f"worst node of {what}", f"running/{name}/{convention}/node", f"X{result.node}"
            )
            quilt = "{" + ",".join(nodes) + "}"
            yield Value("running example", f"its quilt of {what}", f"running/{name}/{convention}/quilt", quilt)
            e = result.influence
            yield Value("running example", f"max-influence of {what}", f"running/{name}/{convention}/influence", e)
    family = ChainFamily([THETA_1, THETA_2])
    yield Value("running example", "π_min of Θ", "running/pi_min", family.smallest_stationary_probability())
    for kind in ("general", "reversible"):
        gap = family.eigengap(kind)
        yield Value("running example", f"eigengap of Θ ({kind})", f"running/gap/{kind}", gap)
        base = math.exp(epsilon / 6)
        a = 2 * math.ceil(math.log((base + 1) / (base - 1) / family.smallest_stationary_probability()) / gap)
        yield Value("running example", f"a* of Θ ({kind})", f"running/a_star/{kind}", float(a))
        result = mqm_approx(family, length, epsilon, eigengap=kind)
        assert result.scale is not None
        yield Value("running example", f"MQMApprox σ of Θ ({kind})", f"running/approx/{kind}", result.scale)
