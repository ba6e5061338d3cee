"""The certificate of a scale, which is raised until the loss proved by its program is ≤ ε."""

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from fractions import Fraction
from functools import partial
from typing import Any, TypeAlias

import numpy as np
from flint import ctx
from msgspec.structs import replace

from pufferflow.audit.counts import TIE, chain_sensitivity
from pufferflow.bounds.roots import crossing
from pufferflow.certificates.programs import Document, Writer
from pufferflow.errors import CertificateError, ChainError, ParameterError
from pufferflow.influence.quilts import QuiltSearch
from pufferflow.models.bounded import BoundedFamily
from pufferflow.models.chain import MarkovChain
from pufferflow.models.families import BinaryInterval, ChainFamily, Family
from pufferflow.models.mixing import MixingFamily
from pufferflow.verify import MAX_WORK, PRECISIONS, proved_loss
from pufferflow.verify.balls import UndecidedError, Work
from pufferflow.verify.interpret import Interpreter
from pufferflow.verify.parse import VERSION, Claim, Proof, parse, require

_SLACK = "1e-9"
"""Slack above 2^-30, that of the plans of :mod:`pufferflow.audit.counts`."""
_NEARLY, _CLOSELY = 1e-13, 1e-4
"""Excess that ends the trials: for closed forms and quilts, and for programs."""
_ENOUGH = 0.05
"""Excess above which another kind of proof is tried, too."""
_TRIALS, _JUMP = 15, Fraction("1.02")
"""Number of trial scales, and the loss over ε if none is proved."""
_MAX_RANGES, _GROWTH, _KNOWN_QUILTS = 5_000, 8, 12
"""Largest number of ranges of one chain with quilts, end of an early one, and quilts tried."""

Proofs: TypeAlias = Callable[[Claim, int], Document]
"""The proof of a claim for the member of the family with a number."""
Form: TypeAlias = tuple[int | None, int | None]


def prove(noise: Any, family: Family) -> Document:
    """Return the certificate of a ``NoiseScale``, whose scale may be slightly larger.

    Raises ParameterError: there is no proof, with the reason.
    """
    most, refused = 2 * noise.scale, ""
    if noise.mechanism == "entry-dp":  # other records reveal nothing, up to rounding
        most, protects = noise.scale * (1 + 1e-8), "1/epsilon protects none; use mqm-exact"
        refused = f"its records are correlated, and for correlated ones {protects}"
    try:
        document: Document = {
            "certificate": "pufferflow",
            "version": VERSION,
            "mechanism": noise.mechanism,
            "family": exact_family(family),
            "epsilon": repr(noise.epsilon),
            "length": max(noise.count.lengths) if noise.count else noise.length,
            "window": noise.window,
            "side_information": noise.side_information,
        }
        found = list[Document]()
        for least, near, proofs in _proofs(noise, family):
            try:
                found.append(_smallest(document, least, max(least, most), near, proofs))
            except CertificateError as error:
                refused = refused or str(error)
            if found and _scale(found[-1]) <= noise.scale * (1 + _ENOUGH):
                break
        if not found:
            raise ParameterError(refused)
        return min(found, key=_scale)
    except (ChainError, CertificateError, ParameterError, ValueError) as error:
        raise ParameterError(f"no certificate for {noise.mechanism}: {error}") from error


def _smallest(
    document: Document, least: float, most: float, near: float, proofs: Proofs
) -> Document:
    """Return the certificate with about the smallest provable scale from ``least`` to ``most``.

    The first trial is ``least``, other losses are relatively ``near`` ε. Raises CertificateError:
    there is none, with the reason.
    """
    exact = parse(Claim, document | {"scale": repr(least), "proofs": []})
    highest = 1 / least if least else math.inf
    found, tried = list[Document](), set[float]()
    why = "no bound of the loss near this scale is at most epsilon"

    def loss(cost: float) -> float:
        """Return the loss over ε."""
        nonlocal why
        scale = min(1 / cost, most) if cost < highest else least
        require(scale not in tried and len(tried) < _TRIALS, why)
        tried.add(scale)
        claim = replace(exact, scale=Fraction(repr(scale)))
        try:
            made = _made(proofs, claim)
            claim = replace(claim, proofs=parse(list[Proof], made))
            # a loss slightly above ε directs the next trial, and needs no more bits
            rough = replace(claim, epsilon=2 * claim.epsilon)
            ratio = proved_loss(rough)[0] / claim.epsilon
        except (CertificateError, UndecidedError) as error:
            why, ratio = f"near this scale {error}", _JUMP
        if ratio > 1:
            return max(float(ratio), math.nextafter(1, 2))
        found.append(document | {"scale": repr(scale), "proofs": made})
        return float(ratio)

    with suppress(CertificateError):
        crossing(loss, 1.0, highest, highest, near, above=False)
    require(bool(found), why)
    return min(found, key=_scale)


def _scale(document: Document) -> float:
    return float(document["scale"])


