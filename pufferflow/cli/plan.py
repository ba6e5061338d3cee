"""``pufferflow plan``: what reaches a wanted error."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict

from pufferflow._checks import check_whole
from pufferflow._files import check_outputs
from pufferflow._protection import PARTICIPANT, Level
from pufferflow._work import afford
from pufferflow.cli._figures import add_figure, figure_files, figure_stem
from pufferflow.cli._releases import add_theta, level_table, model
from pufferflow.cli._scales import add_protection
from pufferflow.cli._scales import level as asked_level
from pufferflow.cli._tables import aligned
from pufferflow.errors import ParameterError
from pufferflow.markov import Family
from pufferflow.mechanisms import KNOWN, find_mechanism
from pufferflow.mechanisms.work import scale_work
from pufferflow.publishing.calibration import histogram_mechanisms
from pufferflow.publishing.levels import CHEAP, level_costs, levels, levels_work
from pufferflow.publishing.planning import KINDS, Plan, error_curves, grid_around, plan_release
from pufferflow.records.format import MOST_SECONDS

DESCRIPTION = (
    "Say for every mechanism which epsilon reaches a wanted error of relative frequencies (give --length), which "
    "length does (give --epsilon), or how many records in segments of a length do (give both). Exact quantiles; no "
    "data needed."
)
EPILOG = "Example: pufferflow plan --chain last_year.csv.chain.json --length 525600 --accuracy 0.01 --confidence 0.95"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_theta(parser)
    parser.add_argument("--accuracy", type=float, required=True, metavar="E", help="wanted error, for example 0.01")
    parser.add_argument("--confidence", type=float, default=0.95, help="probability to stay below it (default: 0.95)")
    parser.add_argument(
        "--error",
        choices=tuple(KINDS),
        default="bin",
        help="; ".join(f"{k}: {text}" for k, text in KINDS.items()) + " (default: bin)",
    )
    parser.add_argument("--length", type=int, metavar="T", help="longest segment")
    parser.add_argument("--records", type=int, metavar="N", help="records of all segments together (default: T)")
    parser.add_argument("--epsilon", type=float, help="privacy parameter")
    parser.add_argument("--step", type=int, metavar="SECONDS", help="time step, where the model does not say")
    parser.add_argument("--states", type=int, metavar="K", help="number of states, where the model does not say")
    parser.add_argument("--mechanism", action="append", metavar="NAME", help="repeat for several (default: all)")
    parser.add_argument(
        "--releases",
        type=int,
        default=1,
        metavar="R",
        help="of the same records, such as 52 in a year, that epsilon is for together (default: 1)",
    )
    add_protection(parser)
    add_figure(parser, "error against epsilon", " (needs --length)")
    parser.add_argument("--json", action="store_true", help="print a JSON list instead of a table")


def run(arguments: argparse.Namespace) -> None:
    """Print the plan; draw the figure where one is asked for."""
    if arguments.figure is not None:
        if arguments.length is None:
            raise ParameterError("--figure needs --length, for which the errors are drawn")
        stem = figure_stem(arguments)
        check_outputs(figure_files(stem), [arguments.chain])
    public = model(arguments)
    family, states = public.family, arguments.states
    if states is None and public.records is not None:
        states = public.records.states.count
    step = arguments.step if public.records is None else public.records.step_seconds
    if step is not None:
        step = check_whole(step, "--step", most=MOST_SECONDS)
    hidden = asked_level(arguments, step)
    terms = {
        "confidence": arguments.confidence,
        "kind": arguments.error,
        "mechanisms": arguments.mechanism,
        "states": states,
        "releases": arguments.releases,
    }
    names = arguments.mechanism or histogram_mechanisms()
    work = sum(scale_work(name, family, 1) for name in names if name in KNOWN) * (1 if arguments.figure is None else 10)
    if arguments.length is not None and arguments.releases == 1:
        work += levels_work(family, step, arguments.length, hidden)
    afford(work, "the plan", "give fewer states, or mechanisms that take less (--mechanism mqm-exact)")
    plans = plan_release(
        family,
        arguments.accuracy,
        length=arguments.length,
        records=arguments.records,
        epsilon=arguments.epsilon,
        protect=PARTICIPANT if hidden.window is None else hidden.window,
        knows=hidden.knows,
        **terms,
    )
    if arguments.figure is not None:
        from pufferflow.drawing.releases import error_against_epsilon
        from pufferflow.drawing.style import save_figure

        private = [plan for plan in plans if find_mechanism(plan.mechanism).private]
        reached = [plan.epsilon for plan in private if plan.epsilon is not None]
        centre = arguments.epsilon or min(reached, default=1.0)
        terms |= asdict(hidden.over(arguments.length))
        curves = error_curves(family, grid_around(centre), length=arguments.length, records=arguments.records, **terms)
        records = arguments.records or arguments.length
        caption = (
            f"{arguments.confidence:.0%} quantile of the {KINDS[arguments.error]}, {records:,} records in segments of "
            f"up to {arguments.length:,} steps; dotted: the wanted error. Exact quantiles; no data were used."
        )
        drawn = error_against_epsilon(curves, arguments.accuracy, KINDS[arguments.error], caption)
        written = save_figure(drawn, stem)
    if arguments.json:
        print(json.dumps([asdict(plan) for plan in plans], indent=1, allow_nan=False))
        return
    print(f"{KINDS[arguments.error]} <= {arguments.accuracy:g} with probability {arguments.confidence:g}:")
    several = arguments.releases > 1
    names = ("mechanism", "epsilon", *(["each"] if several else []), "length", "records", "note")
    print(aligned([names, *(_row(plan, several) for plan in plans)]))
    if several:
        print(
            f"\nepsilon is for {arguments.releases:,} releases of the same records together, the limit of their "
            "ledger; each is what to ask for in every one of them. They add up by the scales of their noise, as in the "
            "ledger: epsilon divided by their number may be less than that, or too much."
        )
    elif arguments.length is not None:
        _show_levels(arguments, public.family, step, hidden, states)
    if arguments.figure is not None:
        print(f"\nwrote {', '.join(map(str, written))}")


def _show_levels(
    arguments: argparse.Namespace, family: Family, step: int | None, hidden: Level, states: int | None
) -> None:
    """Print what each level of protection costs: its error where epsilon is given, and otherwise the epsilon."""
    length, records = arguments.length, arguments.records or arguments.length
    if arguments.epsilon is not None:
        costs = level_costs(
            family,
            arguments.epsilon,
            longest_segment=length,
            longest_record=length,
            records=records,
            step_seconds=step,
            asked=hidden,
        )
        print(f"\nwhat each level costs at epsilon {arguments.epsilon:g}, {records:,} records of one participant:")
        print(level_table([asdict(cost) for cost in costs]))
        return
    rows = [("protect", "others known", "mechanism", "epsilon")]
    terms = {"confidence": arguments.confidence, "kind": arguments.error, "states": states}
    for name, level in levels(step, length, hidden):
        protection = asdict(level.over(length))
        mechanisms = CHEAP[1:] if level.whole else CHEAP
        plans = plan_release(
            family, arguments.accuracy, length=length, records=records, mechanisms=mechanisms, **terms, **protection
        )
        best = min((plan for plan in plans if plan.epsilon is not None), key=lambda plan: plan.epsilon or 0)
        rows.append((name, "no" if level.knows == "nothing" else "any", best.mechanism, f"{best.epsilon:.6g}"))
    print("\nepsilon that each level needs, records of one participant:")
    print(aligned(rows))


def _row(plan: Plan, several: bool) -> tuple[str, ...]:
    epsilons = [plan.epsilon, *([plan.each] if several else [])]
    shown = ["-" if epsilon is None else f"{epsilon:.6g}" for epsilon in epsilons]
    lengths = ["-" if number is None else str(number) for number in (plan.length, plan.records)]
    return plan.mechanism, *shown, *lengths, plan.reason
