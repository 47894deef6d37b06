"""Figure files: the format of the suffix, the caption inside, the colours of the page."""

import csv
import io
import re
import runpy
import sys
from unittest.mock import MagicMock

import pytest
from hypothesis import given, settings
from PIL import Image

from paceline.errors import InputError, MissingExtraError
from paceline.render.figure_files.figure_data import figure_rows, rows_csv
from paceline.render.figure_files.figure_files import check_figure_path, write_drawing
from paceline.render.figure_files.figure_set import write_figures
from paceline.render.figure_files.matplotlib_scripts import matplotlib_script
from paceline.render.figure_files.svg_renderer import inline_styles, pdf_bytes, png_bytes
from paceline.render.figures import WaterfallInfo, draw, figure
from paceline.render.html_page import Fact, Page, Section
from render.samples import all_infos, sample_waterfall, throughput
from render.test_figures import INFO

pytestmark = pytest.mark.process  # finding libcairo runs ldconfig

CAPTION = "Throughput of <b>two</b> frameworks & “more”, 95 %."
BAR_AND_DOT = """<svg xmlns="http://www.w3.org/2000/svg" class="figure" width="40" height="20"
viewBox="0 0 40 20"><title>t</title><desc>d</desc><g class="c1"><rect width="20" height="20"/></g>
<g class="c3"><circle class="marker" cx="30" cy="10" r="6"/></g></svg>"""


@pytest.mark.parametrize(
    ("suffix", "start"),
    [(".svg", b"<svg"), (".pdf", b"%PDF-1."), (".png", b"\x89PNG"), (".PNG", b"\x89PNG")],
)
def test_the_suffix_selects_the_format(tmp_path, suffix, start):
    path = write_drawing(tmp_path / f"f{suffix}", draw(throughput()), CAPTION)
    assert path.read_bytes().startswith(start)


def test_an_unknown_suffix_is_an_error_that_lists_the_known_ones(tmp_path):
    with pytest.raises(InputError, match=r"unsupported suffix '\.jpeg'") as refused:
        write_drawing(tmp_path / "f.jpeg", draw(throughput()))
    assert ".pdf" in refused.value.hint
    assert not list(tmp_path.iterdir())


def test_files_contain_captions():
    pdf = pdf_bytes(draw(throughput()), CAPTION)
    subject = re.search(rb"/Subject <([0-9A-Fa-f\s]+)>", pdf)[1].decode()
    assert bytes.fromhex(subject).decode("utf-16") == CAPTION
    picture = Image.open(io.BytesIO(png_bytes(draw(throughput()), CAPTION)))
    assert picture.text["Description"] == CAPTION
    assert picture.info["dpi"] == pytest.approx((192, 192), abs=0.1)


@pytest.mark.parametrize("name", all_infos())
def test_no_css_variable_is_left_for_the_renderer(name):
    styled = inline_styles(draw(all_infos()[name]))
    assert "style=" in styled
    assert "var(" not in styled


@settings(max_examples=30, deadline=None)
@given(INFO)
def test_every_drawing_can_be_written(info):
    assert pdf_bytes(draw(info)).rstrip().endswith(b"%%EOF")


def test_a_png_has_the_colours_of_the_style_sheet():
    picture = Image.open(io.BytesIO(png_bytes(BAR_AND_DOT))).convert("RGB")
    assert picture.size == (80, 40)
    assert picture.getpixel((20, 20)) == (0x2F, 0x5F, 0xB8)
    assert picture.getpixel((60, 20)) == (0x2A, 0x94, 0x88)
    assert picture.getpixel((79, 0)) == (255, 255, 255)


@pytest.mark.parametrize("suffix", [".pdf", ".png"])
def test_without_the_renderer_an_error_names_the_extra(monkeypatch, tmp_path, suffix):
    monkeypatch.setitem(sys.modules, "cairosvg", None)
    with pytest.raises(MissingExtraError) as refused:
        check_figure_path(tmp_path / f"f{suffix}")
    assert "paceline[figures]" in refused.value.hint
    check_figure_path(tmp_path / "f.svg")


def page_of_one_figure():
    section = Section(
        "Scaling & more", figures=[figure("Throughput", throughput(), "100 % of it.")]
    )
    return Page("Study", facts=[Fact("a", "b")], sections=[section])


def test_all_figures_of_a_page_with_latex_for_their_captions(tmp_path):
    written = write_figures(page_of_one_figure(), tmp_path)
    assert sorted(path.suffix for path in written) == [
        ".csv",
        ".pdf",
        ".png",
        ".py",
        ".svg",
        ".tex",
    ]
    latex = (tmp_path / "figures.tex").read_text()
    assert r"\includegraphics[width=\linewidth]{01-throughput.pdf}" in latex
    assert r"\caption{Throughput. 100 \% of it.}" in latex


def test_figures_of_a_page_need_the_extra(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "cairosvg", None)
    with pytest.raises(MissingExtraError):
        write_figures(page_of_one_figure(), tmp_path)
    assert not list(tmp_path.iterdir())


def test_names_of_files_are_labels_of_latex_too(tmp_path):
    shown = figure("Throughput, launch by launch (2 x 4) & more", all_infos()["Waterfall"])
    page = Page("study", sections=[Section("results", figures=[shown])])
    write_figures(page, tmp_path)
    name = "01-throughput-launch-by-launch-2-x-4-more"
    assert (tmp_path / f"{name}.pdf").exists()
    assert rf"\label{{fig:{name}}}" in (tmp_path / "figures.tex").read_text()


@pytest.mark.parametrize("kind", all_infos())
def test_the_data_of_every_figure_are_numbers_in_rows(kind):
    rows = figure_rows(all_infos()[kind])
    assert rows
    assert all(
        isinstance(value, int | float | str | None) for row in rows for value in row.values()
    )
    read = list(csv.DictReader(io.StringIO(rows_csv(rows))))
    assert len(read) == len(rows) and None not in read[0]


@pytest.mark.parametrize("kind", all_infos())
def test_every_figure_has_a_script_that_draws_its_data(kind, monkeypatch, tmp_path):
    info = all_infos()[kind]
    (tmp_path / "01-a.csv").write_text(rows_csv(figure_rows(info)), encoding="utf-8")
    script = tmp_path / "01-a.py"
    script.write_text(matplotlib_script(info, 'A "quoted" title', "01-a"), encoding="utf-8")
    pyplot, figure, axes = MagicMock(), MagicMock(), MagicMock()
    pyplot.subplots.return_value = figure, axes
    monkeypatch.setitem(sys.modules, "matplotlib", MagicMock(pyplot=pyplot))
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", pyplot)
    runpy.run_path(str(script))
    assert [call for call in axes.method_calls if call[0] not in ("set", "legend")]
    assert figure.savefig.call_args.args == (tmp_path / "01-a-matplotlib.pdf",)


def test_unknown_values_are_empty_cells():
    assert "None" not in rows_csv(figure_rows(all_infos()["Machines"]))


def test_the_data_of_a_waterfall_add_up_to_the_step():
    waterfall = sample_waterfall()
    rows = figure_rows(WaterfallInfo(waterfall))
    assert sum(row["seconds"] for row in rows) == pytest.approx(waterfall.total_seconds)
