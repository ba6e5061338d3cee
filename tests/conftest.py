"""Settings of all tests."""

import gc
import io
import os
import sys

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers
from xdist.scheduler import LoadGroupScheduling

# numpy is loaded later, by workers that share the cores
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
gc.set_threshold(50_000)  # the usual 700 costs a tenth of the time

_always = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("ci", derandomize=True, max_examples=60, **_always)
# with `-m long`, see helpers/cases.py
settings.register_profile("long", derandomize=True, max_examples=60, **_always)
# other cases than those of every run: HYPOTHESIS_PROFILE=random and --hypothesis-seed=7
settings.register_profile("random", derandomize=False, max_examples=60, **_always)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))
if settings().derandomize:
    # drawn, too, are constants of the modules loaded so far: others on every machine, by who runs
    # which test
    providers.is_local_module_file = lambda file: False


def pytest_collection_modifyitems(items):
    # the longest first: workers then end together
    items.sort(key=lambda item: "workflow" not in item.path.parts)


def pytest_xdist_make_scheduler(config, log):
    """One worker makes what the tests of a place share; marks of groups get lost in pytest 9."""
    places = "tests/workflow/", "tests/unit/test_sources.py"
    scheduler = LoadGroupScheduling(config, log)
    scheduler._split_scope = lambda test: next((p for p in places if test.startswith(p)), test)
    return scheduler


def pytest_collection_finish():
    gc.freeze()  # what is there from now on is never garbage


@pytest.fixture
def only_svg(monkeypatch):
    """Figures are saved in one format: for what is the same in all three."""
    from pufferflow.drawing import style

    monkeypatch.setattr(style, "METADATA", {"svg": style.METADATA["svg"]})


@pytest.fixture
def run(capsys, monkeypatch):
    """The command line in this process: arguments and input in; exit code, output, errors out."""

    def run_(*arguments, stdin=None):
        from pufferflow import cli

        if stdin is not None:
            monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin.encode())))
        code = cli.main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run_
