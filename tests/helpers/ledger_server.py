"""Imported by the server of the processes of the ledger's tests, so that each starts with all it needs loaded."""

import tempfile
from pathlib import Path
from types import SimpleNamespace

import pufferflow as pf
from pufferflow._jit import compile_at_once
from pufferflow.ledger import Ledger
from tests.helpers.ledger_worker import CHAIN, LENGTH, work

compile_at_once()
scale = pf.mqm_exact(CHAIN, LENGTH, 0.1).scale
with tempfile.TemporaryDirectory() as folder:
    path = Ledger.create(Path(folder) / "l", 0.1).path
    for name in ("made", "refused"):
        work(path, scale, name, SimpleNamespace(put=lambda said: None))
