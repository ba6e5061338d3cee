"""An attack on what is published: every number, by every rule that has ever disclosed a count."""

import math
import re
from collections import defaultdict
from fractions import Fraction

NUMBER = re.compile(r"(?<![\w.])-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?")


def numbers(folder):
    """The numbers of each file of a folder, as exact decimals; of pictures those of the SVG."""
    found = {}
    for path in sorted(folder.rglob("*")):
        if path.suffix in (".json", ".csv", ".txt", ".svg"):
            text = path.read_text()
            if path.suffix == ".svg":  # glyphs are the same in every picture
                text = re.sub(r"<defs>.*?</defs>", "", text, flags=re.DOTALL)
            found[path.name] = [float(word) for word in NUMBER.findall(text)]
    return found


def guesses(found, records, sizes=()):
    """What integers the numbers may stand for: (file, place, rule) -> integer.

    ``records`` is public, and so are the ``sizes`` of cells.
    """
    guessed = {}
    for name, values in found.items():
        exact = [simplest(value, records) for value in values]
        for place, value in enumerate(values):
            if not math.isfinite(value) or abs(value) > 1e9:
                continue
            rules = {
                "itself": value,
                "times n": value * records,
                "times n - 1": value * (records - 1),
            }
            rules |= {f"times {size}": value * size for size in sizes}
            if value:
                rules["inverse"] = 1 / value
            if exact[place] is not None:
                top, below = exact[place].numerator, exact[place].denominator
                rules |= {f"{m} numerators": m * top for m in (1, 2, 3)}
                rules |= {f"{m} denominators": m * below for m in (1, 2, 3)}
            # a row of frequencies: their common denominator, and each times it
            for width in (2, 3):
                for start in range(max(0, place - width + 1), place + 1):
                    row = exact[start : start + width]
                    if len(row) == width and None not in row:
                        common = math.lcm(*(fraction.denominator for fraction in row))
                        rules[f"common denominator {width}, {place - start}"] = common
                        rules[f"of common denominator {width}, {place - start}"] = value * common
            guessed |= {(name, place, rule): round(guess) for rule, guess in rules.items()}
    return guessed


def simplest(value, most):
    """The fraction of a small denominator that a number between 0 and 1 was, if it was one."""
    if not 0 < value < 1:
        return None
    fraction = Fraction(value).limit_denominator(most)
    return fraction if abs(value - fraction) <= 1e-12 else None


def recovered(releases, records, truths, sizes=()):
    """What of the truth some rule at some place finds every time.

    ``releases`` and ``truths`` are of neighbouring tables: a list of folders each, and a dict of
    counts each. Only counts that differ between the tables are looked for, so no public number
    passes for one of them.
    """
    private = [key for key in truths[0] if len({truth[key] for truth in truths}) > 1]
    hits, seen = defaultdict(int), defaultdict(int)
    for folders, truth in zip(releases, truths, strict=True):
        wanted = defaultdict(list)
        for key in private:
            wanted[truth[key]].append(key)
        for folder in folders:
            found = numbers(folder)
            for name in found:
                seen[name] += 1
            for where, guess in guesses(found, records, sizes).items():
                for key in wanted.get(guess, ()):
                    hits[where, key] += 1
    return {key for (where, key), count in hits.items() if count == seen[where[0]]}


def constants(folders):
    """Numbers that are there and the same in every one of these folders, by file and place."""
    each = [
        {(name, i): x for name, values in numbers(f).items() for i, x in enumerate(values)}
        for f in folders
    ]
    return {
        where: x for where, x in each[0].items() if all(other.get(where) == x for other in each)
    }
