"""Which proof of a scale of leakage there is for a kind of family, as :mod:`pufferflow.coupling.bounds` for bounds."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from functools import singledispatch
from operator import itemgetter
from typing import Any

from pufferflow.bounded_family import BoundedFamily
from pufferflow.certificates import Question
from pufferflow.certificates.couplings import couplings
from pufferflow.certificates.quilts import quilts_of_chains
from pufferflow.certificates.robust import robust_couplings
from pufferflow.certificates.rounds import rounds_of_labels, rounds_of_phases
from pufferflow.certificates.stepwise import ENOUGH, stepwise
from pufferflow.coupling.calibration import ChainLeakage
from pufferflow.coupling.interval_leakage import MOST_ROBUST_STATES
from pufferflow.errors import ParameterError
from pufferflow.influence.search import worst_node
from pufferflow.influence.tables import influence_tables
from pufferflow.markov.chain import MarkovChain
from pufferflow.markov.families import Family
from pufferflow.markov.labelled import LabelledChain
from pufferflow.markov.periodic import PeriodicChain
from pufferflow.mixing_family import MixingFamily


@singledispatch
def loss_proof(family: Family, question: Question) -> Iterator[dict[str, Any]]:
    """Yield the fields that prove the scale of leakage for a family.

    Raises ParameterError: there are none, with the reason.
    """
    assert len(question.chains) == len(family.chains)
    chains, length, epsilon = family.chains, question.length, question.epsilon
    window = question.protection.window
    fields = couplings(chains, length, epsilon, question.protection)
    if question.protection.knows != "nothing":
        yield fields
        return
    cost = float(fields["cost"])
    quilts = [worst_node(influence_tables(chain, "exact", window), length, epsilon).score for chain in chains]
    if window == 1 and cost * (scale := _scale(chains, quilts, length, epsilon)) * ENOUGH < 1:
        with suppress(ParameterError):
            cost, fields = max((cost, fields), stepwise(chains, length, epsilon, scale), key=itemgetter(0))
    if 1 / cost <= max(quilts) * (1 + 1e-6):
        yield fields
    yield quilts_of_chains(family, question.chains, length, epsilon, "exact", window)


def _scale(chains: tuple[MarkovChain, ...], quilts: list[float], length: int, epsilon: float) -> float:
    """The scale of leakage, without proof."""
    scales = [ChainLeakage(chain, length).scale(epsilon, quilt) for chain, quilt in zip(chains, quilts, strict=True)]
    return max(quilt if bound is None else bound[0] for bound, quilt in zip(scales, quilts, strict=True))


@loss_proof.register
def _(family: MixingFamily, question: Question) -> Iterator[dict[str, Any]]:
    yield {}


@loss_proof.register
def _(family: BoundedFamily, question: Question) -> Iterator[dict[str, Any]]:
    if family.states > MOST_ROBUST_STATES and question.protection.knows == "nothing":
        raise ParameterError(
            f"{family.states} states; families between bounds have certificates up to {MOST_ROBUST_STATES} states, "
            "use group-dp or fewer states"
        )
    yield robust_couplings(family, question.length, question.epsilon, question.protection)


@loss_proof.register
def _(family: PeriodicChain, question: Question) -> Iterator[dict[str, Any]]:
    yield rounds_of_phases(family, question.length, question.epsilon, question.protection)


@loss_proof.register
def _(family: LabelledChain, question: Question) -> Iterator[dict[str, Any]]:
    yield rounds_of_labels(family, question.length, question.epsilon, question.protection)
