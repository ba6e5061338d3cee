"""W of counts along chains, by the engine and in certificates, against plain fractions; kernels."""

import json
import math
from fractions import Fraction
from itertools import permutations

import numpy as np
import plain_counts
import pytest
from cases import counts, examples
from certificate_truth import chain, claim
from enumeration import stationary_law
from hypothesis import assume, given
from hypothesis import strategies as st

import pufferflow as pf
from pufferflow.audit import chain_sensitivity
from pufferflow.audit._count_kernels import log_sums, movable, never_above
from pufferflow.audit.counts import counts_at_records, relative_error
from pufferflow.errors import CertificateError, ChainError
from pufferflow.verify.balls import Work
from pufferflow.verify.counts import distributions_at_nodes
from pufferflow.verify.model import Model
from pufferflow.verify.parse import Chain


def floats(matrix, start):
    stationary = stationary_law(matrix) == start
    start = start if isinstance(start, str) else [float(p) for p in start]
    rows = [[float(p) for p in row] for row in matrix]
    return pf.MarkovChain(rows, "stationary" if stationary else start)


def document(matrix, start, length, weights, reach, slack="0", epsilon="1"):
    """A certificate written by hand; the scale is that which it would prove."""
    rest = Fraction(epsilon) - Fraction(math.log1p(float(Fraction(slack))))
    scale = reach / rest * (1 if slack == "0" else 1 + Fraction(1, 10**14))
    count = {"weights": weights, "lengths": [length], "W": reach, "slack": slack}
    family, proof = chain(matrix, start), {"count": count}
    return claim(family, epsilon, length, scale, proof, mechanism="wasserstein")


def accepted(certificate):
    try:
        return pf.verify_certificate(json.loads(json.dumps(certificate))) is not None
    except CertificateError as error:
        reason = str(error)
    assert "are not within W" in reason or "bits do not decide" in reason
    return False


TIED = plain_counts.random_case(np.random.default_rng(212471), 3)
"""Where probabilities of 1e-80 are added to others, floats cannot say that they are equal."""


@pytest.mark.parametrize("cases", counts(50, 160))
def test_w_against_the_twin(cases):
    """Never below; certificates of that W are accepted and of no smaller one, but for exact ties,
    the only ones that are left undecided.
    """
    rng = np.random.default_rng(2)
    tied = inexact = 0
    for number in range(cases):
        matrix, start, length, weights = plain_counts.random_case(rng) if number else TIED
        expected = plain_counts.chain_wasserstein(matrix, start, length, weights)
        found = chain_sensitivity(floats(matrix, start), length, weights)
        assert expected <= found.strict
        assert expected <= found.W  # a tie counts as one, and nothing else does
        tied += found.strict > found.W
        inexact += expected != found.W
        for reach in {max(expected - 1, 0), expected} if number % 3 == 0 else ():
            proved = accepted(document(matrix, start, length, weights, reach))
            assert proved <= (expected <= reach)
            if found.strict == found.W:
                assert proved == (expected <= reach)
                if stationary_law(matrix) == start:
                    stationary = document(matrix, "stationary", length, weights, reach)
                    assert accepted(stationary) == proved
    assert tied > cases / 16
    assert inexact < cases / 16


@pytest.mark.parametrize("cases", counts(20, 60))
def test_any_start_is_the_supremum_over_starts(cases):
    """Of certificates, too: those of any start that are accepted hold for each."""
    rng = np.random.default_rng(3)
    attained = 0
    for _ in range(cases):
        matrix, _, length, weights = plain_counts.random_case(rng, 3)
        length = min(length, 5)
        laws = plain_counts.some_starts(rng, len(matrix), 3)
        largest = max(plain_counts.chain_wasserstein(matrix, law, length, weights) for law in laws)
        found = chain_sensitivity(floats(matrix, "any"), length, weights)
        assert largest <= found.W <= found.strict
        attained += largest == found.W
        for reach, slack in ((int(rng.integers(4)), "0"), (found.W, "1e-9")):
            if not accepted(document(matrix, "any", length, weights, reach, slack)):
                continue
            if slack == "0":
                assert largest <= reach
            else:
                stated = (document(matrix, law, length, weights, reach, slack) for law in laws)
                assert all(map(accepted, stated))
    assert attained > cases * 2 / 3


