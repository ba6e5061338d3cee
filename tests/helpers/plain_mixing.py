"""What mixing families lose, node by node and block by block (Theorem F1), in balls."""

from fractions import Fraction

from flint import arb, fmpq


def ball(number):
    exact = Fraction(number)
    return arb(fmpq(exact.numerator, exact.denominator))


def loss(steps, overlap, length, cost, window=1):
    """The worst window of all."""
    window, c, share = min(window, length), ball(cost), ball(overlap)
    factors = []  # e to the leakage of so many records on a side
    for n in range(length - window + 1):
        grown = (n * c).exp()
        if n >= steps:
            grown = share * ((steps - 1) * c).exp()
            grown += (1 - share) * (steps * c).exp() * factors[n - steps]
        factors.append(grown)
    products = (one * other for one, other in zip(factors, factors[::-1], strict=True))
    return window * c + max(products, key=arb.upper).log()
