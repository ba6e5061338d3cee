"""Certificates of every kind of family: those made are accepted and close, those accepted true."""

import copy
import json
import subprocess
from collections import Counter
from contextlib import suppress
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from cases import SLACK, counts, examples, seeds
from certificate_truth import worst_loss
from flint import ctx
from hypothesis import example, given
from hypothesis import strategies as st
from mutants import change, places
from processes import around, chains, protection

import pufferflow as pf
from pufferflow.cli import main
from pufferflow.cli.verify import ask_proved_checker, proved_checker
from pufferflow.errors import CertificateError
from pufferflow.mechanisms import MECHANISMS
from pufferflow.verify.balls import UndecidedError, Work
from pufferflow.verify.interpret import interpret
from pufferflow.verify.parse import Claim, parse

LENGTHS = st.sampled_from([1, 2, 3, 10, 60, 1000, 10**6])
EPSILONS = st.floats(-3, 1.3).map(lambda power: 10.0**power)

RARE = pf.MarkovChain([[1 - 1e-8, 0, 1e-8], [1e-4, 1 - 1e-4, 0], [0, 1, 0]], "any")
"""Forgets in some 100,000 steps."""
ONCE = pf.MarkovChain([[0, 1, 0], [0, 1 / 1.0001, 1 - 1 / 1.0001], [0, 0, 1]], "any")
"""Hardly anything moves to a state that hardly ever follows."""
CYCLIC = pf.MarkovChain(
    [[0, 0.5, 0.5], [4.999997500001251e-7, 0.49999975000012503, 0.49999975000012503], [1, 0, 0]]
)
"""From some starts the search for what it reveals leads to what a group reveals."""


@given(chains(4), LENGTHS, EPSILONS)
@example(RARE, 10**6, 1.0)
@example(ONCE, 2, 10**1.25)
@example(CYCLIC, 1000, 10.0)
@example(pf.MarkovChain([[1 - 1e-5, 1e-5], [0.5, 0.5]]), 1000, 0.01)
@example(pf.MarkovChain([[1 - 1e-5, 1e-5], [0.5, 0.5]]), 1000, 30.0)
@example(pf.MarkovChain([[0.5, 0.5, 0], [0, 1, 1e-300], [1, 0, 0]]), 50, 1000.0)
@examples(8, 160)
def test_certificates_of_chains_cost_little(chain, length, epsilon):
    """Never 1.25 times the scale that they certify."""
    for mechanism, most in (("leakage", 1.25), ("mqm-exact", 1 + 1e-9)):
        found = MECHANISMS[mechanism](chain, length, epsilon)
        document = json.loads(json.dumps(found.certified(chain).certificate))
        assert pf.verify_certificate(document).scale == document["scale"]
        assert found.scale * (1 - SLACK) <= float(document["scale"]) <= most * found.scale


@given(
    st.integers(0, 2**32 - 1), st.sampled_from([0.3, 1.0, 4.0]), st.sampled_from([1, 3, 40, 10**7])
)
@example(7, 1.0, 40)
@example(132, 0.3, 3)
@example(132, 0.3, 10**7)
@examples(4, 60)
def test_certificates_of_other_families_cost_little(seed, epsilon, length):
    """Of sets of rows the engine may use blocks of steps."""
    rng = np.random.default_rng(seed)
    family, asked, most = some_family(rng)
    found = pf.leakage(family, length, epsilon, **asked)
    document, scale = found.certified(family).certificate, found.scale
    dearest = scale
    if isinstance(family, pf.PeriodicChain):  # no node has a step of its own: it serves any length
        dearest = pf.leakage(family, 10**7, epsilon, **asked).scale
    assert scale * (1 - SLACK) <= float(document["scale"]) <= most * dearest
    found = pf.verify_certificate(json.loads(json.dumps(document)))
    assert found.loss <= Fraction(repr(epsilon))


