"""The certificate of a scale, which is raised until the loss proved by its program is ≤ ε."""

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Any

from flint import ctx

from pufferflow.audit.wasserstein import TIE, chain_sensitivity
from pufferflow.bounds.of_families import MAX_STATES
from pufferflow.bounds.roots import crossing
from pufferflow.certificates.exact_families import exact_family
from pufferflow.certificates.programs import Writer, early_nodes
from pufferflow.certificates.quilts import quilts_of_chain
from pufferflow.errors import CertificateError, ChainError, ParameterError
from pufferflow.influence.quilts import QuiltSearch
from pufferflow.models.bounded import BoundedFamily
from pufferflow.models.chain import MarkovChain
from pufferflow.models.families import BinaryInterval, ChainFamily, Family, Protection
from pufferflow.models.mixing import MixingFamily
from pufferflow.models.periodic import PeriodicChain
from pufferflow.verify import PRECISIONS, proved_loss
from pufferflow.verify.balls import UndecidedError
from pufferflow.verify.parse import VERSION, Proof, parse, read
from pufferflow.verify.parse import Claim as Exact

_SLACK = "1e-9"
"""Slack above 2^-30, that of the plans of :mod:`pufferflow.audit.wasserstein`."""
_NEARLY, _CLOSELY, _LESS_CLOSELY = 1e-13, 1e-5, 1e-4
"""Excess that ends the trials: for closed forms and quilts, for programs, for long ones."""
_ENOUGH, _LOOSER = 1.005, 2.0**-40
"""Excess that does not justify a longer proof, or more ranges of nodes."""
_TRIALS, _HOPELESS, _JUMP = 15, 2, 0.005
"""Number of trial scales, loss over ε that ends the search, and factor if none is proved."""
_NOWHERE = "no bound of the loss near this scale is at most epsilon"
_MAX_PHASES = 40_000
"""Largest number of phases times squared states; beyond it a proof takes minutes."""

_CORRELATED = (
    "its records are correlated, and for correlated ones 1/epsilon protects none; use mqm-exact"
)

Document = dict[str, Any]
Proofs = Callable[[Exact], list[Document]]


@dataclass(frozen=True)
class Claim:
    """The requested claim of a certificate.

    For wasserstein ``count`` has the weights of all states and the lengths.
    """

    mechanism: str
    family: Family
    length: int
    epsilon: float
    scale: float
    protection: Protection
    count: tuple[list[int], list[int]] | None = None


def prove(claim: Claim) -> Document:
    """Return the certificate of a scale, which may be slightly larger than the requested one.

    Raises
    ------
    ParameterError
        There is no proof, with the reason.
    """
    try:
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
            "proofs": [],
        }
        # other records reveal nothing, up to rounding
        alone = claim.mechanism == "entry-dp"
        best, refused, most = None, "", claim.scale * (1 + 1e-8 if alone else 2)
        for least, near, proofs in _proofs(claim):
            if best and least >= most:
                continue
            try:
                best = _smallest(document | {"scale": repr(least)}, max(least, most), near, proofs)
            except (CertificateError, ParameterError) as error:
                refused = refused or str(error)
            most = float(best["scale"]) if best else most
            if best and most <= _ENOUGH * claim.scale:
                break
        if best is None:
            raise ParameterError(_CORRELATED if alone else refused)
        return best
    except (ChainError, CertificateError, ParameterError, ValueError) as error:
        raise ParameterError(f"no certificate for {claim.mechanism}: {error}") from error


def _smallest(document: Document, most: float, near: float, proofs: Proofs) -> Document:
    """Return the certificate with about the smallest provable scale, at most ``most``.

    The first trial is the document's scale, the smallest one; other losses are relatively ``near``
    ε. Raises CertificateError: there is none, with the reason.
    """
    least, exact = float(document["scale"]), parse(document)
    highest = 1 / least if least else math.inf
    best, why, trials, jump = None, _NOWHERE, 0, _JUMP

    def loss(cost: float) -> float:
        """Return the loss over ε."""
        nonlocal best, why, trials, jump
        trials, scale = trials + 1, min(1 / cost, most) if cost < highest else least
        if trials > _TRIALS:
            raise CertificateError(why)
        claim = replace(exact, scale=Fraction(repr(scale)))
        try:
            made = proofs(claim)
            claim = replace(claim, proofs=read(list[Proof], made, "proofs"))
            ratio = proved_loss(claim)[0] / claim.epsilon
        except (CertificateError, UndecidedError) as error:
            why, jump = str(error), 2 * jump
            ratio = Fraction(1 + jump)
        if ratio > _HOPELESS or (ratio > 1 and scale == most):
            raise CertificateError(why)
        if ratio > 1:
            return max(float(ratio), math.nextafter(1, 2))
        best = document | {"scale": repr(scale), "proofs": made}
        return float(ratio)

    with suppress(CertificateError):
        crossing(loss, 1.0, highest, highest, near, above=False)
    if best is None:
        raise CertificateError(why)
    return best


