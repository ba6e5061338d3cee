"""The frame of every script: threads, a log, and errors as one sentence."""

import gc
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def job(snakemake: Any) -> Iterator[tuple[Any, Any, Any]]:
    """Run a script's work and yield its input, output and params; import libraries inside.

    Bad input ends the job with one sentence on the terminal and in the log, and exit code 2.
    """
    os.environ["NUMBA_NUM_THREADS"] = str(snakemake.threads)
    # With more threads BLAS sums in another order, and the last digits depend on the machine.
    for library in ("OPENBLAS", "OMP", "MKL"):
        os.environ[f"{library}_NUM_THREADS"] = "1"
    gc.set_threshold(50_000)  # the usual 700 costs a tenth of the time of imports and drawing
    from pufferflow._util.files import write_atomic
    from pufferflow.errors import PufferflowError

    began = time.perf_counter()
    try:
        yield snakemake.input, snakemake.output, snakemake.params
    except PufferflowError as error:
        sentence = f"pufferflow: error: {error}"
        print(sentence, file=sys.stderr)
        write_atomic(snakemake.log[0], sentence + "\n")
        sys.exit(2)
    seconds = f"{time.perf_counter() - began:.2f} s, {time.process_time():.2f} s of processor time"
    write_atomic(snakemake.log[0], f"finished in {seconds}\n")
    gc.freeze()  # or the interpreter collects everything before it ends
