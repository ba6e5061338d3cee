"""Settings of all tests."""

import io
import os
import random
import shutil
import sys
import time

import pytest
from hypothesis import HealthCheck, settings

_always = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("ci", derandomize=True, max_examples=60, **_always)
settings.register_profile("long", derandomize=True, max_examples=60, **_always)  # with `-m long`, see helpers/cases.py
# other cases than those of every run: HYPOTHESIS_PROFILE=random and --hypothesis-seed=7
settings.register_profile("random", derandomize=False, max_examples=60, **_always)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))


UNTIL = float(os.environ.get("TESTS_UNTIL", "inf"))
"""No test begins later, in seconds since 1970: continuous integration takes what it has time for."""


def pytest_collection_modifyitems(items):
    if float("inf") > UNTIL:  # others every time
        random.Random(UNTIL).shuffle(items)
        return
    # the longest first, and before them the one that waits: workers then end together
    items.sort(key=lambda item: (item.path.name != "test_slurm.py", "workflow" not in item.path.parts))


def pytest_runtest_setup(item):
    if time.time() > UNTIL:
        pytest.skip("no time is left")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers():
    """One more than cores where SLURM is tested: most of that is waiting."""
    if shutil.which("slurmctld") and "PYTEST_XDIST_AUTO_NUM_WORKERS" not in os.environ:
        return len(os.sched_getaffinity(0)) + 1
    return None


@pytest.fixture
def only_svg(monkeypatch):
    """Figures are saved in one format: for what is the same in all three."""
    from pufferflow.reporting import style

    monkeypatch.setattr(style, "METADATA", {"svg": style.METADATA["svg"]})


@pytest.fixture
def scales_once(monkeypatch):
    """No scale is worked out twice: for tests of what is done with scales."""
    from scales_once import work_out_once

    work_out_once(monkeypatch)


@pytest.fixture
def run(capsys, monkeypatch):
    """The command line in this process: arguments and input in; exit code, output and errors out."""

    def run_(*arguments, stdin=None):
        from pufferflow import cli

        if stdin is not None:
            monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin.encode())))
        code = cli.main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run_