@pytest.mark.parametrize("cases", counts(40, 120))
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 8.0])
def test_noise_of_the_scale_is_private(epsilon, cases):
    """From the exact laws, for ties in particular, whatever slack a certificate gives itself."""
    rng = np.random.default_rng(4)
    reached = 0.0
    for number in range(cases):
        matrix, start, length, weights = plain_counts.random_case(rng, 3)
        nodes = plain_counts.laws_given_secrets(matrix, start, length, weights)
        pairs = [
            pair
            for at_node in nodes
            for pair in permutations(map(plain_counts.divided, at_node.values()), 2)
            if pair[0] != pair[1]
        ]
        scale = chain_sensitivity(floats(matrix, start), length, weights).scale(epsilon)
        worst = max((plain_counts.loss(*pair, scale) for pair in pairs), default=0.0)
        assert worst <= epsilon * (1 + 1e-9)
        reached = max(reached, worst)
        if number % 3:
            continue
        reach, most = int(rng.integers(4)), int(2 + 2 * min(epsilon, 1))
        slack = str(rng.choice(["1e-9", "1e-3", "1/20", "1/2"][:most]))
        stated = document(matrix, start, length, weights, reach, slack, repr(epsilon))
        if not accepted(stated):  # what holds without slack holds with it
            assert plain_counts.chain_wasserstein(matrix, start, length, weights) > reach
        elif reach:
            scale = float(Fraction(stated["scale"]))
            assert all(plain_counts.loss(*pair, scale) <= epsilon * (1 + 1e-9) for pair in pairs)
        else:
            share = 1 + Fraction(slack)
            assert all(p[n] <= share * q.get(n, 0) for p, q in pairs for n in p)
    assert reached > 0.99 * epsilon


# -- certificates ----------------------------------------------------------------------------------


@examples(12, 120)
@given(
    st.integers(0, 2**32 - 1),
    st.integers(1, 3),
    st.lists(st.integers(1, 12), min_size=1, max_size=3),
    st.data(),
)
def test_certified_scales(seed, k, lengths, data):
    """What certify makes verifies, is the scale of the mechanism, and no smaller W would do."""
    rng = np.random.default_rng(seed)
    start = data.draw(st.sampled_from(["stationary", "any", "given"]))
    matrix = rng.dirichlet(np.full(k, data.draw(st.sampled_from([0.1, 1.0]))), k)
    try:
        chain = pf.MarkovChain(matrix, rng.dirichlet(np.ones(k)) if start == "given" else start)
    except ChainError:
        assume(False)
    epsilon = data.draw(st.sampled_from([1e-6, 0.3, 20.0]))
    states = sorted({int(x) for x in rng.integers(0, k, k)})
    plain = pf.wasserstein(chain, lengths, epsilon, states=states)
    proved = plain.certified(chain)
    assert plain.scale * (1 - 2e-9 / epsilon) <= proved.scale <= plain.scale * (1 + 1e-12)
    found = pf.verify_certificate(json.loads(json.dumps(proved.certificate)))
    assert found.loss <= Fraction(repr(epsilon))
    proof = proved.certificate["proofs"][0]["count"]
    assert sorted(set(lengths)) == proof["lengths"]
    weights = [int(x in states) for x in range(k)]
    if proof["W"] > chain_sensitivity(chain, lengths, weights).W:  # of ties
        return
    if proof["W"]:
        less = {"count": proof | {"W": proof["W"] - 1}}
        assert not accepted(proved.certificate | {"proofs": [less]})


# -- values and kernels ----------------------------------------------------------------------------


def test_tails_far_below_the_range_of_floats():
    """A tail of 1e-320 moves quantiles."""
    matrix = [[Fraction(n, 100) for n in row] for row in ((99, 1), (98, 2))]
    start, length = [1, 0], 200
    found = chain_sensitivity(floats(matrix, start), length, [0, 1])
    assert found.W == found.strict == 2
    assert [accepted(document(matrix, start, length, [0, 1], reach)) for reach in (1, 2)] == [0, 1]


def test_scale_is_rounded_up():
    found = chain_sensitivity(pf.MarkovChain([[0.9, 0.1], [0.4, 0.6]]), 20, [0, 1])
    assert found.strict == found.W
    for epsilon in (0.1, 0.3, 3.0):
        assert Fraction(found.scale(epsilon)) * Fraction(epsilon) >= found.W
    tie = chain_sensitivity(pf.MarkovChain([[0.9, 0.1], [0.9, 0.1]]), 20, [0, 1])
    assert (tie.W, tie.strict) == (1, 2)
    assert 1 < tie.scale(1.0) < 1 + 1e-8
    assert tie.scale(1e-9) == 2e9  # no room for the slack
    assert math.isclose(tie.scale(0.2), 5, rel_tol=1e-7)