def _proofs(noise: Any, family: Family) -> Iterator[tuple[float, float, Proofs]]:
    """Yield the smallest scale, the tolerance, and the maker of proofs: longer ones later."""
    scale, length, epsilon = noise.scale, noise.length, noise.epsilon
    chains = family.chains if isinstance(family, ChainFamily | BinaryInterval) else ()
    informed = noise.side_information != "none"
    if noise.mechanism == "group-dp" or isinstance(family, MixingFamily):
        yield scale, _NEARLY, _together
    elif noise.count is not None:
        count = _count(noise, family.chains)
        yield scale, _NEARLY, lambda claim, number: {"count": count}
    elif noise.mechanism == "leakage" or (noise.mechanism == "entry-dp" and informed):
        if scale * epsilon >= length:
            yield scale, _NEARLY, _together
        known = list[Any]()
        if isinstance(family, BoundedFamily):
            known = [family.rows, family.backward and family.backward.rows]
        yield scale, _CLOSELY, partial(_program, known)
        if chains and not informed:
            search = partial(QuiltSearch, window=noise.window)
            least = max(search(c, length, epsilon).worst_node().score for c in chains)
            yield max(scale, least), _NEARLY, partial(quilts_of_chain, chains)
    else:
        why = "quilts prove scales of chains with one matrix; use leakage or group-dp"
        require(bool(chains), why)
        yield scale, _NEARLY, partial(quilts_of_chain, chains)


def _count(noise: Any, chains: Sequence[MarkovChain]) -> Document:
    """Return the proof with W for the distributions of the count, with slack for ties."""
    lengths = list(noise.count.lengths)
    weights = [int(x in noise.count.states) for x in range(chains[0].states)]
    known = chain_sensitivity(ChainFamily(chains), lengths, weights)
    ties = known.W * noise.epsilon < known.strict * (noise.epsilon - TIE)
    reach, slack = (known.W, _SLACK) if ties else (known.strict, "0")
    return {"weights": weights, "lengths": lengths, "W": reach, "slack": slack}


def _made(proofs: Proofs, claim: Claim) -> list[Document]:
    """Return a proof for every member of the family."""
    for precision in PRECISIONS:
        with suppress(UndecidedError), ctx.workprec(precision):
            return [proofs(claim, number) for number in range(len(claim.family.members))]
    raise CertificateError(f"{PRECISIONS[-1]} bits do not distinguish small probabilities from 0")


def _together(claim: Claim, number: int) -> Document:
    return {}


def _program(known: list[Any], claim: Claim, number: int) -> Document:
    every = claim.family.members
    return Writer(claim, every[number], known, 1 / len(every)).program()


def quilts_of_chain(chains: Sequence[MarkovChain], claim: Claim, number: int) -> Document:
    """Return ranges of nodes with a quilt each whose losses are at most ε, as far as possible.

    The search in floats proposes quilts, the verifier's rules check them. Ranges that no known
    quilt serves are cut, single nodes get the best one, which is added to the known ones.
    """
    chain, exact = chains[number], claim.family.members[number]
    claim = replace(claim, scale=claim.scale * (1 + Fraction(1, 2**64)))  # for balls around ε
    loss = Interpreter(claim, exact, Proof(), Work(MAX_WORK)).quilt
    search = QuiltSearch(chain, claim.length, float(claim.epsilon), "exact", claim.window)
    windows, most, worst = claim.windows, claim.epsilon * claim.scale, search.worst_node()
    left, right = worst.left, worst.right
    known: list[Form] = [(None, right), (left, right), (left, None), (None, None)]
    begin, end, found = (left or 0) + 1, windows - (right or 0), list[tuple[int, int, Form]]()
    rest = [(end + 1, windows), (begin, end), (1, begin - 1)]
    while rest:
        first, last = rest.pop()
        if first > last:
            continue
        # a side without a quilt node costs more than all its records may
        fits = (
            (a, b)
            for a, b in known
            if (last <= most if a is None else a < first)
            and (windows - first < most if b is None else last + b <= windows)
        )
        form = next((form for form in fits if loss(first, last, *form) <= claim.epsilon), None)
        if form is None and first < last:
            cut = min(_GROWTH * first - 1, (first + last) // 2)  # early nodes differ most
            rest += [(cut + 1, last), (first, cut)]
            continue
        if form is None:
            best = search.best_quilt(search.nodes(first))
            form = best.left, best.right
            known = [form, *(one for one in known if one != form)][:_KNOWN_QUILTS]
        if found and form == found[-1][2] and loss(found[-1][0], last, *form) <= claim.epsilon:
            first = found.pop()[0]
        why = f"more than {_MAX_RANGES} ranges of nodes have quilts of their own"
        require(len(found) < _MAX_RANGES, why)
        found.append((first, last, form))
    return {"quilts": [[first, last, *form] for first, last, form in found]}


_SUMS = {"low": (0, 1), "high": (1, np.inf)}
"""Possible sums of rows; those of distributions are 1."""


def exact_family(theta: Family) -> Document:
    """Return the family in the format of certificates: rows divided by their exact sums."""
    [(kind, terms)] = theta.document().items()
    single = [terms] if kind in {"hidden", "periodic"} else []
    if not (chains := single or [chain.document() for chain in theta.members]):
        return {kind: _exact(terms)}
    for chain in chains:  # each phase of a period has a step of its own
        every = chain.pop("transition_matrices", None) or [chain.pop("transition_matrix")]
        repeated = np.repeat(every, chain.pop("repeat", 1), axis=0)
        chain["transition_matrices"] = repeated.tolist()
    return {"chains": _exact(chains)}


def _exact(value: Any, name: str = "") -> Any:
    """Return floats as shortest decimals, or divided by the sum of a row if it is wrong."""
    if isinstance(value, dict):
        return {key: _exact(part, key) for key, part in value.items()}
    if not isinstance(value, list):
        return repr(value) if isinstance(value, float) else value
    row = [_exact(part, name) for part in value]
    if name not in {"", "radius"} and isinstance(value[0], float):
        numbers, (least, most) = list(map(Fraction, row)), _SUMS.get(name, (1, 1))
        if not least <= (total := sum(numbers, Fraction())) <= most:
            return [str(p / total) for p in numbers]
    return row
