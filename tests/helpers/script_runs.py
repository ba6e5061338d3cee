"""Run a script of the workflow in this process, as its rule would."""

import os
import runpy
from pathlib import Path
from types import SimpleNamespace

import numba

SCRIPTS = Path(__file__).parents[2] / "workflow" / "scripts"


class Named(dict):
    """Input, output or params of a rule: by name, by number, and as a list of all."""

    __getattr__ = dict.__getitem__

    def __getitem__(self, key):
        return list(self.values())[key] if isinstance(key, int) else super().__getitem__(key)

    def __iter__(self):
        return iter(self.values())


def run_script(name, input, output, **params):
    """Run ``workflow/scripts/<name>.py``; ``input`` and ``output`` are paths by name."""
    given, made = (Named({key: _text(path) for key, path in of.items()}) for of in (input, output))
    log = str(Path(made[0]).with_suffix(".log"))
    threads, before = numba.config.NUMBA_NUM_THREADS, dict(os.environ)
    snakemake = SimpleNamespace(
        input=given, output=made, params=Named(params), threads=threads, log=[log]
    )
    try:
        runpy.run_path(str(SCRIPTS / f"{name}.py"), init_globals={"snakemake": snakemake})
    finally:
        os.environ.clear()
        os.environ.update(before)


def _text(path):
    return [str(one) for one in path] if isinstance(path, list) else str(path)
