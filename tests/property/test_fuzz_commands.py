"""Some runs of the fuzzer, always the same ones; longer runs are started by hand, see :mod:`fuzz_commands`."""

import subprocess
import sys
from pathlib import Path

import fuzz_commands
import pytest
from cases import counts


@pytest.mark.parametrize("runs", counts(12, 200))
def test_hostile_input(runs):
    """In a process of its own: what this one has loaded would count as the memory of every run."""
    script = Path(fuzz_commands.__file__)
    done = subprocess.run(
        [sys.executable, str(script), "--runs", str(runs), "--seed", "1"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{runs} runs, 0 failed" in done.stdout


def test_what_does_not_hold_is_seen():
    """The checks themselves: each complaint is made of a run that deserves it."""

    class Used:
        ru_utime, ru_stime, ru_maxrss = 1.0, 1.0, 1024

    def complaints(code=0, said=b"", changed=(), used=Used, **more):
        return fuzz_commands.complaints(code << 8, used, said, list(changed), **more)

    sentence = b"pufferflow: error: x\n"
    assert complaints() == complaints(2, sentence) == complaints(0, changed=["out"]) == complaints(141) == []
    assert complaints(1)
    assert complaints(2)
    assert complaints(2, sentence * 2)
    warned, stated = b"x.py:1: RuntimeWarning: y\n", b"Protects a record\n"
    assert complaints(0, stated)
    assert not complaints(0, stated, states=True)
    assert complaints(0, warned)
    assert complaints(0, warned, states=True)
    assert complaints(2, sentence + b"Traceback (most recent call last):\n")
    assert complaints(2, sentence, ["out"])
    assert complaints(0, changed=[".out.x"])
    assert fuzz_commands.complaints(9, Used, b"", [])
    assert complaints(used=type("Slow", (Used,), {"ru_utime": 91.0}))
    assert complaints(used=type("Large", (Used,), {"ru_maxrss": 2**21}))
