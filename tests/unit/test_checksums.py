import json
import subprocess
from pathlib import Path

import pytest

from pufferflow.errors import DataError
from pufferflow.studies.checksums import check, forget, missing_files, record
from pufferflow.studies.summary import summary


@pytest.fixture
def made(tmp_path, monkeypatch):
    """Results of two jobs, a table and a folder of chains."""
    monkeypatch.chdir(tmp_path)
    table, chains = Path("results/errors/synthetic.csv"), Path("results/chains/mine")
    for folder in (table.parent, chains):
        folder.mkdir(parents=True)
    table.write_text("alpha,error\n" + "".join(f"0.{i},{i}\n" for i in range(1, 9)), encoding="utf-8")
    for group in ("old", "young"):
        (chains / f"{group}.json").write_text(json.dumps({"chains": [group]}), encoding="utf-8")
    (chains / ".snakemake_timestamp").touch()
    record([table, chains])
    check([table, chains])
    return table, chains


def test_half_a_table_is_refused_with_its_rows(made):
    table, _ = made
    lines = table.read_text(encoding="utf-8").splitlines(keepends=True)
    table.write_text("".join(lines[:5]), encoding="utf-8")
    sentence = r"synthetic\.csv is not as the run made it \(4 rows, not 8\); delete it and run snakemake again$"
    with pytest.raises(DataError, match=sentence):
        check([table])


@pytest.mark.parametrize("position", [0, 20, -1])
def test_one_changed_byte_is_refused(made, position):
    table, _ = made
    content = bytearray(table.read_bytes())
    content[position] ^= 1
    table.write_bytes(content)
    with pytest.raises(DataError, match=r"synthetic\.csv is not as the run made it"):
        check([table])


def test_an_edited_file_of_a_folder_is_refused(made):
    _, chains = made
    (chains / "old.json").write_text('{"chains": ["new"]}', encoding="utf-8")
    with pytest.raises(DataError, match="mine is not as the run made it"):
        check([chains])


def test_a_further_file_of_a_folder_is_refused(made):
    _, chains = made
    (chains / "new.json").write_text("{}", encoding="utf-8")
    with pytest.raises(DataError, match="mine is not as the run made it"):
        check([chains])


def test_a_missing_file_of_a_folder_is_named(made):
    _, chains = made
    assert missing_files(chains) == []
    (chains / "old.json").unlink()
    assert missing_files(chains) == ["results/chains/mine/old.json"]
    with pytest.raises(DataError, match="mine is not as the run made it"):
        check([chains])


def test_a_folder_that_is_deleted_or_made_anew_misses_nothing(made):
    _, chains = made
    for path in chains.iterdir():
        path.unlink()
    assert missing_files(chains) == []  # a run that was killed before the job wrote anything goes on
    chains.rmdir()
    assert missing_files(chains) == []


@pytest.mark.parametrize("content", [b"", b"# 8 rows\n", b"\xff\x00"])
def test_a_damaged_checksum_protects_nothing_and_is_refused(made, content):
    table, _ = made
    Path("results/checksums/errors/synthetic.csv.sha256").write_bytes(content)
    with pytest.raises(DataError, match="is not as the run made it"):
        check([table])


def test_what_has_no_checksum_is_refused(made):
    table, chains = made
    forget([table, chains])
    for path in made:
        with pytest.raises(DataError, match=f"{path} has no checksum in results/checksums/.*; delete {path} and run"):
            check([path])
    assert missing_files(chains) == []
    forget([table])  # twice is no error


def test_what_cannot_be_read_is_one_sentence(made):
    table, _ = made
    table.unlink()
    with pytest.raises(DataError, match=r"synthetic\.csv cannot be read \(No such file or directory\)"):
        check([table])


def test_sha256sum_reads_the_checksums(made):
    text = b"".join(path.read_bytes() for path in Path("results/checksums").rglob("*.sha256"))
    done = subprocess.run(["sha256sum", "--check", "--strict"], input=text, capture_output=True)
    assert done.returncode == 0
    assert done.stdout.count(b": OK") == 3


def test_summary_refuses_a_damaged_comparison(tmp_path):
    table = tmp_path / "results/tables/comparison.csv"
    table.parent.mkdir(parents=True)
    rows = ["paper,source,verdict", "Ilvento 2020,printed,reproduced", "Ilvento 2020,restored,differs"]
    table.write_text("\n".join(rows) + "\n", encoding="utf-8")
    record([table], tmp_path / "results")
    said = summary(tmp_path / "results").splitlines()
    assert "  Ilvento 2020: 1 reproduced, 1 differs" in said
    assert said[-2:] == ["  printed: 1 reproduced", "  restored: 1 differs"]
    table.write_text("\n".join(rows[:2]) + "\n", encoding="utf-8")
    with pytest.raises(DataError, match="1 rows, not 2"):
        summary(tmp_path / "results")