def some_family(rng):
    """A family that is not a chain, what may be asked of it, and how far its certificate may lie
    above the scale.
    """
    k, kind = int(rng.integers(2, 4)), rng.integers(5)
    matrices = 0.9 * rng.dirichlet(np.ones(k), (2, k)) + 0.1 / k
    asked = protection(rng, 2)
    if kind == 0:
        return pf.PeriodicChain(matrices, repeat=int(rng.integers(1, 3))), asked, 1.05
    if kind == 1:
        start = ["stationary", "any", np.full(k, 1 / k)][rng.integers(3)]
        if asked["side_information"] == "any":
            return second_order(rng, ["stationary", "any"][k - 2]), asked, 1.0001
        return pf.HiddenChain(pf.MarkovChain(matrices[0], start), np.arange(k) % 2), asked, 1.25
    if kind == 2:
        family = pf.MixingFamily(int(rng.integers(1, 5)), float(rng.choice([0.2, 0.6])))
        return family, {"window": asked["window"]}, 1.0001
    if kind == 3:
        return pf.TotalVariationFamily(matrices[0], 0.02 * rng.random(k)), asked, 1.6
    box = pf.IntervalFamily(*around(rng, matrices[:1], 0.03))
    both = pf.IntervalFamily(box.low, box.high, backward=box)
    return (box if rng.random() < 0.5 else both), asked, 1.6


def second_order(rng, start):
    return pf.HiddenChain.of_order(0.9 * rng.dirichlet(np.ones(2), (2, 2)) + 0.05, start)


# -- forgeries -------------------------------------------------------------------------------------


@cache
def sound(seed):
    """A certificate of a small family of some kind."""
    rng = np.random.default_rng([21, seed])
    k, length = int(rng.integers(2, 4)), int(rng.choice([3, 5, 1000]))
    epsilon = float(rng.choice([0.3, 1.0, 2.5]))
    if seed % 2:
        family, asked, _ = some_family(rng)
        mechanism = "leakage"
        if seed % 10 == 7:  # histories that side information reweights
            family, asked["side_information"], length = second_order(rng, "any"), "any", 1000
    else:
        start = ["stationary", "any", np.full(k, 1 / k)][rng.integers(3)]
        family = pf.MarkovChain(0.85 * rng.dirichlet(np.ones(k), k) + 0.15 / k, start)
        mechanism = str(rng.choice(["leakage", "leakage", "mqm-exact", "mqm-approx", "group-dp"]))
        asked = protection(rng, 2)
        if mechanism.startswith("mqm"):
            asked["side_information"] = "none"
        if seed % 10 == 0:
            family = pf.MarkovChain(np.full((k, k), 1 / k), start)
            mechanism = "entry-dp"
        if seed % 10 == 2:
            family = pf.MarkovChain(family.transition_matrix, [0.5] * 2 + [0] * (k - 2))
            mechanism, asked, length = "wasserstein", {"states": [0]}, 5
    return pf.certify(family, length, epsilon, mechanism=mechanism, **asked)


def forge(document, rng):
    """Less noise, mostly, and some change anywhere."""
    forged = {"document": copy.deepcopy(document)}
    if rng.random() < 0.6:
        less = 1 - float(10.0 ** rng.uniform(-5, -0.3))
        key = str(rng.choice(["scale", "epsilon"]))
        forged["document"][key] = str(Fraction(document[key]) * Fraction(less))
    for _ in range(int(rng.integers(1, 3))):
        every = [path for path, _ in places(forged) if len(path) > 1]
        top = sorted({path[1] for path in every})
        under = top[rng.integers(len(top))]  # else nearly all changes were among the witnesses
        every = [path for path in every if path[1] == under]
        change(forged, every[rng.integers(len(every))], rng)
    return forged["document"]


