"""Scripts of jobs in forks of one process that has loaded what they need: their start takes a tenth of the time.

To start an interpreter and import its libraries takes as long as what most jobs do. So where Snakemake would start this
interpreter with a script, a server is asked for a fork of itself: one process, which begins and ends with the run. A
script finds all as ever, its folder, its environment and where its output goes, and nothing of this project is loaded
before it. Jobs with an interpreter of their own (of a Conda environment, a container or a cluster) keep it, as all do
on other systems than Linux, where numerical libraries need not survive a fork.

The server runs this file, and no other one of the package.
"""

from __future__ import annotations

import gc
import json
import os
import runpy
import signal
import socket
import subprocess
import sys
import threading
import traceback
import warnings
from contextlib import suppress
from importlib import import_module
from io import BytesIO
from pathlib import Path
from typing import Any, NoReturn

LIBRARIES = (
    *("matplotlib.backends.backend_agg", "matplotlib.backends.backend_pdf", "matplotlib.backends.backend_svg"),
    *("matplotlib.figure", "matplotlib.style", "numba", "pandas", "scipy.linalg", "scipy.optimize", "scipy.special"),
    *("scipy.sparse.csgraph", "scipy.sparse.linalg", "jinja2", "snakemake.script", "tabulate", "tqdm", "yaml"),
)
"""What jobs import of others; more does no harm, and what is missing here a job imports itself."""

ONE_THREAD = dict.fromkeys(("MKL_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
"""As ``workflow/scripts/_job.py`` asks of libraries, which read it when they are loaded."""

_starting = threading.Lock()
_started: list[tuple[socket.socket, subprocess.Popen[bytes]]] = []


def run_scripts_in_forks() -> None:
    """From now on Snakemake asks for a fork where it would start this interpreter with a script.

    It has no setting for this, so one of its methods is replaced; where that is not as it was, nothing is. The server
    loads its libraries while Snakemake finds out which jobs there are.
    """
    from snakemake.script import PythonScript

    usual: Any = getattr(PythonScript, "_execute_cmd", None)
    if sys.platform != "linux" or getattr(usual, "__module__", "") != "snakemake.script":
        return

    def execute(script: Any, command: str, **words: Any) -> Any:
        around = ("bench_record", "conda_env", "container_img", "env_modules", "shadow_dir")
        if words.get("py_exec") != sys.executable or any(getattr(script, name, True) for name in around):
            return usual(script, command, **words)
        try:
            code = _exit_code(words["fname"])
        except OSError:  # no server, or no fork
            return usual(script, command, **words)
        if code:
            raise subprocess.CalledProcessError(code, [sys.executable, words["fname"]])
        return None

    PythonScript._execute_cmd = execute
    with suppress(OSError):
        server()


def server() -> socket.socket:
    """Return where to ask for forks, of a server that is started on the first call; it ends with this process."""
    with _starting:
        if not _started:
            ours, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            with its:
                command, environment = [sys.executable, "-P", __file__], os.environ | ONE_THREAD
                process = subprocess.Popen(command, stdin=its.fileno(), env=environment)
            _started.append((ours, process))
        return _started[0][0]


def _exit_code(script: str) -> int:
    """Exit code of a script; that of a killed process where it gave none."""
    here, there = socket.socketpair()
    with here:
        with there:
            socket.send_fds(server(), [b"fork"], [there.fileno(), 1, 2])
        here.sendall(json.dumps([script, os.getcwd(), dict(os.environ)]).encode())
        here.shutdown(socket.SHUT_WR)
        told = here.makefile().read()
    if not told:
        raise ConnectionError(f"{script} was not begun")
    return int(told.strip() or -signal.SIGKILL)


def _serve(asked: socket.socket) -> None:
    """Fork for each that asks, until nobody can ask any more."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for them
    usual = signal.signal(signal.SIGINT, signal.SIG_IGN)  # what runs is told, too
    _load()
    while (told := socket.recv_fds(asked, 4, 3))[0]:
        answer, *outputs = told[1]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of a thread of pyarrow's, which expects forks
            child = os.fork()
        if child == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            signal.signal(signal.SIGINT, usual)
            asked.close()
            for stream, output in enumerate(outputs, 1):
                os.dup2(output, stream)
            _run(socket.socket(fileno=answer))
        for file in told[1]:
            os.close(file)


def _run(connection: socket.socket) -> NoReturn:
    """What an interpreter does with a script, and no more at its end than to say how it went."""
    connection.sendall(b" ")  # it has begun
    script, folder, environment = json.load(connection.makefile())
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv = [script]
    sys.path[:0] = [str(Path(script).parent), *filter(None, environment.get("PYTHONPATH", "").split(os.pathsep))]
    code = 0
    try:
        runpy.run_path(script, run_name="__main__")
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except KeyboardInterrupt:
        code = -signal.SIGINT
    except BaseException:
        traceback.print_exc()
        code = 1
    sys.stdout.flush()
    sys.stderr.flush()
    connection.sendall(str(code).encode())
    os._exit(code)


def _load() -> None:
    """Import libraries, and have done what they put off until they are used; of what fails a job says more."""
    for library in LIBRARIES:
        with suppress(Exception):
            import_module(library)
    with suppress(Exception):
        sys.modules["numba"].njit(lambda x: x)(0.0)  # it sets itself up for its first function
    with suppress(Exception):
        from matplotlib.figure import Figure

        figure = Figure()
        figure.text(0, 0, "$0$")
        for suffix in ("pdf", "png", "svg"):
            figure.savefig(BytesIO(), format=suffix)
    gc.freeze()  # so that forks share it


if __name__ == "__main__":
    _serve(socket.socket(fileno=os.dup(0)))
