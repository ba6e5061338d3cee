"""The look of figures: files that are the same on every run, whatever the user's settings are."""

import re
import zlib

import matplotlib as mpl
from matplotlib.figure import Figure

from pufferflow.drawing import style


@style.styled
def drawn():
    figure = Figure(figsize=(style.COLUMN_WIDTH, 2), layout="constrained")
    axes = figure.subplots()
    axes.plot([1, 10], [0.1, 0.2], **style.points(style.mechanism_style("gk16")))
    axes.set_title("$5%$ & more", **style.VERBATIM)
    axes.set_ylabel(r"$\epsilon^2$")
    figure.legend(handles=[style.handle(name, text=", twice") for name in ("mqm-exact", "mine")])
    style.footer(figure, "Synthetic data. " * 9)
    return figure


def test_files_are_the_same_on_every_run(tmp_path, monkeypatch):
    monkeypatch.setattr(style, "STYLE", [*style.STYLE, {"savefig.dpi": 30}])
    runs = [style.save_figure(drawn(), tmp_path / f"run.{i}") for i in (1, 2)]
    assert [path.name for path in runs[0]] == ["run.1.svg", "run.1.pdf", "run.1.png"]
    for one, two in zip(*runs, strict=True):
        content = one.read_bytes()
        assert content == two.read_bytes()
        dated = rb"CreationDate|Creator|Producer|dc:date|Software|20\d\d-\d\d-\d\d"
        assert not re.search(dated, content)
    packed = rb"FlateDecode[^>]*>>\s*stream\n(.*?)\nendstream"
    streams = map(zlib.decompress, re.findall(packed, runs[0][1].read_bytes(), re.DOTALL))
    assert any(b"glyf" in stream for stream in streams)  # text is text in the PDF as well


def test_user_settings_neither_matter_nor_change(tmp_path, only_svg):
    first = style.save_figure(drawn(), tmp_path / "first")[0].read_bytes()
    with mpl.rc_context({"font.size": 20, "svg.fonttype": "path", "axes.grid": False}):
        before = mpl.rcParams.find_all(r"font|axes|svg")
        assert style.save_figure(drawn(), tmp_path / "second")[0].read_bytes() == first
        assert mpl.rcParams.find_all(r"font|axes|svg") == before


def test_text_of_an_svg_is_text_with_fonts_to_fall_back_on(tmp_path, only_svg):
    svg = style.save_figure(drawn(), tmp_path / "figure")[0].read_text("utf-8")
    for text in ("$5%$ &amp; more", "MQMExact, twice", "mine, twice"):
        assert f">{text}</text>" in svg
    assert set(re.findall(r"font-family: ([^;\"]+)", svg)) == {style.SVG_FONTS}
    assert style.SVG_FONTS.endswith("sans-serif")


def test_mechanisms_differ_in_marker_and_in_dashes_and_so_does_an_unknown_one():
    look = style.mechanism_style("mechanism-of-2030")
    assert look == style.mechanism_style("mechanism-of-2030")
    assert look.label == "mechanism-of-2030"
    looks = [*style.MECHANISMS.values(), look]
    for attribute in ("color", "marker", "dashes", "label"):
        assert len({getattr(look, attribute) for look in looks}) == len(looks)
    names = ["new", "mqm-exact", "participant-dp", "new"]
    assert style.in_order(names) == ["participant-dp", "mqm-exact", "new"]
    assert style.state_label(">=10000 W") == "≥ 10000 W"
