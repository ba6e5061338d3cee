"""Snakemake in forks of a process that has imported it and what the Snakefile needs; nothing of the project itself.

A start costs half as much as that of an interpreter. The run is the same: its own process, folder and environment.
"""

import atexit
import json
import os
import subprocess
import sys
import tempfile
from functools import cache
from importlib import import_module
from pathlib import Path

LOADED = ("docutils.core", "jinja2", "jsonschema", "numba", "pandas", "requests", "smart_open", "tqdm", "yte")


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


def _serve() -> None:
    """Answer each line of the input, which asks for a run, by its exit code."""
    import snakemake.cli

    for name in LOADED:
        import_module(name)
    assert "pufferflow" not in sys.modules
    for line in sys.stdin:
        asked = json.loads(line)
        if (child := os.fork()) == 0:
            output = os.open(asked["output"], os.O_WRONLY)
            for stream in (1, 2):
                os.dup2(output, stream)
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            os.setsid()
            os.chdir(asked["folder"])
            os.environ.update(asked["environment"])
            sys.path.insert(0, asked["folder"])
            sys.argv = ["snakemake", *asked["words"]]
            snakemake.cli.main()
            os._exit(1)  # it never returns
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)


if __name__ == "__main__":
    _serve()
