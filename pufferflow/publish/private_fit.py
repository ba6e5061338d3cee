"""A family fitted with noise that protects whole participants: it is safe to publish.

Neighbouring tables differ in the number, times and values of all readings of one participant. The
number of participants, ε, N, the confidence and the options (states, step, range, columns, zone)
are public. docs/account.md, "Private fits", proves that the noise and the intervals suffice.

*No row is ever refused*, since a refusal would be visible: unknown states count as missing,
repeated rows and rows off the grid of whole steps since 1970 are dropped, offsets are applied, and
a participant without any row left still counts. A file with a line that is not a row of its table
is refused as a whole: let a program write it. Running time is not protected.
"""

import math
import secrets
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from pufferflow._util.checks import check_confidence, check_whole
from pufferflow._util.files import PathLike, check_output, workplace
from pufferflow._util.noise import open_dp
from pufferflow._util.types import Ints
from pufferflow.accounting.account import Charge
from pufferflow.accounting.ledger import reserved, try_out
from pufferflow.errors import DataError, ParameterError
from pufferflow.models.bounded import IntervalFamily
from pufferflow.models.chain import STATIONARY
from pufferflow.models.estimation import noisy_confidence_bounds
from pufferflow.models.files import PublicModel, write_model
from pufferflow.publish.fit import Fit, FitOptions
from pufferflow.publish.noise import Noise, noise_scale, sum_margin
from pufferflow.publish.release import Agreement
from pufferflow.publish.request import ReleaseOptions, Request, TableOptions
from pufferflow.records.counts import path_counts
from pufferflow.records.options import made_from, shows, takes_options
from pufferflow.records.read import find_columns, parse_range, read
from pufferflow.records.schema import FittedPrivately, Schema
from pufferflow.records.table import Source, open_table

MAX_NOISE = 0.5
"""Limits of noise on a count over the mean visits to a state, and of the median width."""

POORLY_DETERMINED = (
    "The chain is poorly determined. Check that times lie on whole steps, and that `step`, "
    "`timezone`, range and `states` are those of the table; a larger `epsilon` helps, and smaller "
    "`most_transitions` where participants have few."
)


@dataclass(frozen=True)
class PrivateFitOptions:
    """Options of a private fit."""

    most_transitions: int | None = shows(
        None, "Transitions used per participant, the first ones (default: all).", "N"
    )
    confidence: float = shows(0.95, "Probability that the result contains the chain.", "P")


OPTIONS = (FitOptions, PrivateFitOptions, ReleaseOptions, TableOptions)
TAKEN = (
    "start most_transitions confidence ledger first last cohort new_values time value participant "
    "step timezone time_format separator decimal thousands rows_are_steps states edges dry_run"
)


