"""What all scripts share: one thread a library, checked inputs, and bad input as one sentence instead of a traceback."""

import gc
import os
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # the package of this checkout, installed or not
gc.set_threshold(50_000)  # the usual 700 costs a tenth of the time of imports and drawings, which make little garbage


_DONE = []  # what the log says of the steps that are done


@contextmanager
def job(snakemake):
    """Run a script's body; import numpy and the package inside it.

    Inputs are checked to be as another job made them, but for files that the user gives.
    """
    os.environ["NUMBA_NUM_THREADS"] = str(snakemake.threads)
    # more threads would sum in another order, and `--cores 2` give other last digits than `--cores 1`
    os.environ["OPENBLAS_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = os.environ["MKL_NUM_THREADS"] = "1"
    if "numba" in sys.modules:  # it has read them
        sys.modules["numba"].config.reload_config()
    from pufferflow.errors import PufferflowError
    from pufferflow.studies.checksums import check, forget, record

    results = Path(snakemake.config["results_dir"])
    began = time.perf_counter()
    try:
        forget(snakemake.output, results)
        check([] if snakemake.params.get("given") else snakemake.input, results)
        yield
        record(snakemake.output, results)
    except PufferflowError as error:
        message, code = f"pufferflow: error: {error}", 2
        print(message, file=sys.stderr)
    else:
        times = f"{time.perf_counter() - began:.2f} s ({time.process_time():.2f} s of processor time)"
        message, code = "\n".join([*_DONE, f"finished in {times}"]), 0
    with open(snakemake.log[0], "w", encoding="utf-8") as log:
        log.write(message + "\n")
    gc.freeze()  # the end of an interpreter collects what is not frozen, three times: a fifth of a short job
    if code:
        sys.exit(code)


def steps(snakemake):
    """What the job is told to do, one after the other; wildcards in the names of files are filled in."""
    filled = dict(snakemake.wildcards)
    for told in snakemake.params.steps:
        step = SimpleNamespace(**told)
        step.inputs = {name: _filled(given, filled) for name, given in step.inputs.items()}
        step.outputs = {name: _filled(given, filled) for name, given in step.outputs.items()}
        began = time.perf_counter()
        yield step
        _DONE.append(f"{step.work}  {time.perf_counter() - began:.2f} s")
        _DONE.extend(f"    {name} = {_short(value)}" for name, value in step.settings.items())
        _DONE.extend(f"    -> {_made(path)}" for path in step.outputs.values())


def _short(value):
    text = str(value)
    return text if len(text) <= 500 else text[:499] + "…"


def _made(path):
    """A file with its rows or bytes, a folder with its files."""
    file = Path(path)
    if file.is_dir():
        return f"{path}: {sum(1 for _ in file.iterdir()):,} files"
    if file.suffix == ".csv":
        with file.open("rb") as stream:
            return f"{path}: {sum(1 for _ in stream) - 1:,} rows"
    return f"{path}: {file.stat().st_size:,} bytes"


def _filled(given, wildcards):
    return given.format(**wildcards) if isinstance(given, str) else [path.format(**wildcards) for path in given]


def read_inputs(files, folder=None):
    """Tables (.csv) and samples (.json) by the names of the inputs; ``folder`` reads a folder."""
    from pufferflow.records.sample import load_sample
    from pufferflow.studies.tidy import read_table

    readers = {".csv": read_table, ".json": load_sample, "": folder}

    def read(path):
        return readers[Path(path).suffix](path)

    return {
        name: read(given) if isinstance(given, str) else [read(path) for path in given] for name, given in files.items()
    }
