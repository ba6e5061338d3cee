"""What a function finds in a fork of this process, which keeps nothing of what it does there."""

import json
import os
import traceback


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