@takes_options(*OPTIONS, only=TAKEN)
def fit_privately(
    source: Source, epsilon: float = 1.0, *, output: PathLike | None = None, **options: Any
) -> Fit:
    """Return a family of chains fitted to many participants, with noise that protects each of them.

    The noise is drawn from the operating system's randomness, after its cost is reserved in the
    ledger. It adds up with releases of the same readings but makes no promise of its own.

    Parameters
    ----------
    source : path, Series or DataFrame
    epsilon : float
    output : path, optional
        New model file, safe to publish.
    {options}

    Raises ParameterError: an option is out of range, or a public one is missing;
    DataError: there are too few participants (never because of a row); BudgetError, LedgerError:
    the account does not allow it.
    """
    assumed, how = made_from(options, FitOptions, PrivateFitOptions)
    options |= {"protect": "participant", "alone": True}
    request = Request(None, epsilon, options)
    asked, schema, epsilon = request.how, request.schema, request.epsilon
    miss = (1 - check_confidence(how.confidence, "confidence")) / 2
    if schema.participant is None or schema.states is None or schema.states.count < 2:
        raise ParameterError("give the column of the participants (`participant`) and `states`")
    k = schema.states.count
    opened = open_table(source, schema.separator)
    first, last = parse_range(asked.first, asked.last, schema.timezone)
    has_times = find_columns(opened, schema)["time"] is not None
    most = _most_transitions(how.most_transitions, schema if has_times else None, first, last)
    if output is not None:  # fails before the charge if nothing can be written
        with workplace(check_output(output, asked.ledger).parent):
            pass
    open_dp()  # or if the sampler is missing

    # counts: the number of participants alone decides whether there is a fit
    steps = read(opened, schema, first=first, last=last, total=True)
    counts, participants = path_counts(steps, most=most)[0], len(steps.people)
    scale, ways = noise_scale(Fraction(epsilon), 2 * most), 1 + (assumed.start == STATIONARY)
    margin, others = _margins(k, scale, miss)
    enough = math.ceil(k * margin / (MAX_NOISE * most))
    if participants < enough:
        raise DataError(
            f"{opened.where}: {participants:,} participants are too few for noise of {margin:,} on "
            f"a count; {enough:,} suffice, or a larger `epsilon`, fewer `states`, a longer range"
        )

    # cost
    token = secrets.token_hex(8)  # finds the row of the fit when its file is used
    terms = FittedPrivately(epsilon, how.confidence, participants, most, scale, token)
    charge = Charge(min(4, 2 * most) / Fraction(scale), 2 * most / Fraction(scale), first, last)
    query = f"private fit {token}: transitions between {k} states"
    payment = Agreement(request, steps, ()).terms(charge, query)
    facts = _public_facts(terms, k)
    if asked.dry_run:
        return Fit(None, facts, paid=try_out(asked.ledger, payment))
    with reserved(asked.ledger, payment) as paid:
        noisy = Noise(scale).add(counts)
        reach = {"coverage": 1 - miss, "ways": ways, "margin": margin, "others": others}
        back = _family(noisy.T, reach) if ways == 2 else None
        family = _family(noisy, reach, back)
        widths = family.high - family.low
        facts["transitions"] = f"about {int(noisy.sum()):,}"
        facts["widths"] = f"{np.median(widths):.2g} median, {widths.max():.2g} at most"
        is_poor = np.median(widths) >= MAX_NOISE
        model = PublicModel(family, replace(schema, fitted_privately=terms))
        if output is not None:
            write_model(output, family, model.records)
    return Fit(model, facts, warnings=(POORLY_DETERMINED,) if is_poor else (), paid=paid)


def _most_transitions(
    most: int | None, timed: Schema | None, first: int | None, last: int | None
) -> int:
    """Return how many transitions a participant can contribute, from public options alone."""
    limits = [] if most is None else [check_whole(most, "most_transitions", most=2**40)]
    if timed is not None:
        step = timed.step_seconds
        if step is None or timed.timezone is None or first is None or last is None:
            raise ParameterError(
                "the range must be public; give `step`, `timezone` (UTC where times have "
                "offsets), `first` and `last`"
            )
        limits.append(last // step + -first // step)
    if min(limits, default=0) < 1:
        raise ParameterError("give `most_transitions`, or from `first` to `last` two steps or more")
    return min(limits)


def _public_facts(terms: FittedPrivately, states: int) -> dict[str, str]:
    """Return the facts that no draw changes."""
    return {
        "participants": f"{terms.participants:,}, of each the first {terms.most_transitions:,} "
        "transitions",
        "noise": f"scale {terms.noise_scale:g} on each of {states**2:,} counts",
        "intervals": f"confidence {terms.confidence:g} together, noise included",
    }


def _margins(states: int, scale: float, miss: float) -> tuple[int, int]:
    """Return margins of a count and of sums along rows and columns, with error ``miss``."""
    margin = Noise(scale).quantile(1 - miss / 2, states**2)
    sums = sum_margin(scale, states - 1, miss / 2 / (2 * states**2))
    return margin, min((states - 1) * margin, math.ceil(sums))


def _family(noisy: Ints, reach: Any, backward: IntervalFamily | None = None) -> IntervalFamily:
    """Return all chains consistent with counts within the margins."""
    low, high = noisy_confidence_bounds(noisy, **reach)
    none = (low > high).any(axis=1) | (low.sum(axis=1) > 1) | (high.sum(axis=1) < 1)
    low[none], high[none] = 0.0, 1.0  # no row satisfies both: the noise exceeds its margin
    return IntervalFamily(low, high, backward=backward)
