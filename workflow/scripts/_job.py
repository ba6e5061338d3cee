"""What all scripts share: one thread a library, checked inputs, and bad input as one sentence instead of a traceback."""

import os
import sys
import time
from contextlib import contextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # the package of this checkout, installed or not


@contextmanager
def job(snakemake):
    """Run a script's body; import numpy and the package inside it.

    Inputs are checked to be as another job made them, but for files that the user gives.
    """
    os.environ["NUMBA_NUM_THREADS"] = str(snakemake.threads)
    # more threads would sum in another order, and `--cores 2` give other last digits than `--cores 1`
    os.environ["OPENBLAS_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = os.environ["MKL_NUM_THREADS"] = "1"
    from pufferflow.errors import PufferflowError
    from pufferflow.studies.checksums import check, forget, record

    began = time.perf_counter()
    try:
        forget(snakemake.output)
        check([] if snakemake.params.get("given") else snakemake.input)
        yield
        record(snakemake.output)
    except PufferflowError as error:
        message, code = f"pufferflow: error: {error}", 2
        print(message, file=sys.stderr)
    else:
        message, code = f"finished in {time.perf_counter() - began:.2f} s", 0
    with open(snakemake.log[0], "w", encoding="utf-8") as log:
        log.write(message + "\n")
    if code:
        sys.exit(code)


def named(files):
    """Files by their names, one or several a name."""
    return dict(files.items())


def read_inputs(files, folder=None):
    """Tables (.csv) and samples (.json) by the names of the inputs; ``folder`` reads a folder."""
    from pufferflow.records.sample import load_sample
    from pufferflow.studies.tidy import read_table

    readers = {".csv": read_table, ".json": load_sample, "": folder}

    def read(path):
        return readers[Path(path).suffix](path)

    return {
        name: read(given) if isinstance(given, str) else [read(path) for path in given]
        for name, given in named(files).items()
    }
