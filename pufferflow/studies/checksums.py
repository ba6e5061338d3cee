"""Checksums of what the jobs of a run made, so that no later job uses a damaged file in silence.

Each file or folder has its own in ``results/checksums``, which ``sha256sum --check`` reads too. That of a table also
says how many rows it has. Whoever wants to deceive can write both; this is about accidents.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path

from pufferflow._files import write_atomic
from pufferflow.errors import DataError

RESULTS = Path("results")


def record(paths: Iterable[str | Path], results: Path = RESULTS) -> None:
    """Write the checksums of files and folders inside ``results``."""
    for path in map(Path, paths):
        write_atomic(_place(path, results), _checksum(path, results))


def forget(paths: Iterable[str | Path], results: Path = RESULTS) -> None:
    """Remove the checksums of what is about to be made anew."""
    for path in map(Path, paths):
        _place(path, results).unlink(missing_ok=True)


def check(paths: Iterable[str | Path], results: Path = RESULTS) -> None:
    """Check files and folders inside ``results`` against their checksums.

    Raises
    ------
    DataError
        One has changed since :func:`record`, or has no checksum.
    """
    for path in map(Path, paths):
        try:
            recorded = _place(path, results).read_text(encoding="utf-8", errors="replace")
        except FileNotFoundError:
            raise DataError(
                f"{path} has no checksum in {_place(path, results)}; delete {path} and run snakemake again"
            ) from None
        try:
            now = _checksum(path, results)
        except OSError as error:
            raise DataError(f"{path} cannot be read ({error.strerror}); run snakemake again") from error
        if now != recorded:
            raise DataError(
                f"{path} is not as the run made it ({_difference(now, recorded)}); delete it and run snakemake again"
            )


def missing_files(folder: Path, results: Path = RESULTS) -> list[str]:
    """Files that a finished folder had when it was made and has no more; Snakemake itself looks at the folder only.

    One that is deleted as a whole, or just being made, lacks Snakemake's mark of a finished one and misses none.
    """
    if not (folder / ".snakemake_timestamp").exists():
        return []
    try:
        recorded = _place(folder, results).read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return []
    names = filter(None, (line.partition("  ")[2] for line in recorded.splitlines()))
    return [name for name in names if not (results.parent / name).is_file()]


def _place(path: Path, results: Path) -> Path:
    inside = path.relative_to(results)
    return results / "checksums" / inside.with_name(f"{inside.name}.sha256")


def _checksum(path: Path, results: Path) -> str:
    """One line a file, a line with the number of rows before that of a table."""
    files = sorted(file for file in path.rglob("*") if not file.name.startswith(".")) if path.is_dir() else [path]
    return "".join(_lines(file, file.relative_to(results.parent).as_posix()) for file in files)


def _lines(file: Path, name: str) -> str:
    rows, digest = -1, hashlib.sha256()  # the head is no row
    with file.open("rb") as stream:
        while block := stream.read(2**20):
            rows += block.count(b"\n")
            digest.update(block)
    return (f"# {rows} rows\n" if file.suffix == ".csv" else "") + f"{digest.hexdigest()}  {name}\n"


def _difference(now_read: str, recorded: str) -> str:
    now, before = (text.partition(" rows\n")[0].removeprefix("# ") for text in (now_read, recorded))
    return f"{now} rows, not {before}" if now.isdigit() and before.isdigit() and now != before else "other bytes"
