"""Functions in forks of this process, which keeps nothing of what they do there."""

import json
import multiprocessing
import os
import sys
import traceback

SERVER = multiprocessing.get_context("forkserver")
"""Forks a process that has loaded Snakemake, which takes two seconds."""
SERVER.set_forkserver_preload(["snakemake.cli"])


def in_a_fork(find):
    """Return what ``find`` returns in a fork, through JSON; it fails if that ends before."""
    out, into = os.pipe()
    if child := os.fork():
        os.close(into)
        with open(out) as pipe:
            told = pipe.read()
        os.waitpid(child, 0)
        return json.loads(told)
    try:
        with open(into, "w") as pipe:
            json.dump(find(), pipe)
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(0)


def ended(*work):
    """Run functions at once, each in a fork; return their exit codes, negative of those killed."""
    children = []
    for one in work:
        if child := os.fork():
            children.append(child)
            continue
        try:
            one()
            os._exit(0)
        finally:
            os._exit(1)
    return [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]


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
