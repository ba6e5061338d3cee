"""Functions in forks of this process, which keeps nothing of what they do there."""

import multiprocessing
import os
import sys

FORKS, SERVER = (multiprocessing.get_context(name) for name in ("fork", "forkserver"))
SERVER.set_forkserver_preload(["snakemake.cli"])  # it forks what took two seconds to load


def in_a_fork(find):
    """Return what ``find`` returns in a fork; it fails if that ends before."""
    out, into = FORKS.Pipe(duplex=False)
    child = FORKS.Process(target=lambda: into.send(find()))
    child.start()
    into.close()
    found = out.recv()
    child.join()
    return found


def ended(*work):
    """Run functions at once, each in a fork; return their exit codes, negative of those killed."""
    children = [FORKS.Process(target=one) for one in work]
    for child in children:
        child.start()
    for child in children:
        child.join()
    return [child.exitcode for child in children]


def snakemake(folder, words):
    """Run Snakemake in a folder; what it prints is in the file ``printed`` there."""
    from snakemake.cli import main

    os.chdir(folder)
    sys.path[:0] = [str(folder), str(folder / "workflow")]
    os.environ.update(PYTHONPATH=str(folder), PYTHONDONTWRITEBYTECODE="1")
    with open("printed", "w") as printed:
        os.dup2(printed.fileno(), 1)
        os.dup2(printed.fileno(), 2)
    main(words)