def _proofs(claim: Claim) -> Iterator[tuple[float, float, Proofs]]:
    """Yield the smallest scale, the tolerance, and the maker of proofs: longer ones later."""
    family, length, epsilon = claim.family, claim.length, claim.epsilon
    chains = family.chains if isinstance(family, ChainFamily | BinaryInterval) else ()
    informed = claim.protection.side_information != "none"
    if claim.mechanism == "group-dp" or isinstance(family, MixingFamily):
        yield claim.scale, _NEARLY, _together
    elif claim.count is not None:
        proof = {"count": _count(claim, *claim.count)}
        yield claim.scale, _NEARLY, lambda exact: [proof] * len(exact.family.members)
    elif claim.mechanism == "leakage" or (claim.mechanism == "entry-dp" and informed):
        _require_provable(family)
        if claim.scale * epsilon >= length:
            yield claim.scale, _NEARLY, _together
        known, early, near = list[Any](), [(0, 0)], _CLOSELY
        if isinstance(family, BoundedFamily):
            known = [family.rows, family.backward and family.backward.rows]
        elif not isinstance(family, PeriodicChain):
            members = chains or [family]
            asked = length, claim.scale, claim.protection, 1 / len(members)
            early = [early_nodes(chain, *asked) for chain in members]
            near = _LESS_CLOSELY if any(map(any, early)) else near
        yield claim.scale, near, partial(_programs, known, early)
        if chains and not informed:
            window = claim.protection.window
            searches = (QuiltSearch(chain, length, epsilon, window=window) for chain in chains)
            least = max(search.worst_node().score for search in searches)
            yield max(claim.scale, least), _NEARLY, partial(_quilts, chains)
    elif not chains:
        raise ParameterError(
            "quilts prove scales of chains with one matrix; use leakage or group-dp"
        )
    else:
        yield claim.scale, _NEARLY, partial(_quilts, chains)


def _require_provable(family: Family) -> None:
    """Raise if there is no program, or only one that takes minutes."""
    if isinstance(family, PeriodicChain) and family.period * family.states**2 > _MAX_PHASES:
        raise ParameterError(
            f"a period of {family.period} phases of {family.states} states takes too long to "
            "prove; give fewer"
        )
    if (states := (family.states or 1)) > MAX_STATES:
        raise ParameterError(
            f"{states} states; couplings are proved for at most {MAX_STATES}, use mqm-exact or "
            "fewer states"
        )


def _count(claim: Claim, weights: list[int], lengths: list[int]) -> Document:
    """Return the proof with W for the distributions of the count, with slack for ties."""
    known = chain_sensitivity(claim.family.chains, lengths, weights)
    ties = known.W * claim.epsilon < known.strict * (claim.epsilon - TIE)
    reach, slack = (known.W, _SLACK) if ties else (known.strict, "0")
    return {"weights": weights, "lengths": lengths, "W": reach, "slack": slack}


def _together(exact: Exact) -> list[Document]:
    return [{}] * len(exact.family.members)


def _quilts(chains: Sequence[MarkovChain], exact: Exact) -> list[Document]:
    # fewer ranges suffice at a slightly larger scale, and nearly always at this one
    looser = replace(exact, scale=exact.scale * (1 + Fraction(_LOOSER)))
    pairs = list(zip(chains, exact.family.members, strict=True))
    for precision in PRECISIONS:
        with suppress(UndecidedError), ctx.workprec(precision):
            return [{"quilts": quilts_of_chain(*pair, looser)} for pair in pairs]
    raise CertificateError(f"{PRECISIONS[-1]} bits do not distinguish small probabilities from 0")


def _programs(known: list[Any], early: list[tuple[int, int]], exact: Exact) -> list[Document]:
    pairs = zip(exact.family.members, early, strict=True)
    with ctx.workprec(PRECISIONS[0]):
        return [Writer(exact, member, known, single).program() for member, single in pairs]
