"""Options that functions share: one list each, which callers, type checkers and help see."""

import ast
import inspect
from dataclasses import fields
from pathlib import Path

import pytest
from source_trees import tree

import pufferflow as pf
from pufferflow._protection import Protection, ProtectionOptions
from pufferflow.publishing.planning import error_curves
from pufferflow.publishing.request import ReleaseRequest, StatisticsOptions
from pufferflow.publishing.statistics import StatisticOptions

ROOT = Path(__file__).parents[2]
MOST = 8
TAKING = [
    *(pf.release_histogram, pf.release_statistics, pf.rehearse_release, pf.simulate_release, pf.plan_release),
    *(error_curves, pf.Ledger.reserve, pf.fit_records, pf.fit_privately, pf.certify),
]


def parameters(function):
    """Of a definition, without what a method is called on."""
    names = function.args
    every = [*names.posonlyargs, *names.args, *names.kwonlyargs, *filter(None, (names.vararg, names.kwarg))]
    return [name.arg for name in every if name.arg not in ("self", "cls")]


@pytest.mark.xdist_group("sources")
def test_no_function_has_more_than_eight_parameters():
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
    options = [p for p in shown.values() if p.name not in inspect.signature(function.__wrapped__).parameters]
    assert options
    for option in options:
        assert option.kind is option.KEYWORD_ONLY
        assert f"\n{option.name} : " in inspect.getdoc(function)
    assert "{" not in inspect.getdoc(function).replace('{"', "")


def test_defaults_are_those_of_what_is_asked_for():
    for function in (pf.release_histogram, pf.release_statistics, pf.rehearse_release, pf.simulate_release):
        shown = inspect.signature(function).parameters
        for field in fields(ReleaseRequest):
            if field.name in shown and field.name not in ("source", "model", "epsilon", "statistics", "ledger"):
                assert shown[field.name].default == field.default
    assert inspect.signature(pf.release_histogram).parameters["ledger"].default is inspect.Parameter.empty


def test_records_name_the_fields_of_what_is_made_of_them():
    asked = {field.name for field in fields(ReleaseRequest)} - {"source", "model", "epsilon", "statistics"}
    assert StatisticsOptions.__annotations__.keys() - StatisticOptions.__annotations__.keys() == asked
    assert ProtectionOptions.__annotations__.keys() == {field.name for field in fields(Protection)}


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"ledger": None, "windw": 2}, "unknown option 'windw' of release_histogram; window may be meant"),
        ({"ledger": None, "zzz": 2}, "unknown option 'zzz' of release_histogram; there are source, model, epsilon, "),
        ({}, "release_histogram needs ledger; give it (Ledger, path or None)"),
    ],
)
def test_options_that_are_none_or_missing_are_refused_in_one_sentence(options, said):
    with pytest.raises(pf.ParameterError) as refused:
        pf.release_histogram("data.csv", "model.json", 1.0, **options)
    assert str(refused.value).startswith(said)
