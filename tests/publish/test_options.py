"""Names and values of options that are refused; times have units."""

import pytest

import pufferflow as pf
from pufferflow._protection import Level, level_of
from pufferflow._units import seconds_of, steps_of, text_of


def refused(call, said):
    with pytest.raises(pf.ParameterError) as caught:
        call()
    assert said in str(caught.value)


def test_what_is_no_option_no_time_and_no_level_is_refused():
    refused(lambda: pf.release("d", "m", protct="1h"), "'protct' of release; protect may be meant")
    refused(lambda: pf.release("d", "m", zzz=2), "of release; there are source, theta, epsilon, ")
    refused(lambda: steps_of("1h", None, "x"), "no time step is known")
    for bad in ("", "h", "-1h", "0h", "1 y", "1e3s", "½h", "9" * 5000, None, True, 0, 1.5):
        refused(lambda bad=bad: seconds_of(bad, "step"), "step is ")
    for bad in ("day", "", "1h2", "record", 0, -1, None, "1.5"):
        refused(lambda bad=bad: level_of(bad, "none", 3600), "protect is ")


def test_times_and_levels():
    """More steps for a window hide more; more steps for mixing assume less: they are rounded up."""
    times = {"90s": 90, "30min": 1800, "1.5h": 5400, "7d": 604_800, 60: 60, "60": 60}
    for text, seconds in times.items():
        assert seconds_of(text, "step") == seconds == seconds_of(text_of(seconds), "step")
    for step, steps in ((2400, 2), (3600, 1), (86_400, 1)):
        assert steps_of("1h", step, "x") == steps
        assert pf.mixing("1h", 0.4).in_steps(step) == pf.MixingFamily(steps, 0.4)
    for protect, window in {"reading": 1, "participant": None, "1d": 24, "3": 3}.items():
        level = level_of(protect, "none", 3600)
        assert level == Level(window) == level_of(level.words(3600), "none", 3600)
