"""(d, γ)-privacy against its definition, with exact fractions."""

import itertools
import random
from fractions import Fraction

import pytest
from cases import counts

from pufferflow.related.dp.alpha_beta import AlphaBeta, choose_alpha_beta


def bayes(parameters, prior, published):
    """Posterior of one tuple, from the definition of αβ alone."""
    given_in, given_out = parameters.alpha + parameters.beta, parameters.beta
    if not published:
        given_in, given_out = 1 - given_in, 1 - given_out
    evidence = prior * given_in + (1 - prior) * given_out
    return prior * given_in / evidence if evidence else None


def violations(parameters, d, gamma, priors):
    """Priors at which the definition fails."""
    for prior in priors:
        for published in (True, False):
            posterior = bayes(parameters, prior, published)
            if posterior is not None and not (d / gamma * prior <= posterior <= gamma):
                yield prior


def rational_sets(count, seed):
    draw = random.Random(seed)
    for number in range(count):
        denominator = draw.choice((5, 12, 37, 1000, 10**9))
        gamma = Fraction(draw.randint(2, denominator), denominator)
        d = gamma * Fraction(draw.randint(1, denominator - 1), denominator)
        if number % 4 == 0:
            keep = Fraction(draw.randint(1, 60), 60)
            beta = keep * Fraction(draw.randint(0, 59), 60)
            yield d, gamma, AlphaBeta(keep - beta, beta)
            continue
        # around the boundary of the definition or of the paper's conditions, and on it
        best = choose_alpha_beta(d, gamma, conditions=draw.choice(("exact", "published")))
        nudge = Fraction(1, draw.choice((10, 10**3, 10**9)))
        alpha = min(Fraction(1), best.alpha * (1 + nudge * draw.choice((-1, 0, 0, 1))))
        yield d, gamma, AlphaBeta(alpha, min(best.beta * (1 + nudge * draw.choice((-1, 0, 0, 1))), 1 - alpha))


@pytest.mark.parametrize("cases", counts(300, 1000))
def test_rational_parameter_sets_against_the_definition(cases):
    seen = {True: 0, False: 0}
    refused = 0
    for d, gamma, parameters in rational_sets(cases, seed=5):
        check = parameters.check(d, gamma)
        seen[check.private] += 1
        grid = [d * j / 7 for j in range(1, 8)] + [d / 10**j for j in (3, 30, 300)]
        if check.private:
            assert check.witness is None
            assert not list(violations(parameters, d, gamma, grid))
        else:
            assert 0 < check.witness <= d
            assert check.witness in list(violations(parameters, d, gamma, [check.witness]))
            assert not check.published_conditions
        refused += check.private and not check.published_conditions
    assert min(seen.values()) > cases / 5
    # the paper's second condition is stronger than its definition needs
    assert refused > cases / 20


@pytest.mark.parametrize("fineness", counts(12, 40))
@pytest.mark.parametrize(("d", "gamma"), [("1/50", "1/5"), ("2/5", "4/5"), ("1/1000000000", "1/2"), ("1/3", "1")])
def test_the_best_parameters_are_on_the_boundary_and_beat_every_other_pair(d, gamma, fineness):
    d, gamma = Fraction(d), Fraction(gamma)
    best, published = choose_alpha_beta(d, gamma), choose_alpha_beta(d, gamma, conditions="published")
    check = best.check(d, gamma)
    assert check.private
    assert check.posterior_inside == (gamma if gamma < 1 else 1)
    assert check.ratio_outside == d / gamma
    assert published.check(d, gamma).published_conditions
    for more in (AlphaBeta(best.alpha * (1 + Fraction(1, 10**12)), best.beta),):
        assert not more.check(d, gamma).private
    queries = [(n, m) for m in (10, 1000, 10**9) for n in (0, 1, 10) if n <= m]
    grid = [Fraction(i, fineness) for i in range(1, fineness + 1)]
    others = [published, *(AlphaBeta(s * (1 - r), s * r) for s in grid for r in [0, *grid[:-1]])]
    private = [other for other in others if other.check(d, gamma).private]
    assert private
    for other in private:
        for count, domain_count in queries:
            assert best.standard_error(count, domain_count) <= other.standard_error(count, domain_count) * (1 + 1e-12)


def test_other_tuples_do_not_matter():
    """The posterior of a tuple given the whole published set, by enumeration of all instances."""
    parameters = AlphaBeta(Fraction(2, 5), Fraction(1, 7))
    priors = [Fraction(1, 10), Fraction(1, 3), Fraction(1), Fraction(0)]
    every = list(itertools.product((0, 1), repeat=len(priors)))

    def probability(instance):
        result = Fraction(1)
        for inside, p in zip(instance, priors, strict=True):
            result *= p if inside else 1 - p
        return result

    def likelihood(view, instance):
        result = Fraction(1)
        for seen, inside in zip(view, instance, strict=True):
            rate = parameters.keep if inside else parameters.beta
            result *= rate if seen else 1 - rate
        return result

    for view in every:
        joint = {instance: probability(instance) * likelihood(view, instance) for instance in every}
        for t, p in enumerate(priors):
            posterior = sum(v for instance, v in joint.items() if instance[t]) / sum(joint.values())
            assert posterior == parameters.posterior(p, published=bool(view[t]))


def test_the_estimate_is_unbiased_exactly():
    """Expectation and variance of the estimate over all published sets of a small domain."""
    parameters = AlphaBeta(Fraction(3, 7), Fraction(1, 5))
    instance, query = (1, 0, 1, 0, 0), (1, 1, 1, 1, 0)
    truth, domain_count = 2, 4
    mean = square = Fraction(0)
    for view in itertools.product((0, 1), repeat=5):
        p = Fraction(1)
        for seen, inside in zip(view, instance, strict=True):
            rate = parameters.keep if inside else parameters.beta
            p *= rate if seen else 1 - rate
        found = sum(s for s, q in zip(view, query, strict=True) if q)
        estimate = (found - parameters.beta * domain_count) / parameters.alpha
        mean += p * estimate
        square += p * estimate**2
    assert mean == truth
    assert parameters.standard_error(truth, domain_count) ** 2 == pytest.approx(float(square - mean**2), rel=1e-12)
