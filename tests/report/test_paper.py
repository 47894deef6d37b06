"""Figures as files: what the name says, with the caption inside, from the same drawing."""

import io
import re

import pytest
from hypothesis import given, settings
from PIL import Image

from paceline.errors import InputError, MissingExtraError
from paceline.report import Fact, Page, Section
from paceline.report.figures import draw, figure
from paceline.report.paper import png
from paceline.report.paper.figure_files import write_drawing
from paceline.report.paper.figure_set import write_figures
from paceline.report.paper.pdf import encodable, helvetica_width, pdf_bytes
from paceline.report.paper.shapes import Disc, Outline, Shapes, Words, path_lines, shapes_of
from paceline.report.paper.stylesheet import StyledNode, style_of, value_of
from report.samples import all_infos, throughput
from report.test_figures import INFO

CAPTION = "Throughput of <b>two</b> frameworks & “more”, 95 %."


def every_drawing():
    return [(name, draw(info)) for name, info in all_infos().items()]


@pytest.mark.parametrize(
    ("ending", "start"),
    [(".svg", b"<svg"), (".pdf", b"%PDF-1.4"), (".png", b"\x89PNG"), (".PNG", b"\x89PNG")],
)
def test_a_file_is_what_its_name_says(tmp_path, ending, start):
    path = write_drawing(tmp_path / f"f{ending}", draw(throughput()), CAPTION)
    assert path.read_bytes().startswith(start)


def test_another_ending_is_refused_with_those_that_are_known(tmp_path):
    with pytest.raises(InputError, match=r"'\.jpeg' names no format") as refused:
        write_drawing(tmp_path / "f.jpeg", draw(throughput()))
    assert ".pdf" in refused.value.hint
    assert not list(tmp_path.iterdir())


def test_captions_are_kept_in_the_files():
    drawing = shapes_of(draw(throughput()))
    pdf = pdf_bytes(drawing, CAPTION)
    (told,) = re.findall(rb"/Subject <([0-9a-f]+)>", pdf)
    assert bytes.fromhex(told.decode()).decode("utf-16") == CAPTION
    assert Image.open(io.BytesIO(png.png_bytes(drawing, CAPTION))).text["Description"] == CAPTION


@pytest.mark.parametrize(("name", "svg"), every_drawing())
def test_every_text_of_a_figure_is_in_its_pdf(name, svg):
    drawing = shapes_of(svg)
    pdf = pdf_bytes(drawing).decode("latin-1")
    texts = [shape.text for shape in drawing.shapes if isinstance(shape, Words)]
    assert texts, name
    for text in texts:
        shown = re.sub(r"([\\()])", r"\\\1", encodable(text).encode("cp1252").decode("latin-1"))
        assert f"({shown}) Tj" in pdf


@settings(max_examples=30, deadline=None)
@given(INFO)
def test_whatever_can_be_drawn_can_be_written(info):
    drawing = shapes_of(draw(info))
    assert pdf_bytes(drawing).endswith(b"%%EOF\n")


def test_the_table_of_a_pdf_says_where_objects_begin():
    pdf = pdf_bytes(shapes_of(draw(throughput())))
    table = int(re.search(rb"startxref\n(\d+)", pdf)[1])
    assert pdf[table : table + 4] == b"xref"
    for number, place in enumerate(re.findall(rb"(\d{10}) 00000 n ", pdf), start=1):
        assert pdf[int(place) :].startswith(b"%d 0 obj" % number)
    length, content = re.search(rb"/Length (\d+) >>\nstream\n(.*?)\nendstream", pdf, re.S).groups()
    assert int(length) == len(content)


def test_colours_come_from_the_style_of_the_page():
    path = [StyledNode("svg", frozenset({"figure"})), StyledNode("g", frozenset({"c2"}))]
    style = style_of(path, style_of(path[:1], {}))
    leaf = style_of([*path, StyledNode("path", frozenset({"stroke", "dashes"}))], style)
    assert value_of(leaf, "stroke", "none") == "#cb6120"
    assert value_of(leaf, "stroke-dasharray", "") == "5 4"
    assert value_of(leaf, "fill", "") == "none"


def test_a_picture_has_the_colour_of_its_bar():
    square = (((0.0, 0.0), (20.0, 0.0), (20.0, 20.0), (0.0, 20.0)), True)
    bar = Outline((square,), (47, 95, 184), 1.0, None, 1.0, (), False)
    dot = Disc(30.0, 10.0, 6.0, (10, 200, 10), 1.0, None, 1.0)
    picture = Image.open(io.BytesIO(png.png_bytes(Shapes(40, 20, "t", "d", (bar, dot)))))
    assert picture.size == (80, 40)
    assert picture.getpixel((20, 20)) == (47, 95, 184)
    assert picture.getpixel((60, 20)) == (10, 200, 10)
    assert picture.getpixel((79, 0)) == (255, 255, 255)


def test_without_pillow_a_png_names_the_extra(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "PIL", None)
    with pytest.raises(MissingExtraError) as refused:
        png.png_bytes(shapes_of(draw(throughput())))
    assert "paceline[images]" in refused.value.hint


def test_paths_of_moves_and_lines():
    assert list(path_lines("M1 2H5M0 0L1 1V4Z")) == [
        (((1.0, 2.0), (5.0, 2.0)), False),
        (((0.0, 0.0), (1.0, 1.0), (1.0, 4.0)), True),
    ]


def test_widths_are_those_of_the_font():
    assert helvetica_width("Wii", 10, bold=False) == pytest.approx(9.44 + 2 * 2.22)
    assert encodable("∞ ≥ 漢") == "inf >= ?"


def test_all_figures_of_a_page_with_latex_for_their_captions(tmp_path):
    section = Section(
        "Scaling & more", figures=[figure("Throughput", throughput(), "100 % of it.")]
    )
    written = write_figures(Page("Study", facts=[Fact("a", "b")], sections=[section]), tmp_path)
    assert sorted(path.suffix for path in written) == [".pdf", ".png", ".svg", ".tex"]
    latex = (tmp_path / "figures.tex").read_text()
    assert r"\includegraphics[width=\linewidth]{01-throughput.pdf}" in latex
    assert r"\caption{Throughput. 100 \% of it.}" in latex