@pytest.mark.parametrize("cases", counts(20, 60))
def test_mixed_starts_of_two_states(cases):
    """No start needs more than "any" gives, and mixed starts may need more than certain ones."""
    rng = np.random.default_rng(7)
    mixed_matter = 0
    for _ in range(cases):
        matrix, length = rng.dirichlet([0.5, 0.5], 2), int(rng.integers(2, 12))
        shares = [0, 1, *(1 / (1 + np.exp(np.linspace(-12, 12, 11 + cases // 2))))]
        laws = ("any", *([q, 1 - q] for q in shares))
        every, *needed = (
            chain_sensitivity(pf.MarkovChain(matrix, law), length, [0, 1]).W for law in laws
        )
        assert max(needed) <= every
        mixed_matter += max(needed) > max(needed[:2])
    assert mixed_matter > cases / 12


@pytest.mark.parametrize("cases", counts(12, 120))
def test_distributions_of_counts_against_the_twin(cases):
    """Every probability to the error stated, zeros exactly, and their sums from either end; by the
    verifier, which shares nothing with the engine, to 1e-12.
    """
    rng = np.random.default_rng(6)
    for _ in range(cases):
        matrix, start, length, weights = plain_counts.random_case(rng, 3)
        weights = [n - min(weights) for n in weights]
        chain, most = floats(matrix, start), length * max(weights) + 1
        error = relative_error(chain, length, most) + 1e-15  # of P itself, in floats
        secrets = [(x, x, own) for x, own in enumerate(weights)]
        ours = counts_at_records(chain, length, weights, secrets)
        model = Model(Chain([matrix], start), Work(1e9))
        theirs = distributions_at_nodes(model, length, weights)
        plain = plain_counts.laws_given_secrets(matrix, start, length, weights)
        for (sizes, laws), (_, proved), exact in zip(ours, theirs, plain, strict=True):
            assert np.flatnonzero(sizes[0] > -math.inf).tolist() == sorted(exact)
            assert [x for x, [law] in enumerate(proved) if law.total != 0] == sorted(exact)
            for x, law in exact.items():
                m, e = (part[0, x] for part in laws)
                mass, [balls] = sum(law.values()), proved[x]
                assert sizes[0, x] == pytest.approx(
                    plain_counts.log_fraction(mass), rel=1e-12, abs=1e-12
                )
                for n, found in enumerate(fractions(m, e)):
                    p = law.get(n, Fraction(0)) / mass
                    assert abs(found - p) <= p * Fraction(error)
                check_sums(m, e, 2.0**-40 / 10)  # a tenth of what comparisons of W allow for
                for n, found in enumerate(balls.masses):
                    assert found.is_zero() == (n not in law)
                    below = sum((p for i, p in law.items() if i <= n), Fraction(0))
                    exactly = map(float, (law.get(n, 0), below, mass - below))
                    sums = [float(ball.mid()) for ball in (found, balls.below[n], balls.above[n])]
                    assert sums == pytest.approx([*exactly], rel=1e-12, abs=1e-30)


def fractions(m, e):
    return [
        Fraction(float(a)) * Fraction(2) ** int(b) if a else Fraction(0)
        for a, b in zip(m, e, strict=True)
    ]


def check_sums(m, e, tolerance):
    exact = fractions(m, e)
    (below,), (above,) = (sums[0] for sums in log_sums((m[None, None], e[None, None]), 1.0))
    for n in range(len(m)):
        for logged, total in ((below[n], sum(exact[: n + 1])), (above[n], sum(exact[n + 1 :]))):
            assert logged == pytest.approx(
                plain_counts.log_fraction(total) if total else -math.inf, rel=1e-13, abs=tolerance
            )


@examples(30, 300)
@given(st.integers(1, 4), st.randoms(use_true_random=False))
def test_what_is_proved_of_all_mixtures_of_starts_holds_for_each(starts, random):
    """Σ r_u r_v c_uv ≥ 0 is proved only if true, and wherever it is clearly so of two starts."""

    def drawn(choices):
        return np.array([random.choice(choices) for _ in range(starts)])

    p, q = drawn([0.0, -1.0, -3.0]), drawn([0.0, -2.0, -math.inf])
    f, g = drawn([-math.inf, -4.0, -1.5, -1.0]), drawn([-4.0, -1.5, -1.0, 0.0])
    proved = never_above(p, q, f, g, 2.0**-30)
    form = np.exp(p)[:, None] * np.exp(q) * (np.exp(g) - np.exp(f)[:, None])
    if proved:
        weights = np.random.default_rng(random.randrange(2**32)).dirichlet(
            np.full(starts, 0.5), 400
        )
        weights = np.concatenate([np.eye(starts), weights])
        assert np.einsum("nu,uv,nv->n", weights, form, weights).min() >= -1e-15
    else:
        s = (form + form.T) / 2
        own = s.diagonal()
        assert own.min() < 1e-8 or (s < -np.sqrt(np.outer(own, own)) + 1e-8).any()


def test_transport_plans_against_all_intervals():
    """Mass p fits into slack times q if and only if no interval has more than its surroundings."""
    rng = np.random.default_rng(8)
    answers = []
    for _ in range(300):
        width, reach = int(rng.integers(1, 8)), int(rng.integers(0, 4))
        p, q = rng.integers(0, 5, (2, width)).astype(float)
        slack = float(rng.choice([1.0, 1.5, 2.0]))
        expected = all(
            p[a:b].sum() <= slack * q[max(a - reach, 0) : b + reach].sum()
            for a in range(width)
            for b in range(a + 1, width + 1)
        )
        power, shifts = rng.integers(-1500, 1500), rng.integers(-3, 4, (2, width))
        # the same exponents on both sides, written in different ways
        first, second = (
            (np.ldexp(one, -by), power + by) for one, by in zip((p, q), shifts, strict=True)
        )
        assert movable(first, second, slack, reach) == expected
        answers.append(expected)
    assert 50 < sum(answers) < 250
