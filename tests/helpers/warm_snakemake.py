"""Snakemake, and its jobs, in forks of processes that have imported what they need; nothing of the project itself.

A start costs half as much as that of an interpreter, a job a third. The run is the same: its own processes, folder and
environment. Runs that are started as users do (those that are killed, SLURM's, that of ``.ci/run``) use none of this.
"""

import ast
import atexit
import gc
import json
import os
import runpy
import select
import shutil
import socket
import subprocess
import sys
import tempfile
import traceback
from functools import cache
from importlib import import_module
from pathlib import Path

LOADED = (
    *("docutils.core", "jinja2", "jsonschema", "requests", "smart_open", "tqdm", "yte"),
    *("matplotlib.backends.backend_pdf", "matplotlib.backends.backend_svg", "matplotlib.figure", "numba", "pandas"),
    *("scipy.optimize", "scipy.sparse", "scipy.stats", "snakemake.script", "tabulate"),
)


@cache
def _server() -> subprocess.Popen:
    server = subprocess.Popen(
        [sys.executable, "-P", __file__],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONDONTWRITEBYTECODE": "1"},
    )
    atexit.register(server.communicate)  # the end of its input ends it
    return server


def run_snakemake(folder: Path, words: list[str], environment: dict[str, str]) -> tuple[int, str]:
    """Exit code and all output of ``snakemake`` with these words in a folder."""
    with tempfile.NamedTemporaryFile() as output:
        asked = {"folder": str(folder), "words": words, "environment": environment, "output": output.name}
        server = _server()
        print(json.dumps(asked), file=server.stdin, flush=True)
        code = int(server.stdout.readline())
        return code, Path(output.name).read_text(encoding="utf-8")


def _load(names: tuple[str, ...]) -> None:
    for name in names:
        import_module(name)
    assert "pufferflow" not in sys.modules


def _enter(folder: str, environment: dict[str, str]) -> None:
    """Be in a folder as a process that was started there."""
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    sys.path.insert(0, environment["PYTHONPATH"])


def _serve(jobs: str) -> None:
    """Answer each line of the input, which asks for a run, by its exit code."""
    import snakemake.cli

    snakemake.cli.get_argument_parser()  # finds the plugins
    _parse_sources()
    gc.freeze()
    for line in sys.stdin:
        asked = json.loads(line)
        if (child := os.fork()) == 0:
            output = os.open(asked["output"], os.O_WRONLY)
            for stream in (1, 2):
                os.dup2(output, stream)
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            os.setsid()
            _enter(asked["folder"], asked["environment"])
            _hand_scripts_to(jobs)
            sys.argv = ["snakemake", *asked["words"]]
            snakemake.cli.main()
            os._exit(1)  # it never returns
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)


def _parse_sources() -> None:
    """The syntax trees that each run makes of the package; what a test edits is parsed then."""
    parse, sources = ast.parse, Path(__file__).parents[2]
    texts = (path.read_text(encoding="utf-8") for path in (sources / "pufferflow").rglob("*.py"))
    trees = {text: parse(text) for text in texts}
    ast.parse = lambda text, *how, **more: (not (how or more) and trees.get(text)) or parse(text, *how, **more)


# -- jobs ---------------------------------------------------------------------------------------------------


def _hand_scripts_to(jobs: str) -> None:
    """Have Snakemake ask for a fork where it would start an interpreter with a script."""
    from snakemake.script import PythonScript

    as_usual = PythonScript._execute_cmd

    def execute(self, command, **words):
        if not words.get("is_python_script"):
            return as_usual(self, command, **words)
        with socket.socket(socket.AF_UNIX) as server:
            server.connect(jobs)
            asked = {"folder": os.getcwd(), "environment": dict(os.environ), "script": words["fname"]}
            sys.stdout.flush()
            socket.send_fds(server, [json.dumps(asked).encode()], [1, 2])
            server.shutdown(socket.SHUT_WR)
            answer = server.makefile().readline()  # nothing where the job was killed
        if answer != "0\n":
            raise subprocess.CalledProcessError(int(answer or -9), [words["py_exec"], words["fname"]])

    PythonScript._execute_cmd = execute


def _serve_jobs(listening: socket.socket, parent: int) -> None:
    """Answer each connection, which names a script, by its exit code, until the parent has gone."""
    children = 0
    while parent not in select.select([listening, parent], [], [])[0]:
        connection, _ = listening.accept()
        with connection:
            if os.fork() == 0:
                _run_job(connection)
        children += 1
        while children and os.waitpid(-1, os.WNOHANG)[0]:
            children -= 1


def _run_job(connection: socket.socket) -> None:
    """What an interpreter does with a script."""
    text, outputs, _, _ = socket.recv_fds(connection, 2**20, 2)
    while more := connection.recv(2**20):
        text += more
    asked = json.loads(text)
    for stream, output in zip((1, 2), outputs, strict=True):
        os.dup2(output, stream)
    _enter(asked["folder"], asked["environment"])
    sys.argv = [asked["script"]]
    code = 0
    try:
        runpy.run_path(asked["script"], run_name="__main__")
    except SystemExit as end:
        code = end.code or 0
    except BaseException:
        traceback.print_exc()
        code = 1
    sys.stdout.flush()
    sys.stderr.flush()
    connection.sendall(f"{code}\n".encode())
    os._exit(code)


def _main() -> None:
    folder = tempfile.mkdtemp()
    os.environ.update(dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1"))  # as _job.py
    _load(LOADED)
    gc.freeze()
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(address := f"{folder}/jobs")
        listening.listen()
        parent, ours = os.pipe()
        if (jobs := os.fork()) == 0:
            os.close(ours)
            _serve_jobs(listening, parent)
            os._exit(0)
        os.close(parent)
        _serve(address)
        os.close(ours)
        os.waitpid(jobs, 0)
    shutil.rmtree(folder)


if __name__ == "__main__":
    _main()
