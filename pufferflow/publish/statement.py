"""The statement of a release in sections: the same in Markdown, on the page, and in a registry.

It depends on public facts only: options, sizes, the error and the noisy values. It contains neither
names of files nor numbers of a fitted Θ.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, time, timedelta
from importlib.resources import files
from string import Template
from typing import TYPE_CHECKING

from pufferflow import __version__
from pufferflow.accounting.account import percent
from pufferflow.publish.noise import LIMITS
from pufferflow.publish.statistics import MostFrequent
from pufferflow.publish.texts import duration, factor, markdown, number, plural, visible

if TYPE_CHECKING:
    from pufferflow.models.families import Family
    from pufferflow.publish.result import Release
    from pufferflow.records.schema import Schema


def statement_of(made: Release) -> str:
    """Return the statement as Markdown."""
    lines = [f"**{markdown(warning)}**\n" for warning in warnings_of(made)]
    lines.append(f"# {markdown(made.title)}\n")
    for title, points in sections_of(made):
        lines += [f"## {title}\n", *(f"- {markdown(point)}" for point in points), ""]
    return "\n".join(lines)


def sections_of(made: Release) -> list[tuple[str, list[str]]]:
    """Return title and points of each section."""
    return [
        ("What was published", list(_published(made))),
        ("What is protected", list(_protected(made))),
        ("Under which assumption", list(_assumed(made))),
        ("What is not protected", list(_not_protected(made))),
        ("What adds up", list(_account(made))),
        ("How", list(_method(made))),
    ]


def warnings_of(made: Release) -> Iterator[str]:
    """Yield the warnings that precede all sections."""
    if not made.private:
        yield f"NOT PRIVATE: a simulation with seed {made.how.seed}; anybody can repeat its noise."
    for table in made.tables:
        of = f" of {table.heading}" if len(made.tables) > 1 else ""
        if table.indistinguishable:
            yield f"No difference between the cells{of} is distinguishable from noise."
        if useless := int((table.impact[table.published] >= LIMITS[-1]).sum()):
            yield f"{plural(useless, 'value')}{of} with an error of half the public range or more."
    yield from made.warnings


def secret_of(made: Release) -> str:
    """Return the secret as a noun phrase."""
    window, step = made.level.window, made.readings.step_seconds
    if window is None:
        return "all readings of one participant"
    if window == 1:
        return "any one reading of one participant"
    span = f"{window:,} readings in a row" if step is None else duration(window * step)
    return f"any {span} of one participant"


def span_of(made: Release) -> str:
    """Return the range, in whole days if possible; empty if it is unbounded."""
    of = made.readings
    if of.first is None or of.last is None:
        return ""
    first, last = (datetime.fromisoformat(t.removesuffix("Z")) for t in (of.first, of.last))
    next_one = last + timedelta(seconds=of.step_seconds or 1)
    whole = first.time() == time() and next_one.date() > last.date()
    words = [f"{t:%Y-%m-%d}" if whole else f"{t:%Y-%m-%d %H:%M}" for t in (first, last)]
    return " to ".join(dict.fromkeys(words))


def _published(made: Release) -> Iterator[str]:
    for table in made.tables:
        yield f"{table.heading}{table.statistic.detail}: {table.error_text}."
        if isinstance(table.statistic, MostFrequent):
            yield (
                "With 95\u00a0% probability no state is listed before, or instead of, one whose "
                "share is larger by more than that. Shares are not published."
            )
    base = {"utc": " (UTC)", "local": " (local time)"}.get(made.readings.time_base, "")
    who, when = plural(made.readings.participants, "participant"), span_of(made)
    when = f", {when}{base}" if when else ""
    cohort = f", the cohort {made.how.cohort}" if made.how.cohort else ""
    yield f"Computed from {plural(made.readings.number, 'reading')} of {who}{when}{cohort}."
    if step := made.readings.step_seconds:
        yield f"A reading is taken {_every(step)}."
    if made.readings.zone:
        yield f"Hours and days are those of {made.readings.zone}."
    yield (
        "Noise impact compares the error with the public range of a value: LOW below 2\u00a0%, "
        "MEDIUM below 10\u00a0%, HIGH below 50\u00a0%, VERY HIGH from 50\u00a0% on."
    )


def _every(step: int) -> str:
    """Return a step of so many seconds, as in "every minute" or "every 15 minutes"."""
    return f"every {duration(step).removeprefix('1 ')}"


def _protected(made: Release) -> Iterator[str]:
    secret, window = secret_of(made), made.level.window
    yield (
        f"{secret[0].upper()}{secret[1:]}: this release changes the odds of any two possible "
        f"values by a factor of at most {factor(made.epsilon)} (ε = {made.epsilon:g})"
        + (f", but for a probability of {made.delta:g} (δ)." if made.delta else ".")
    )
    if window is None:
        yield "This holds for any dependence between readings and any side information."
        return
    if window > 1 and (step := made.readings.step_seconds):
        yield f"That is any {window:,} readings in a row, one {_every(step)}."
    known = made.level.side_information
    yield f"This holds against an adversary with {known} of the other readings as side information."


def assumption_of(theta: Family | None, records: Schema) -> Iterator[str]:
    """Yield the assumptions, without numbers of a chain that was fitted without noise."""
    if theta is None:
        yield "No assumption about time is made."
        return
    private, fitted = records.fitted_privately, records.fitted
    yield f"The readings of one participant follow {theta.description()}."
    yield "This holds for all columns of a reading jointly; no value is a rolling mean."
    if private is not None:
        yield (
            f"It was fitted to {private.participants} participants with noise that protects each "
            f"of them (epsilon = {private.epsilon:g}) and contains their chain with confidence "
            f"{private.confidence:g}, if they are independent draws of it."
        )
    elif fitted is not None:
        yield f"It was fitted to {fitted.records} readings from {fitted.first} to {fitted.last}."


def _assumed(made: Release) -> Iterator[str]:
    yield from made.assumed
    if made.how.fitted_to_others:
        yield "It is not verified that the chain was fitted to other participants."
    one = "All readings were taken to be those of one participant."
    several = "Participants are independent of each other, and each row names the right one."
    yield one if made.readings.participants == 1 else several
    yield "Readings do not depend on earlier releases."
    if made.readings.groups:
        yield "The group of a participant is a fact that does not depend on any reading."


def _not_protected(made: Release) -> Iterator[str]:
    of = made.readings
    if made.level.whole:
        yield "The participation of a person, and the times of their readings."
    else:
        yield f"Anything beyond {secret_of(made)}, such as a habit."
        if made.level.side_information == "none":
            yield "Anything against an adversary with other readings as side information."
        yield "Anything if the assumption is wrong: the larger its error, the weaker the guarantee."
    sizes = f"{plural(of.number, 'reading')}, {plural(of.participants, 'participant')}"
    yield f"The number of readings and participants ({sizes}), and the times of missing readings."
    if cells := sorted({table.statistic.by for table in made.tables} - {"all"}):
        yield f"The number of readings of each {' and each '.join(cells)}."
    if of.groups:
        yield f"The {plural(len(of.groups), 'group')} and their participants."
    yield "Facts about the population, which are the purpose of a publication."
    yield "Other publications; the refusal of a release, and its running time."


def _account(made: Release) -> Iterator[str]:
    if made.paid is None:
        yield "No account is kept: publications of the same readings are not added up."
        return
    if made.how.alone:
        yield "This release is in an account, but its guarantee covers itself alone."
        yield "Other publications of the same readings change the odds further."
    else:
        yield (
            "All publications of these readings are added up in one account. Together they keep "
            f"ε = {made.paid.limit:g}"
            + (f" and δ = {made.paid.delta:g}" if made.paid.delta else "")
            + f", the limit in force on this date ({made.date})."
        )
        when = "" if made.level.whole else " for the readings of this period"
        yield f"Of it {percent(made.paid.spent)}\u00a0% is used{when}."
    if made.level.whole:
        yield "Publications about whole participants add up for ever, whatever their period."
    elif made.readings.first is not None:
        yield "Readings of another period are added up separately."
    else:
        yield "The readings have no times, so everything adds up for ever."
    if made.how.cohort:
        yield f"The cohort {made.how.cohort} shares no participant with that of any other account."
    yield "A copy of the readings, or an older copy of the account put back, is not detected."


def _method(made: Release) -> Iterator[str]:
    for table in made.tables:
        kind, noise, other = table.statistic, table.noise, table.other
        if isinstance(kind, MostFrequent):
            name = "exponential" if kind.top == 1 else "discrete Laplace"
            yield (
                f"Independent {name} noise of scale {noise.scale:g} was added to each count of "
                f"{table.heading}, and the states with the largest sums are listed. The error is "
                "an upper bound; one reading changes two counts by 1 each."
            )
            continue
        subject = f"sum (in steps of {kind.unit:g})" if kind.in_unit else "count"
        known = f"Laplace noise of scale {noise.scale:g}", "L1", f"{kind.lipschitz:,}"
        if noise.gaussian:
            known = f"Gaussian noise of σ = {noise.scale:g}", "L2", f"√{kind.square:,}"
        added, norm, change = known
        yield (
            f"Independent discrete {added} was added to each {subject} "
            f"of {table.heading}; their {norm} sensitivity to one reading is {change}."
        )
        if other is not None:
            name = "Gaussian" if other.gaussian else "Laplace"
            both = replace(table, noise=other), table
            most, least = (f"±{number(one.middle[0])}" for one in both)
            yield f"{name} noise would have an error of {most} instead of {least}."
    exactly = "at most" if made.delta else "exactly"
    yield f"The error is that of noise and rounding, {exactly}; scales are rounded up to 11 bits."
    if made.level.whole:
        yield "The scale follows from the most readings a participant can have (group privacy)."
    elif made.documents:
        yield "The assumption and a certificate, which proves the scale, are published with this."
    else:
        yield "A certificate proves the scale. It is not published, nor is the fitted chain."
        yield "The counts of the fit could be computed from both."
    yield "This is Pufferfish privacy (Song, Wang and Chaudhuri, SIGMOD 2017), with ε in nats."
    yield f"Made with pufferflow {__version__}."


def registry_record(made: Release, curator: str) -> str:
    """Return a record of the OpenDP Deployments Registry as YAML, for the curator to complete."""
    titles = ("published", "protected", "assumed", "not_protected", "account", "method")
    points = ((markdown(point) for point in points) for _, points in sections_of(made))
    parts = {title: "- " + "\n- ".join(own) for title, own in zip(titles, points, strict=True)}
    whole, curator = made.level.whole, visible(curator)
    theta = "" if not made.documents else " Θ and the certificate are published with the values."
    parts |= {
        "slug": "-".join(re.findall("[a-z0-9]+", f"{curator} {made.title} {made.date}".lower())),
        "name": markdown(f"{made.title}, {span_of(made)}".removesuffix(", ")),
        "curator": curator,
        "actors": f"{markdown(curator)} has the readings and adds the noise.",
        "missing": "To be completed by the curator.",
        "date": made.date,
        "variant": f"{'Approximate' if made.delta else 'Pure'} DP" if whole else "Custom",
        "unit": "User-level" if whole else markdown(secret_of(made)),
        "meaning": "Adjacent tables differ in the readings of one person."
        if whole
        else "Pufferfish privacy: ε bounds the change of an adversary's odds under every "
        f"distribution of the class Θ, which the data domain states.{theta}",
    }
    odds = {"epsilon": made.epsilon} | ({"delta": made.delta} if made.delta else {})
    numbers = ", ".join(f"{name}: {float(value)!r}" for name, value in odds.items())
    shown = {name: json.dumps(text, ensure_ascii=False) for name, text in parts.items()}
    form = Template(files("pufferflow.publish").joinpath("registry.yaml").read_text("utf-8"))
    # 1e-06 is not a number in YAML
    return form.substitute(shown, parameters=re.sub("([: ][0-9]+)e", r"\1.0e", numbers))
