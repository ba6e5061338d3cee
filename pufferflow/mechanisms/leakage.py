"""Leakage calibration: the least Laplace noise that what the mechanism reveals of each entry allows."""

from __future__ import annotations

from typing import get_args

from pufferflow.errors import ParameterError
from pufferflow.influence.search import divide_up
from pufferflow.influence.tables import Convention
from pufferflow.leakage.calibration import chain_leakage
from pufferflow.markov.families import as_family
from pufferflow.markov.intervals import IntervalFamily
from pufferflow.mechanisms.base import AnyFamily, Lengths, NoiseScale, check_epsilon, longest, mechanism
from pufferflow.mechanisms.mqm_exact import mqm_exact


@mechanism("leakage")
def leakage(family: AnyFamily, length: Lengths, epsilon: float) -> NoiseScale:
    epsilon = check_epsilon(epsilon)
    records = longest(length)
    found = []
    for chain in as_family(family).chains:
        quilts = mqm_exact(chain, records, epsilon)
        found.append((quilts.scale, None))
        better = chain_leakage(chain, records).scale(epsilon, quilts.scale)
        if better: found[-1]=better
    index = max(range(len(found)), key=lambda i: found[i][0])
    return NoiseScale("leakage", epsilon, records, found[index][0], node=found[index][1], chain=index)
