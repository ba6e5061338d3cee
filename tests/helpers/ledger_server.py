"""Imported by the server of the processes of the ledger's tests: each starts with all it needs."""

import tempfile
from pathlib import Path
from types import SimpleNamespace

from tests.helpers.ledger_worker import work

with tempfile.TemporaryDirectory() as folder:
    for name in map(str, range(6)):
        work(Path(folder) / "l", name, SimpleNamespace(put=lambda said: None))
