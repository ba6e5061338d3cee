"""The folder of a release: it appears whole or not at all; modes and times say nothing."""

import errno
import os
import signal
from functools import partial
from pathlib import Path

import pytest
from forks import ended
from made_releases import WEEK, made, means

from pufferflow.errors import DataError
from pufferflow.publish import files
from pufferflow.publish.files import draft

PUBLISHED = {name.removeprefix("publish/") for name in WEEK.files()}


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def save(release=WEEK, output="out"):
    with draft(output) as making:
        making.fill(made(means(size=1), seed=release.how.seed))  # tried out before it is paid for
        assert not Path(output).exists() or os.listdir(output) == []
        return making.write(release)


@pytest.mark.parametrize("umask", [0o000, 0o077])
@pytest.mark.parametrize(
    ("release", "inner", "folder", "file"),
    [(WEEK, "publish", 0o755, 0o644), (made(seed=3), "simulation", 0o700, 0o600)],
)
def test_modes_and_times(place, umask, release, inner, folder, file):
    before = os.umask(umask)
    try:
        out = place / "out"
        out.mkdir()  # an empty folder is free
        save(release)
    finally:
        os.umask(before)
    wanted = {out: 0o700, out / inner: folder} | dict.fromkeys(
        map(out.joinpath, release.files()), file
    )
    assert {path: path.stat().st_mode & 0o777 for path in (out, *out.rglob("*"))} == wanted
    assert all((out / name).read_text() == text for name, text in release.files().items())
    (moment,) = {path.stat().st_mtime_ns for path in wanted}
    assert moment % 10**9 == 0


@pytest.mark.parametrize("output", ["x" * 300, "/proc/x", "taken/x", "taken", "link", "full"])
def test_an_output_that_cannot_be(place, output):
    Path("taken").touch()
    Path("link").symlink_to("nowhere")
    Path("full/mine").mkdir(parents=True)
    before = sorted(place.rglob("*"))
    with pytest.raises((DataError, OSError), match=rf"too long|{output.partition('/')[0]}"):
        save(output=output)
    assert sorted(place.rglob("*")) == before


@pytest.mark.parametrize("at", range(2 * len(PUBLISHED)))
def test_a_full_disk_leaves_nothing(place, monkeypatch, at):
    real, room = files.write_atomic, iter(range(at))

    def full(path, text):
        if next(room, None) is None:
            raise OSError(errno.ENOSPC, "No space left on device", str(path))
        return real(path, text)

    monkeypatch.setattr(files, "write_atomic", full)
    with pytest.raises(OSError, match="No space left") as caught:
        save()
    assert caught.value.filename == "out"  # not the temporary folder
    assert os.listdir(place) == []


def test_a_place_that_is_taken_meanwhile_loses_nothing():
    with draft("out") as making:
        Path("out/mine").write_text("mine")
        with pytest.raises(DataError, match="the release is whole in out-") as caught:
            making.write(WEEK)
    assert set(os.listdir(f"{str(caught.value).rpartition(' ')[2]}/publish")) == PUBLISHED
    assert Path("out/mine").read_text() == "mine"


def test_of_several_that_want_one_name_one_gets_it(place):
    with draft("out"):
        with pytest.raises(DataError, match="out is being written by another process"):
            save()
        assert ended(save) == [1]
    assert os.listdir(place) == []
    assert sorted(ended(*[save] * 4)) == [0, 1, 1, 1]
    assert os.listdir(place) == ["out"]


def save_and_die(moment):
    """Save, and be killed before the given call that writes."""
    calls = []

    def counted(real, *words, **options):
        calls.append(real)
        if len(calls) == moment:
            os.kill(os.getpid(), signal.SIGKILL)
        return real(*words, **options)

    files.write_atomic, os.utime = (partial(counted, f) for f in (files.write_atomic, os.utime))
    for name in ("mkdir", "rename", "chmod", "rmdir"):
        real = getattr(Path, name)
        setattr(Path, name, lambda *words, real=real, **own: counted(real, *words, **own))
    save()


def test_killed_at_any_moment_there_is_nothing_or_all_and_what_is_left_is_private(place):
    moment = 0
    while ended(partial(save_and_die, moment := moment + 1)) == [-signal.SIGKILL]:
        out = place / "out"
        if found := {path.name for path in out.rglob("*")} if out.exists() else set():
            assert found == PUBLISHED | {"publish"}
            out.rename(place / f"made-{moment}")
        save()
        out.rename(place / f"again-{moment}")
        left = [path for path in place.iterdir() if path.name.startswith((".", "tmp"))]
        assert {path.stat().st_mode & 0o777 for path in left} <= {0o700}
    assert moment > 20
