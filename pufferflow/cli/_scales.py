"""What the commands that compute scales of chains have in common."""

from __future__ import annotations

import argparse
from typing import Any, get_args

from pufferflow._checks import shown
from pufferflow._progress import progress
from pufferflow._protection import PROTECTION, Knowledge, Level, asked_for, check_level
from pufferflow._work import afford, is_allowed, said
from pufferflow.errors import ParameterError
from pufferflow.influence.tables import Convention
from pufferflow.markov.families import Family
from pufferflow.mechanisms import KNOWN, NoiseScale, compute_scale, find_mechanism
from pufferflow.mechanisms.base import not_applicable
from pufferflow.mechanisms.work import scale_work
from pufferflow.publishing.planning import NOT_PRIVATE

FEWER = "give fewer states, other mechanisms (--mechanism) or shorter segments"
"""What makes scales cheaper."""


def add_mechanisms(parser: argparse.ArgumentParser, default: str) -> None:
    """Declare which mechanisms, and the convention of max-influence."""
    parser.add_argument(
        "--mechanism",
        action="append",
        metavar="NAME",
        help=f"one of {', '.join(KNOWN)}; repeat for several (default: {default})",
    )
    parser.add_argument(
        "--convention",
        choices=get_args(Convention),
        default="exact",
        help="max-influence of mqm-exact: by its definition, or by the paper's formula as printed (default: exact)",
    )


def add_protection(parser: argparse.ArgumentParser) -> None:
    """Declare what is to be hidden, and from whom."""
    what = parser.add_mutually_exclusive_group()
    what.add_argument(
        "--protect",
        metavar="LEVEL",
        help="what is hidden: record (any single one), a window such as 60, 90min, 1h or 1d (all that happened during "
        "so many consecutive records; times where the time step is known), or participant (everything of one "
        "participant, whatever the correlation; with scale and plan: of --length records) (default: record)",
    )
    what.add_argument("--window", metavar="W", help="the same for windows")
    parser.add_argument(
        "--knows",
        choices=tuple(name.replace(" ", "-") for name in get_args(Knowledge)),
        default="nothing",
        help="what of a participant's records an adversary may know: none of them, or any others than those hidden "
        "(default: nothing)",
    )


def level(arguments: argparse.Namespace, step_seconds: int | None = None) -> Level:
    """Return what ``--protect`` or ``--window`` and ``--knows`` ask for; the time step is that of the records if known.

    Raises ParameterError: it is none of what they may be, or a time without a step.
    """
    name, asked = ("--protect", arguments.protect) if arguments.window is None else ("--window", arguments.window)
    if arguments.window is not None and not asked.strip()[:1].isdigit():
        raise ParameterError(f"--window is {shown(asked)}; give a number of records, or a time such as 90min or 1h")
    return check_level(asked, knows=arguments.knows.replace("-", " "), step_seconds=step_seconds, name=name)


def add_count(parser: argparse.ArgumentParser, purpose: str) -> None:
    """Declare the states of a count."""
    parser.add_argument("--count", type=int, action="append", metavar="STATE", help=purpose)


def scales_of(
    asked: list[str] | None, family: Family, lengths: list[int], epsilons: list[float], options: dict[str, Any]
) -> list[NoiseScale]:
    """Return the scale of each mechanism at each ε, "not applicable" where it cannot work.

    Those asked for by name are called as they are: such a one may raise where its chains rule it out. Where nothing is
    named, those that would take too long are left out, with the reason.

    Raises ParameterError: those that are named would take too long.
    """
    names, scales = asked or KNOWN, []
    works = {name: scale_work(name, family, lengths) * len(epsilons) for name in names}
    if asked:
        afford(sum(works.values()), f"the scales of {', '.join(dict.fromkeys(asked))}", FEWER)
    total = len(epsilons) * len(names)
    with progress(total=total, desc="scales", delay=1) as bar:
        for epsilon in epsilons:
            for name in names:
                mechanism = find_mechanism(name)
                own = {key: value for key, value in options.items() if key in (*mechanism.options, *PROTECTION)}
                if asked:
                    scales.append(mechanism.called(family, lengths, epsilon, **own))
                elif is_allowed(works[name]):
                    scales.append(compute_scale(name, family, lengths, epsilon, **own))
                else:
                    why = f"it {said(works[name])}; {FEWER}, or allow more (--most-work)"
                    scales.append(not_applicable(name, epsilon, max(lengths), why, asked_for(own)))
                bar.update()
    return scales


def note(mechanism: str | None, scale: float | None) -> str:
    """Return what a table says beside a scale that hides nothing in correlated records."""
    hides = mechanism is None or scale is None or find_mechanism(mechanism).private
    return "" if hides else f"; {NOT_PRIVATE}"


def status_text(status: str, reason: str) -> str:
    """Return what a table says of the status of a result."""
    return f"{status}: {reason}" if reason else status
