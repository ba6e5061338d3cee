"""Snakemake in forks of a process that has imported what it needs; nothing of the project itself.

A start costs half as much as that of an interpreter, and all runs share one server of their jobs. A run is the same:
its own processes, folder and environment. Runs that are started as users do (those that are killed, SLURM's, that of
``.ci/run``) use none of this.
"""

import ast
import atexit
import gc
import json
import os
import subprocess
import sys
import tempfile
from functools import cache
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

LOADED = ("docutils.core", "jinja2", "jsonschema", "requests", "smart_open", "snakemake.script", "tqdm", "yte")
SOURCES = Path(__file__).parents[2] / "pufferflow"


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


def _warm_jobs() -> ModuleType:
    """The project's own server of jobs, without the package it is of."""
    path = SOURCES / "studies/warm_jobs.py"
    spec = spec_from_file_location(path.stem, path)
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _enter(folder: str, environment: dict[str, str]) -> None:
    """Be in a folder as a process that was started there."""
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    sys.path.insert(0, environment["PYTHONPATH"])


def _serve() -> None:
    """Answer each line of the input, which asks for a run, by its exit code."""
    import snakemake.cli

    snakemake.cli.get_argument_parser()  # finds the plugins
    _parse_sources()
    jobs = _warm_jobs()
    jobs.server()
    assert "pufferflow" not in sys.modules
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
            jobs.run_scripts_in_forks()
            sys.argv = ["snakemake", *asked["words"]]
            snakemake.cli.main()
            os._exit(1)  # it never returns
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)


def _parse_sources() -> None:
    """The syntax trees that each run makes of the package; what a test edits is parsed then."""
    parse = ast.parse
    texts = (path.read_text(encoding="utf-8") for path in SOURCES.rglob("*.py"))
    trees = {text: parse(text) for text in texts}
    ast.parse = lambda text, *how, **more: (not (how or more) and trees.get(text)) or parse(text, *how, **more)


if __name__ == "__main__":
    for name in LOADED:
        import_module(name)
    _serve()
