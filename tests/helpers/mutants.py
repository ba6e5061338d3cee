"""JSON documents with some parts changed."""

import copy
from fractions import Fraction

ODD = [None, True, -1, 0, 1, 3, 2**70, 0.5, [], {}, [[1, 0]]]
ODD += ["", "0", "1", "-1", "1/3", "1e999", "any"]


def places(value, path=()):
    """Paths of keys to all parts of a document below the top, with these parts."""
    if path:
        yield path, value
    if isinstance(value, dict | list):
        for key in value if isinstance(value, dict) else range(len(value)):
            yield from places(value[key], (*path, key))


def change(document, path, rng, odd=ODD):
    """Put another value at a place of a document."""
    *keys, last = path
    for key in keys:
        document = document[key]
    document[last] = mutate(document[last], rng, odd)


def mutate(value, rng, odd):
    """Another value for one: a number changed or scaled, an entry deleted, doubled or swapped."""
    if isinstance(value, str) and len(value.partition("e")[2]) < 5:
        try:
            number = Fraction(value)
        except (ValueError, ZeroDivisionError):
            number = None
        if number is not None and rng.random() < 0.9:
            factors = [0, 0.5, 0.9, 0.999, 1 - 1e-6, 1 + 1e-6, 1.01, 2]
            return str(number * Fraction(float(rng.choice(factors))))
    if type(value) is int and rng.random() < 0.9:
        return int(value + rng.choice([-2, -1, 1, 2, -value, -2 * value]))
    if isinstance(value, list | dict) and value and rng.random() < 0.9:
        kept = copy.deepcopy(value)
        keys = list(value) if isinstance(value, dict) else range(len(value))
        i, j = (keys[n] for n in rng.integers(len(keys), size=2))
        match rng.integers(4 if isinstance(value, list) else 2):
            case 0:
                del kept[i]
            case 1:
                kept[i], kept[j] = kept[j], kept[i]
            case 2:
                kept.insert(i, copy.deepcopy(kept[j]))
            case 3:
                kept = kept[: i + 1]
        return kept
    return copy.deepcopy(odd[rng.integers(len(odd))])
