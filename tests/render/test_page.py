import base64
import hashlib
import re
from html.parser import HTMLParser

import pytest

from paceline.render.figures import LineSeries, LinesInfo, figure
from paceline.render.html_page import Fact, Page, Section, paragraphs, render
from paceline.render.number_format import Ranged
from paceline.render.table import Column, Table
from render.samples import sample_page, sample_table

HOSTILE = "</style></script><script>alert(1)</script><img src=x onerror=alert(1)>\"'&\x00\x1b"
VOID = {"meta", "img", "br", "link", "input"}


class Document(HTMLParser):
    """Collects what the tests ask of a page; complains about tags that do not match."""

    def __init__(self, html):
        super().__init__()
        self.open, self.tags, self.attributes, self.texts = [], [], [], []
        self.feed(html)
        assert not self.open, f"left open: {self.open}"

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append(data)


def hash_of(source):
    return base64.b64encode(hashlib.sha256(source.encode()).digest()).decode()


@pytest.fixture(scope="module")
def html():
    return render(sample_page())


def test_the_page_is_complete_and_well_formed(html):
    document = Document(html)
    assert document.tags.count("svg") == 5 + 2 * 7
    assert document.tags.count("h2") == 6 + 1
    assert len(html.encode()) < 500_000


def test_the_page_makes_no_network_requests(html):
    document = Document(html)
    assert not {"link", "img", "iframe", "object", "base", "form"} & set(document.tags)
    assert not {name for name, _ in document.attributes} & {"src", "style", "onload", "onclick"}
    links = {value for name, value in document.attributes if name == "href"}
    assert links and all(link.startswith("#section-") for link in links)
    assert "url(" not in html and "@import" not in html


def test_the_policy_names_style_and_script_by_their_hashes(html):
    (policy,) = [v for name, v in Document(html).attributes if v and "default-src" in v]
    (style,) = re.findall(r"<style>(.*?)</style>", html, re.DOTALL)
    (script,) = re.findall(r"<script>(.*?)</script>", html, re.DOTALL)
    assert "default-src 'none'" in policy
    assert f"style-src 'sha256-{hash_of(style)}'" in policy
    assert f"script-src 'sha256-{hash_of(script)}'" in policy


def test_hostile_text_stays_text():
    table = Table((Column(HOSTILE, HOSTILE), Column("n")), ((HOSTILE, 1),), HOSTILE, HOSTILE)
    fact = Fact(HOSTILE, HOSTILE, HOSTILE)
    lists = {"points": [HOSTILE], "commands": [HOSTILE]}
    section = Section(HOSTILE, HOSTILE, [table], notes=[HOSTILE], warnings=[HOSTILE], **lists)
    page = Page(HOSTILE, HOSTILE, [fact], [section] * 5, [fact], verdict=[HOSTILE])
    document = Document(render(page))
    assert document.tags.count("script") == 1
    assert "img" not in document.tags
    shown = "".join(document.texts)
    assert "<script>alert(1)</script>" in shown
    assert not set(shown) & {"\x00", "\x1b"}


@pytest.mark.parametrize("count", [0, 1, 3, 4, 50])
def test_long_pages_have_a_table_of_contents(count):
    sections = [Section(f"Part {n}", tables=[sample_table()]) for n in range(count)]
    html = render(Page("Many", sections=sections))
    document = Document(html)
    assert document.tags.count("section") == count
    assert document.tags.count("nav") == (1 if count >= 4 else 0)
    assert len(html.encode()) < 500_000


def test_only_long_tables_are_sortable():
    rows = tuple((f"row {n}", float(n)) for n in range(6))
    columns = (Column("name"), Column("n"))
    long = render(Page("t", sections=[Section("s", tables=[Table(columns, rows)])]))
    short = render(Page("t", sections=[Section("s", tables=[Table(columns, rows[:5])])]))
    assert 'class="sortable"' in long and 'data-sort="3.0"' in long
    assert 'class="sortable"' not in short and 'data-sort="' not in short


def test_rendering_is_reproducible():
    assert render(sample_page()) == render(sample_page())


def test_a_line_does_not_begin_with_a_percent_sign():
    html = render(
        Page(
            "t",
            verdict=["inside the 90 % interval"],
            sections=[
                Section("s", "of 5 % `date +5 %`", commands=["date +5 %"]),
            ],
        )
    )
    assert html.count("\u00a0%") == 2 and "date +5 %" in html


def test_the_leading_figure_is_shown_once_at_any_width():
    info = LinesInfo("x", "y", (LineSeries("a", ((1.0, Ranged(1.0)), (2.0, Ranged(3.0)))),))
    half, whole = (figure("one", info, half=wide) for wide in (True, False))
    page = Page("t", lead=whole, sections=[Section("s", figures=[half])])
    assert page.sections[0].figures == []


def test_paragraphs_and_code():
    first, second = paragraphs("Type `paceline demo`\nnow.\n\nThen `wait")
    assert [(span.text, span.is_code) for span in first] == [
        ("Type ", False),
        ("paceline demo", True),
        (" now.", False),
    ]
    assert [(span.text, span.is_code) for span in second] == [("Then `wait", False)]
