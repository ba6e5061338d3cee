"""One run at a time in a folder, and no lock that outlives its run."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from pufferflow.errors import ConfigError

_HELD: list[int] = []
"""Open for as long as this process lives: the kernel lets go of the lock when it ends, however it ends."""


def hold(folder: Path) -> None:
    """Keep other runs out of the folder ``.snakemake`` until this process ends, and take away a dead run's locks.

    Snakemake's own locks are files, which a killed run leaves. Every run passes here first, so while this one holds the
    folder no other is alive, and files in ``locks`` belong to none.

    Raises
    ------
    ConfigError
        Another run works there.
    """
    folder.mkdir(parents=True, exist_ok=True)
    lock = os.open(folder / "run.lock", os.O_RDWR | os.O_CREAT, 0o644)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        process = os.read(lock, 20).decode(errors="replace").strip()
        os.close(lock)
        raise ConfigError(
            f"another run (process {process}) works in {folder.parent}; wait until it ends, or stop it, and start again"
        ) from None
    _HELD.append(lock)
    os.ftruncate(lock, 0)
    os.write(lock, f"{os.getpid()}\n".encode())
    for left in (folder / "locks").glob("*.lock"):
        left.unlink(missing_ok=True)
