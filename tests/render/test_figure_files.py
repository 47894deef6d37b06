"""Figure files: the format of the suffix, the caption inside, the colours of the page."""

import io
import re
import sys

import pytest
from hypothesis import given, settings
from PIL import Image

from paceline.errors import InputError, MissingExtraError
from paceline.render.figure_files.figure_files import check_figure_path, write_drawing
from paceline.render.figure_files.figure_set import write_figures
from paceline.render.figure_files.svg_renderer import inline_styles, pdf_bytes, png_bytes
from paceline.render.figures import draw, figure
from paceline.render.html_page import Fact, Page, Section
from render.samples import all_infos, throughput
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
    assert sorted(path.suffix for path in written) == [".pdf", ".png", ".svg", ".tex"]
    latex = (tmp_path / "figures.tex").read_text()
    assert r"\includegraphics[width=\linewidth]{01-throughput.pdf}" in latex
    assert r"\caption{Throughput. 100 \% of it.}" in latex


def test_figures_of_a_page_need_the_extra(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "cairosvg", None)
    with pytest.raises(MissingExtraError):
        write_figures(page_of_one_figure(), tmp_path)
    assert not list(tmp_path.iterdir())
