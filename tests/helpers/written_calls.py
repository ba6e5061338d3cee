"""Calls that are written in text files, with the public names of all rooms."""

import numpy as np
import pandas as pd

import pufferflow as pf
from pufferflow import verify

ROOMS = (pf.audit, pf.mechanisms, pf.models, pf.networks)
NAMES = {name: getattr(room, name) for room in ROOMS for name in dir(room)}
NAMES |= {"np": np, "pd": pd, "pf": pf, "read_certificate": verify.read_certificate}


def called(text, names):
    """What a call gives, with the names of a test besides."""
    return eval(text, NAMES | names)
