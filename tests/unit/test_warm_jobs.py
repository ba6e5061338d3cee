"""Scripts in forks of a warm process do what scripts in interpreters of their own do."""

import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import pytest
from snakemake.script import PythonScript

from pufferflow.studies import warm_jobs

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="forks are used on Linux alone")
ROOT = Path(__file__).parents[2]
NOTHING_AROUND = dict.fromkeys(("bench_record", "conda_env", "container_img", "env_modules", "shadow_dir"))


@pytest.fixture
def execute(monkeypatch):
    """What Snakemake calls with a script, in forks; what an interpreter would have been started with is printed."""

    def usual(_script, _command, **words):
        print("interpreter", words["fname"])
        return "usual"

    usual.__module__ = "snakemake.script"
    monkeypatch.setattr(PythonScript, "_execute_cmd", usual)
    warm_jobs.run_scripts_in_forks()

    def execute(path, py_exec=sys.executable, **around):
        script = SimpleNamespace(**NOTHING_AROUND | around)
        return PythonScript._execute_cmd(script, "{py_exec} {fname:q}", py_exec=py_exec, fname=str(path))

    return execute


def written(folder, text, name="script.py"):
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


SEES = """
import os, sys, signal
import beside
print(__name__, sys.argv, sys.path[0], os.getcwd(), os.environ["MINE"], beside.VALUE, repr(sys.stdin.read()))
print(signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGCHLD), "pufferflow" in sys.modules)
print("told", file=sys.stderr)
"""


def test_a_script_sees_what_an_interpreter_would_show_it(execute, tmp_path, monkeypatch, capfd):
    written(tmp_path, "VALUE = 7\n", "beside.py")
    script = written(tmp_path, SEES)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    monkeypatch.setenv("MINE", "ours")
    assert execute(script) is None
    forked = capfd.readouterr()
    subprocess.run([sys.executable, str(script)], check=True, stdin=subprocess.DEVNULL)
    started = capfd.readouterr()
    assert (forked.out, forked.err) == (started.out, started.err)
    assert "interpreter" not in forked.out


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("import sys\nsys.exit(2)\n", 2),
        ("raise SystemExit\n", 0),
        ("raise SystemExit('a sentence')\n", 1),
        ("1 / 0\n", 1),
        ("import os\nos._exit(5)\n", -signal.SIGKILL),
        ("import warnings\nwarnings.warn('old', DeprecationWarning)\n", 0),
        ("import os, signal\nos.kill(os.getpid(), signal.SIGKILL)\n", -signal.SIGKILL),
        ("import os, signal\nos.kill(os.getpid(), signal.SIGINT)\nimport time\ntime.sleep(9)\n", -signal.SIGINT),
    ],
)
def test_how_a_script_ends_is_told(execute, tmp_path, text, code, capfd):
    path = written(tmp_path, text)
    if code == 0:
        assert execute(path) is None
        return
    with pytest.raises(subprocess.CalledProcessError) as raised:
        execute(path)
    assert raised.value.returncode == code
    assert ("ZeroDivisionError" in capfd.readouterr().err) == ("1 / 0" in text)


def test_scripts_run_side_by_side_and_know_nothing_of_each_other(execute, tmp_path):
    count = "import sys\nassert not hasattr(sys, 'mark')\nsys.mark = 1\nopen(sys.argv[0] + '.done', 'w').close()\n"
    paths = [written(tmp_path, count, f"script{i}.py") for i in range(12)]
    with ThreadPoolExecutor(6) as threads:
        assert list(threads.map(execute, paths)) == [None] * 12
    assert len(list(tmp_path.glob("*.done"))) == 12


@pytest.mark.parametrize(
    "own", [{"py_exec": "python"}, {"conda_env": "environment"}, {"container_img": "image"}, {"bench_record": object()}]
)
def test_an_interpreter_of_its_own_is_kept(execute, tmp_path, own):
    assert execute(written(tmp_path, "raise SystemExit(3)\n"), **own) == "usual"


@pytest.mark.parametrize("seconds", [0, 0.5])
def test_without_a_server_scripts_get_interpreters(execute, tmp_path, monkeypatch, seconds):
    """One that has ended, or ends while it is asked."""
    monkeypatch.setattr(warm_jobs, "_started", [])
    monkeypatch.setattr(
        warm_jobs, "__file__", str(written(tmp_path, f"import time\ntime.sleep({seconds})\n", "end.py"))
    )
    warm_jobs.server()
    connection, process = warm_jobs._started[0]
    if not seconds:
        process.wait(60)
    assert execute(written(tmp_path, "raise SystemExit(3)\n")) == "usual"
    connection.close()
    process.wait(60)


def test_a_snakemake_that_does_this_otherwise_is_left_alone(monkeypatch):
    def other(_script, _command, **_words):
        return "other"

    monkeypatch.setattr(PythonScript, "_execute_cmd", other)
    warm_jobs.run_scripts_in_forks()
    assert PythonScript._execute_cmd is other


def test_the_server_ends_with_those_who_can_ask_it():
    text = "from pufferflow.studies import warm_jobs\nwarm_jobs.server()\n"
    asked = [sys.executable, "-c", text]
    # the server has the same output, so that its end is waited for
    subprocess.run(asked, capture_output=True, check=True, timeout=60, env=os.environ | {"PYTHONPATH": str(ROOT)})
