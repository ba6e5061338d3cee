"""Names of files and options that are no Unicode text: POSIX allows any bytes."""

import json
import os
from pathlib import Path

import pytest

import pufferflow as pf

NO_TEXT = os.fsdecode(b"a\xff")


@pytest.fixture(autouse=True)
def table(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = "".join(f"2021-06-01T00:{i:02d},{'sit' if i // 4 % 2 else 'walk'}\n" for i in range(60))
    (tmp_path / NO_TEXT).write_text("time,value\n" + rows)


def test_a_file_whose_name_is_no_text_is_fitted():
    pf.fit_records(NO_TEXT).sample.save("sample.json")
    assert json.loads(Path("sample.json").read_text(encoding="utf-8"))["dataset"] == "a\\udcff"


@pytest.mark.parametrize(
    "option", ["decimal", "thousands", "separator", "time", "value", "participant", "group", "timezone", "time-format"]
)
def test_options_that_are_no_text_are_refused(run, option):
    code, _, err = run("fit", NO_TEXT, f"--{option}", "\udcff")
    assert code == 2
    assert err.startswith(f"pufferflow: error: {option.replace('-', '_')} '\\udcff' is no Unicode text")
    assert os.listdir() == [NO_TEXT]
