"""Excel files are read as the CSV that they would be saved as, and whatever is wrong with one is one sentence."""

import zipfile
from xml.sax.saxutils import escape

import pandas as pd
import pytest

import pufferflow as pf
from pufferflow import cli
from pufferflow.records import excel_tables

pytest.importorskip("python_calamine")

TYPES = "http://schemas.openxmlformats.org"
HEAD = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>'


def cell(value, date=False):
    if isinstance(value, str):
        return f'<c t="inlineStr"><is><t>{escape(value)}</t></is></c>'
    style = ' s="1"' if date else ""
    return "<c/>" if value is None else f"<c{style}><v>{value}</v></c>"


def workbook(path, *sheets, dates=()):
    """Write sheets of rows; numbers in the columns ``dates`` are days since 1899-12-30."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        parts = range(1, len(sheets) + 1)
        kinds = "".join(
            f'<Override PartName="/xl/worksheets/sheet{n}.xml" ContentType="application/vnd.openxmlformats-'
            'officedocument.spreadsheetml.worksheet+xml"/>'
            for n in parts
        )
        archive.writestr(
            "[Content_Types].xml", f'{HEAD}<Types xmlns="{TYPES}/package/2006/content-types">{kinds}</Types>'
        )
        listed = "".join(f'<sheet name="s{n}" sheetId="{n}" r:id="r{n}"/>' for n in parts)
        space = f'xmlns="{TYPES}/spreadsheetml/2006/main"'
        related = f'xmlns:r="{TYPES}/officeDocument/2006/relationships"'
        archive.writestr("xl/workbook.xml", f"{HEAD}<workbook {space} {related}><sheets>{listed}</sheets></workbook>")
        kind = f"{TYPES}/officeDocument/2006/relationships"
        links = "".join(
            f'<Relationship Id="r{n}" Type="{kind}/worksheet" Target="worksheets/sheet{n}.xml"/>' for n in parts
        )
        links += f'<Relationship Id="r0" Type="{kind}/styles" Target="styles.xml"/>'
        name = f"{TYPES}/package/2006/relationships"
        archive.writestr("xl/_rels/workbook.xml.rels", f'{HEAD}<Relationships xmlns="{name}">{links}</Relationships>')
        root = f'<Relationship Id="r1" Type="{kind}/officeDocument" Target="xl/workbook.xml"/>'
        archive.writestr("_rels/.rels", f'{HEAD}<Relationships xmlns="{name}">{root}</Relationships>')
        formats = '<cellXfs count="2"><xf numFmtId="0"/><xf numFmtId="22" applyNumberFormat="1"/></cellXfs>'
        archive.writestr("xl/styles.xml", f"{HEAD}<styleSheet {space}>{formats}</styleSheet>")
        for n, rows in enumerate(sheets, 1):
            lines = "".join(
                "<row>" + "".join(cell(value, at in dates) for at, value in enumerate(row)) + "</row>" for row in rows
            )
            archive.writestr(
                f"xl/worksheets/sheet{n}.xml", f"{HEAD}<worksheet {space}><sheetData>{lines}</sheetData></worksheet>"
            )


ROWS = [("when", "watts", "note"), *((43831 + i / 1440, 100.5 * (i % 7), "a & b") for i in range(300))]


def test_a_sheet_is_read_as_its_csv(tmp_path):
    workbook(tmp_path / "meter.xlsx", ROWS, [], dates={0})
    lines = ["when,watts,note"]
    for i, (_, watts, note) in enumerate(ROWS[1:]):
        lines.append(f"{pd.Timestamp('2020-01-01') + pd.Timedelta(minutes=i):%Y-%m-%dT%H:%M:%S},{watts:g},{note}")
    (tmp_path / "meter.csv").write_text("\n".join(lines) + "\n")
    reading = pf.Reading(time="when", value="watts")
    fits = [pf.fit_records(tmp_path / f"meter.{kind}", reading=reading) for kind in ("xlsx", "csv")]
    assert fits[0].family == fits[1].family
    assert fits[0].facts["step_seconds"] == fits[1].facts["step_seconds"] == 60
    assert fits[0].facts["records"] == 300


@pytest.mark.parametrize(
    ("sheets", "said"),
    [
        ([], "an Excel file of 0 sheets"),
        ([ROWS, ROWS], "an Excel file of 2 sheets that are not empty"),
        ([[("value",), (0,), ("secret-value-1",)]], "row 3: "),
    ],
)
def test_what_is_wrong_is_one_sentence(tmp_path, monkeypatch, capsys, sheets, said):
    monkeypatch.chdir(tmp_path)
    workbook(tmp_path / "x.xlsx", *(sheets or [[]]))
    assert (
        cli.main(["release", "x.xlsx", "--forgets", "3", "0.5", "--epsilon", "1", "--states", "0,1", "--no-ledger"])
        == 2
    )
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert said in error
    assert "secret-value" not in error


def test_damaged_and_huge_files_are_refused(tmp_path, monkeypatch):
    good = tmp_path / "x.xlsx"
    workbook(good, ROWS, dates={0})
    monkeypatch.setattr(excel_tables, "MOST_UNPACKED", 1000)
    with pytest.raises(pf.DataError, match="bytes unpacked, at most 1,000 are read"):
        pf.fit_records(good)
    monkeypatch.undo()
    content = bytearray(good.read_bytes())
    middle = len(content) // 2
    content[middle : middle + 40] = bytes(40)
    good.write_bytes(content)
    with pytest.raises(pf.DataError, match=r"damaged Excel file|corrupt archive"):
        pf.fit_records(good)
    (tmp_path / "old.xls").write_bytes(excel_tables.OLD + bytes(2000))
    with pytest.raises(pf.DataError, match="a damaged Excel file"):
        pf.fit_records(tmp_path / "old.xls")
