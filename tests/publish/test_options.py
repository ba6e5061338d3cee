"""Options are declared once: signatures, docstrings and refusals come from the same fields; times have units."""

import ast
import inspect
from pathlib import Path

import pytest
from source_trees import tree

import pufferflow as pf
from pufferflow._options import options_of
from pufferflow._protection import Level, level_of
from pufferflow._units import seconds_of, steps_of, text_of
from pufferflow.publish.request import RECORDS, Request

ROOT = Path(__file__).parents[2]
MOST = 10
TAKING = [pf.release, pf.plan, pf.fit, pf.fit_privately, pf.certify]


def parameters(function):
    """Of a definition, without what a method is called on."""
    names = function.args
    every = [*names.posonlyargs, *names.args, *names.kwonlyargs, names.vararg, names.kwarg]
    return [name.arg for name in every if name is not None and name.arg not in ("self", "cls")]


@pytest.mark.xdist_group("sources")
def test_no_function_has_many_parameters():
    many, seen = [], 0
    for path in [*(ROOT / "pufferflow").rglob("*.py"), *(ROOT / "workflow").rglob("*.py")]:
        for node in ast.walk(tree(path)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
                seen += 1
                if len(parameters(node)) > MOST:
                    many.append(f"{path.relative_to(ROOT)}:{node.lineno}")
    assert many == []
    assert seen > 1500


@pytest.mark.parametrize("function", TAKING, ids=lambda function: function.__name__)
def test_signature_and_help_show_every_option(function):
    shown = inspect.signature(function).parameters
    assert not any(p.kind is p.VAR_KEYWORD for p in shown.values())
    own = inspect.signature(function.__wrapped__).parameters
    options = [p for p in shown.values() if p.name not in own]
    assert options
    for option in options:
        assert option.kind is option.KEYWORD_ONLY
        assert f"\n{option.name} : " in inspect.getdoc(function)
    assert "{options}" not in inspect.getdoc(function)


def test_a_release_takes_every_option_with_its_default():
    shown = inspect.signature(pf.release).parameters
    fields = [field for record in RECORDS for field in options_of(record)]
    assert len({field.name for field in fields}) == len(fields)
    for field in fields:
        assert shown[field.name].default == field.default
    made = Request.of("x.csv", pf.mixing(3, 0.5), 1.0, {"edges": [1], "share": "1/3"})
    assert (made.table.edges, made.how.share, made.what.bounds) == ([1], "1/3", None)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"windw": 2}, "unknown option 'windw' of release"),
        ({"protct": "1h"}, "unknown option 'protct' of release; protect may be meant"),
        ({"zzz": 2}, "unknown option 'zzz' of release; there are source, theta, epsilon, "),
    ],
)
def test_unknown_options_are_refused_in_one_sentence(options, said):
    with pytest.raises(pf.ParameterError) as refused:
        pf.release("data.csv", "model.json", 1.0, **options)
    assert str(refused.value).startswith(said)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90s", 90),
        ("30min", 1800),
        ("1h", 3600),
        ("1.5h", 5400),
        ("7d", 604_800),
        (60, 60),
        ("60", 60),
    ],
)
def test_times(text, seconds):
    assert seconds_of(text, "step") == seconds
    assert seconds_of(text_of(seconds), "step") == seconds


@pytest.mark.parametrize(
    "text", ["", "h", "-1h", "0h", "1 y", "1e3s", "½h", None, True, 0, -3, 1.5]
)
def test_what_is_no_time_is_refused(text):
    with pytest.raises(pf.ParameterError, match="step"):
        seconds_of(text, "step")


def test_steps_are_rounded_up():
    """More steps for a window hide more; more steps for mixing assume less."""
    assert steps_of("1h", 2400, "x") == 2
    assert steps_of("1h", 3600, "x") == 1
    assert steps_of("1s", 3600, "x") == 1
    assert steps_of(5, None, "x") == steps_of("5", None, "x") == 5
    assert pf.mixing("1h", 0.4).in_steps(2400) == pf.MixingFamily(2, 0.4)
    with pytest.raises(pf.ParameterError, match="no time step is known"):
        steps_of("1h", None, "x")


@pytest.mark.parametrize(
    ("protect", "level"),
    [
        ("reading", Level(1)),
        ("participant", Level(None)),
        ("1d", Level(24)),
        (3, Level(3)),
        ("3", Level(3)),
    ],
)
def test_levels(protect, level):
    assert level_of(protect, "none", 3600) == level


@pytest.mark.parametrize("protect", ["day", "", "1h2", "record", 0, -1, None, "1.5"])
def test_what_is_no_level_is_refused(protect):
    with pytest.raises(pf.ParameterError, match="protect"):
        level_of(protect, "none", 3600)


def test_mixing_in_time_waits_for_the_step():
    with pytest.raises(pf.ParameterError, match="in_steps"):
        pf.leakage(pf.mixing("1h", 0.4), 100, 1.0)
    assert pf.leakage(pf.mixing("1h", 0.4).in_steps(60), 10**6, 1.0).scale == pytest.approx(349.528)
