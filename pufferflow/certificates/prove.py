"""The certificate of a scale: a program is made at it, run, and the scale raised until the loss is at most ε."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from pufferflow._util.protection import Protection
from pufferflow.audit.wasserstein import TIE, chain_sensitivity
from pufferflow.certificates.exact_families import exact_family
from pufferflow.certificates.programs import most_early, program_of_chain, program_of_phases, program_of_rows
from pufferflow.certificates.quilts import quilts_of_chain
from pufferflow.coupling.calibration import MOST_STATES
from pufferflow.errors import ChainError, ParameterError
from pufferflow.influence.quilts import influence_tables, worst_node
from pufferflow.models.bounded import BoundedFamily
from pufferflow.models.chain import MarkovChain
from pufferflow.models.families import Family
from pufferflow.models.hidden import HiddenChain
from pufferflow.models.mixing import MixingFamily
from pufferflow.models.periodic import PeriodicChain
from pufferflow.verify import MOST_WORK, VERSION, CertificateError, losses
from pufferflow.verify.model import UndecidedError
from pufferflow.verify.parse import parse

_MOST_WORK = 10 * MOST_WORK
"""What the check of a certificate to be made may take: minutes, where whoever checks it must ask for them."""

_SLACK = "1e-9"
"""Above 2^-30, by which the plans of :mod:`pufferflow.audit.wasserstein` exceed a distribution."""

_STEPS = (1e-15, 1e-12, 1e-9, 1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.03, 0.1, 0.2, 0.2, 0.2)
"""How far, relatively, the scale is raised where it was not proved."""

_CLOSE, _LOOSER = 1e-6, 2.0**-40
_ENOUGH = 1.002
"""Excess of a scale that is not worth a longer proof."""
_MOST_PHASES, _MOST_RATIO_PHASES = 40_000, 400
"""Phases times the square of the states, beyond which a proof by trees, or by ratios, takes more than some seconds."""
_EARLY = (0, 12, 60, 400)
"""Nodes with steps of their own, at most."""

Document = dict[str, Any]


@dataclass(frozen=True)
class Claim:
    """What a certificate is asked for; of wasserstein ``count`` has the weights of all states and the lengths."""

    mechanism: str
    family: Family
    length: int
    epsilon: float
    scale: float
    protection: Protection
    count: tuple[list[int], list[int]] | None = None


def prove(claim: Claim) -> Document:
    """Return the certificate of a scale, which may be a little larger than asked for.

    Raises
    ------
    ParameterError
        There is no proof, with the reason.
    """
    try:
        return min(_proved(claim), key=lambda document: float(document["scale"]))
    except (ChainError, CertificateError, ParameterError, ValueError) as error:
        raise ParameterError(f"no certificate for {claim.mechanism}: {error}") from error


def _proved(claim: Claim) -> Iterator[Document]:
    """Yield certificates, better ones later."""
    document: Document = {
        "certificate": "pufferflow",
        "version": VERSION,
        "mechanism": claim.mechanism,
        "family": exact_family(claim.family),
        "epsilon": repr(claim.epsilon),
        "length": claim.length,
        "window": claim.protection.window,
        "side_information": "none" if claim.protection.side_information == "none" else "any",
        "scale": repr(claim.scale),
    }
    family, members = claim.family, len(_chains(claim.family)) or 1
    if claim.mechanism == "group-dp" or isinstance(family, MixingFamily):
        yield _raised(document, claim, lambda document: [{}] * members)
        return
    if claim.count is not None:
        proofs = [_count(claim, *claim.count)] * members
        yield _raised(document, claim, lambda document: proofs)
        return
    if claim.mechanism in ("mqm-exact", "mqm-approx"):
        yield _raised(document, claim, _quilts(claim))
        return
    if claim.mechanism == "entry-dp":
        yield _independent(document, claim)
        return
    _require_provable(family, claim.protection)
    if isinstance(family, PeriodicChain) and family.repeat > 1:  # each phase has steps of its own
        matrices = np.repeat(family.transition_matrices, family.repeat, axis=0)
        family = PeriodicChain(matrices, initial_distribution=family.start)
        claim, document["family"] = replace(claim, family=family), exact_family(family)
    if (states := family.states or 0) > MOST_STATES:
        raise ParameterError(
            f"{states} states; couplings are proved for at most {MOST_STATES}, use mqm-exact or fewer states"
        )
    best: Document | None = None
    affordable = most_early(states)
    for early in dict.fromkeys(min(early, affordable, claim.length) for early in _EARLY):
        try:
            found = _raised(document, claim, _programs(claim, early))
        except (CertificateError, ParameterError) as error:
            refused = error
            continue
        if best is None or float(found["scale"]) < float(best["scale"]):
            best = found
            yield found
        if float(best["scale"]) <= _ENOUGH * claim.scale or claim.mechanism != "leakage":
            return
    least = quilts_scale(claim) if claim.protection.side_information == "none" and _chains(family) else math.inf
    if best is None or least < float(best["scale"]):
        if math.isinf(least):
            raise refused
        yield _raised(document | {"scale": repr(max(claim.scale, least))}, claim, _quilts(claim))


def _require_provable(family: Family, protection: Protection) -> None:
    """Refuse at once what no program proves, or only after minutes."""
    if isinstance(family, HiddenChain) and (family.chain.start != "stationary" or protection != Protection()):
        raise ParameterError("hidden chains have proofs for a stationary start, single records and no side information")
    if isinstance(family, PeriodicChain):
        trees = protection.side_information == "none" and family.start == "stationary"
        if family.period * family.states**2 > (_MOST_PHASES if trees else _MOST_RATIO_PHASES):
            raise ParameterError(
                f"a period of {family.period} phases of {family.states} states takes too long to prove; give fewer"
            )


def _chains(family: Family) -> tuple[MarkovChain, ...]:
    """The chains with one matrix that a family consists of, or that stand for it."""
    other = isinstance(family, BoundedFamily | MixingFamily | PeriodicChain | HiddenChain)
    return () if other else family.chains


def quilts_scale(claim: Claim) -> float:
    """The scale of mqm-exact."""
    tables = (influence_tables(chain, "exact", claim.protection.window) for chain in _chains(claim.family))
    return max(worst_node(table, claim.length, claim.epsilon).score for table in tables)


def _independent(document: Document, claim: Claim) -> Document:
    """The certificate of entry-dp: nothing is revealed through either side."""
    k = claim.family.states or 0

    def proofs(document: Document) -> list[Document]:
        side = {"prefix": [], "start": [["0"] * k for _ in range(k)], "cycle": [{"power": 1}]}
        return [{"witnesses": [], "forward": side, "backward": side}]

    try:
        return _raised(document, claim, proofs)
    except ParameterError:
        raise ParameterError(
            "its records are correlated, and of correlated ones 1/epsilon hides none; use mqm-exact"
        ) from None


def _count(claim: Claim, weights: list[int], lengths: list[int]) -> Document:
    """The W that the distributions of the count are within; with some slack where they agree up to rounding."""
    known = chain_sensitivity(claim.family.chains, lengths, weights)
    ties = known.W * claim.epsilon < known.strict * (claim.epsilon - TIE)
    reach, slack = (known.W, _SLACK) if ties else (known.strict, "0")
    return {"weights": weights, "lengths": lengths, "W": reach, "slack": slack}


def _quilts(claim: Claim) -> Callable[[Document], list[Document]]:
    if not (chains := _chains(claim.family)):
        raise ParameterError("quilts prove scales of chains with one matrix; use leakage or group-dp")

    def proofs(document: Document) -> list[Document]:
        # fewer ranges serve at a slightly larger scale, and nearly always suffice at this one
        larger = repr(float(document["scale"]) * (1 + _LOOSER))
        exact = parse(document | {"scale": larger, "proofs": [{}] * len(chains)})
        return [
            {"quilts": quilts_of_chain(chain, member, exact)}
            for chain, member in zip(chains, exact.family.members, strict=True)
        ]

    return proofs


def _programs(claim: Claim, early: int) -> Callable[[Document], list[Document]]:
    family = claim.family

    def proofs(document: Document) -> list[Document]:
        exact = parse(document | {"proofs": [{}] * (len(_chains(family)) or 1)})
        if isinstance(family, PeriodicChain):
            return [program_of_phases(family, exact)]
        if isinstance(family, BoundedFamily):
            return [program_of_rows(family, exact, early)]
        if isinstance(family, HiddenChain):
            return [program_of_chain(exact.family.members[0], exact, early)]
        return [program_of_chain(member, exact, early) for member in exact.family.members]

    return proofs


def _raised(document: Document, claim: Claim, proofs: Callable[[Document], list[Document]]) -> Document:
    """Return the certificate with about the smallest scale from the claim's on that is proved.

    Raises ParameterError: there is none up to twice the claim's, with the reason.
    """
    epsilon, scale, failed, why = Fraction(repr(claim.epsilon)), float(document["scale"]), 0.0, ""
    best: Document | None = None
    steps, near = iter(_STEPS), 1e-4 if isinstance(claim.family, BoundedFamily) else _CLOSE
    most = 2 * scale
    while scale <= most:
        tried = document | {"scale": repr(scale)}
        try:
            tried["proofs"] = proofs(tried)
            loss: Fraction | float = _loss(tried)
            ratio = float(loss / epsilon)
        except (CertificateError, UndecidedError) as error:
            why, loss, ratio = str(error), math.inf, math.inf
        if loss <= epsilon:
            best = tried
            close = not failed or scale <= failed * (1 + near) or ratio >= 1 - near
            if close or (step := next(steps, None)) is None:
                return best
            scale = max(scale * ratio * (1 + near / 4), math.sqrt(failed * scale))
            continue
        failed = scale
        if (step := next(steps, None)) is None:
            break
        if best is not None:
            scale = math.sqrt(failed * float(best["scale"]))
        else:
            scale = math.nextafter(scale * (1 + step) * (ratio if ratio < 2 else 1.0), math.inf)
    if best is None:
        raise ParameterError(why or "no bound of the loss near this scale is at most epsilon")
    return best


def _loss(document: Document) -> Fraction:
    """The loss that is proved, at the first precision that gives one."""
    why, said = "", ""
    for _, found in losses(parse(document), _MOST_WORK):
        if isinstance(found, Fraction):
            return found
        why = found
        if why and why == said:
            break
        said = why
    raise CertificateError(why or "no precision suffices")