def made(seed):
    """A certificate of a small chain, with a period, any start, or zeros, or of all that mix."""
    rng = np.random.default_rng([5, seed])
    k = int(rng.integers(2, 5))
    shape = k if seed % 4 else (int(rng.integers(2, 4)), k)
    rows = 0.9 * rng.dirichlet(np.full(k, rng.choice([0.4, 1.0])), shape) + 0.1 / k
    if seed % 4 == 2:
        rows = rows * (rng.random((k, k)) < 0.7) + 0.001 * np.eye(k)
        rows += 0.2 * np.roll(np.eye(k), 1, 1)
        rows /= rows.sum(axis=1, keepdims=True)
    length = int(rng.choice([1, 2, 3, 4, 6, 30, 1000, 10**6]))
    epsilon, window = float(rng.choice([0.2, 1.0, 3.0])), int(rng.choice([1, 1, 1, 2, 3]))
    start = ["stationary", "any", np.eye(k)[0], np.full(k, 1 / k)][(seed // 2 + seed // 8) % 4]
    family = pf.MarkovChain(rows, start) if seed % 4 else pf.PeriodicChain(rows)
    if seed % 8 == 7:
        family = pf.MixingFamily(int(rng.integers(1, 5)), float(rng.choice([0.2, 0.6])))
        length = min(length, 1000)
    mechanism = "mqm-exact" if seed % 8 in (1, 3) else "leakage"
    return pf.certify(family, length, epsilon, mechanism=mechanism, window=window)


CHECKER = proved_checker()
needs_checker = pytest.mark.skipif(CHECKER is None, reason="the checker is not built: make proofs")


def answers(documents, folder):
    """What the proved checker says of each; None if it is not built."""
    if CHECKER is None:
        return [None] * len(documents)
    paths = [folder / f"{number}.json" for number in range(len(documents))]
    for path, document in zip(paths, documents, strict=True):
        path.write_text(json.dumps(document))
    found = subprocess.run([CHECKER, *paths], capture_output=True, text=True, check=False)
    lines = found.stdout.splitlines()
    assert len(lines) == len(documents), found.stderr
    return [line.split(": ")[1] for line in lines]


@pytest.mark.parametrize(("certificate", "share"), [(sound, 1 / 100), (made, 1 / 20)])
@pytest.mark.parametrize("wanted", counts(600 if CHECKER else 250, 20_000))
def test_what_is_accepted_is_true(certificate, share, wanted, tmp_path):
    """By linear programs over all sequences; refused in one sentence; and the proved checker agrees
    but for rules that no theorem covers.
    """
    whole = [certificate(seed) for seed in range(max(wanted // 50, 10))]
    rngs = (np.random.default_rng([22, number]) for number in range(wanted))
    forged = [forge(whole[number % len(whole)], rng) for number, rng in enumerate(rngs)]
    documents = json.loads(json.dumps([*whole, *forged]))
    seen, refusals, accepted = Counter(), set(), 0
    both = zip(documents, answers(documents, tmp_path), strict=True)
    for number, (document, answer) in enumerate(both):
        seen[answer] += 1
        try:
            found = pf.verify_certificate(document)
        except CertificateError as error:
            refusals.add(str(error))
            assert (number >= len(whole), answer == "accepted") == (True, False), document
            continue
        # entry-dp is proved to it by a scale that is a little larger
        assert answer != "refused" or document["mechanism"] == "entry-dp", document
        assert found.loss <= Fraction(document["epsilon"])
        assert worst_loss(document, number) <= float(found.loss) * (1 + 1e-6) + 1e-9, document
        accepted += number >= len(whole)
    assert all(15 < len(why) < 400 and "\n" not in why for why in refusals)
    assert wanted * share < accepted < wanted / 2  # of other scales, say
    assert CHECKER is None or seen["accepted"] > wanted * share


@pytest.mark.parametrize("seed", seeds(20, 200))
def test_fewer_bits_prove_no_smaller_loss(seed):
    """However wide balls are, the numbers that they stand for lie in them."""
    claim = parse(Claim, sound(seed))
    with ctx.workprec(300):
        loss = interpret(claim, Work(float("inf")))
    for bits in (5, 8, 12, 20, 40):
        with ctx.workprec(bits), suppress(UndecidedError):
            assert interpret(claim, Work(float("inf"))) >= loss


@needs_checker
def test_what_is_not_covered_is_named():
    document = pf.certify(pf.BinaryInterval(0.2, 0.8), 100, 1.0, mechanism="leakage")
    answer = ask_proved_checker(document)
    assert answer == "unproved rule: a family given by binary_interval"
    spent = {"delta": "1e-6", "event_delta": "0", "rho": "1e-9"}
    document = made(2) | {"approximate": spent}
    pf.verify_certificate(document)
    assert ask_proved_checker(document) == "unproved rule: a delta"


@needs_checker
def test_the_command_asks_it(tmp_path, capsys):
    path = tmp_path / "proof.json"
    path.write_text(json.dumps(made(0)))
    assert main(["verify", str(path), "--proved"]) == 0
    assert capsys.readouterr().out.endswith("proved checker: accepted\n")


@needs_checker
def test_it_is_not_waited_for_without_end(monkeypatch):
    monkeypatch.setattr("pufferflow.cli.verify.SECONDS", 1e-4)
    with pytest.raises(CertificateError, match="no answer within"):
        ask_proved_checker(made(0))
