"""Options are declared once: signatures, docstrings, refusals come from them; times have units."""

import ast
import inspect
from pathlib import Path

import pytest
from source_trees import tree

import pufferflow as pf
from pufferflow._protection import Level, level_of
from pufferflow._units import seconds_of, steps_of, text_of
from pufferflow.publish.request import Request

ROOT = Path(__file__).parents[2]


@pytest.mark.xdist_group("sources")
def test_no_function_has_many_parameters():
    many, seen = [], 0
    for path in [*(ROOT / "pufferflow").rglob("*.py"), *(ROOT / "workflow").rglob("*.py")]:
        for node in ast.walk(tree(path)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
                seen += 1
                names = [one.arg for one in ast.walk(node.args) if isinstance(one, ast.arg)]
                if len({*names} - {"self", "cls"}) > 10:
                    many.append(f"{path}:{node.lineno}")
    assert many == []
    assert seen > 1500


@pytest.mark.parametrize("function", [pf.release, pf.plan, pf.fit, pf.fit_privately, pf.certify])
def test_signature_and_help_show_every_option(function):
    shown, own = inspect.signature(function).parameters, inspect.signature(function.__wrapped__)
    for field in getattr(function, "options", ()):
        assert shown[field.name].default in (field.default, inspect.Parameter.empty)
    options = {name: shown[name] for name in shown if name not in own.parameters}
    assert options
    for name, option in options.items():
        assert option.kind is option.KEYWORD_ONLY
        assert f"\n{name} : " in inspect.getdoc(function)
    assert "{options}" not in inspect.getdoc(function)


def test_a_request_has_every_option_once():
    names = [field.name for field in pf.release.options]
    assert len({*names}) == len(names)
    made = Request.of("x.csv", pf.mixing(3, 0.5), 1.0, {"edges": [1], "share": "1/3"})
    assert (made.table.edges, made.how.share, made.what.bounds) == ([1], "1/3", None)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: pf.release("d", "m", windw=2), "unknown option 'windw' of release"),
        (lambda: pf.release("d", "m", protct="1h"), "'protct' of release; protect may be meant"),
        (lambda: pf.release("d", "m", zzz=2), "of release; there are source, theta, epsilon, "),
        (lambda: steps_of("1h", None, "x"), "no time step is known"),
        (lambda: pf.leakage(pf.mixing("1h", 0.4), 100, 1.0), "in_steps"),
        *(
            (lambda bad=bad: seconds_of(bad, "step"), "step is ")
            for bad in ("", "h", "-1h", "0h", "1 y", "1e3s", "½h", "9" * 5000, None, True, 0, 1.5)
        ),
        *(
            (lambda bad=bad: level_of(bad, "none", 3600), "protect is ")
            for bad in ("day", "", "1h2", "record", 0, -1, None, "1.5")
        ),
    ],
)
def test_what_is_no_option_no_time_and_no_level_is_refused(call, said):
    with pytest.raises(pf.ParameterError) as refused:
        call()
    assert said in str(refused.value)


def test_times_and_levels():
    """More steps for a window hide more; more steps for mixing assume less: they are rounded up."""
    times = {"90s": 90, "30min": 1800, "1h": 3600, "1.5h": 5400, "7d": 604_800, 60: 60, "60": 60}
    for text, seconds in times.items():
        assert seconds_of(text, "step") == seconds == seconds_of(text_of(seconds), "step")
    for step, steps in ((2400, 2), (3600, 1), (86_400, 1)):
        assert steps_of("1h", step, "x") == steps
        assert pf.mixing("1h", 0.4).in_steps(step) == pf.MixingFamily(steps, 0.4)
    assert steps_of(5, None, "x") == steps_of("5", None, "x") == 5
    levels = {"reading": 1, "participant": None, "1d": 24, 3: 3, "3": 3}
    for protect, window in levels.items():
        level = level_of(protect, "none", 3600)
        assert level == Level(window) == level_of(level.words(3600), "none", 3600)
    assert pf.leakage(pf.mixing("1h", 0.4).in_steps(60), 10**6, 1.0).scale == pytest.approx(349.528)
