"""Self-contained HTML pages: their content as dataclasses, and the renderer."""

import base64
import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from paceline.render.safe_text import printable
from paceline.render.table import Table, sort_key

if TYPE_CHECKING:
    from jinja2 import Environment

_SECTIONS_FOR_CONTENTS = 4
_ROWS_FOR_SORTING = 6


@dataclass(frozen=True)
class Fact:
    """A labelled number or name: ``Fact("2 processes", "187.6 img/s", "± 4.1")``."""

    label: str
    value: str
    note: str = ""


@dataclass(frozen=True)
class Figure:
    """A drawing with its title and caption.

    ``narrow_svg`` is the same drawing for a phone. With ``half`` the narrow drawing is used
    everywhere, two of them side by side. ``data`` has the numbers of the drawing, for screen
    readers and for copying. ``info`` are the numbers as a dataclass.
    """

    title: str
    svg: str
    narrow_svg: str = ""
    caption: str = ""
    half: bool = False
    data: Table | None = None
    info: object = None


@dataclass(frozen=True)
class Section:
    """A part of the page: text first, then warnings, tables, figures and notes.

    Paragraphs of ``text`` are separated by an empty line; between backticks it is code. ``points``
    are sentences of a list, ``commands`` lines to type. A ``folded`` section is closed at first.
    """

    title: str
    text: str = ""
    tables: Sequence[Table] = ()
    figures: Sequence[Figure] = ()
    notes: Sequence[str] = ()
    warnings: Sequence[str] = ()
    points: Sequence[str] = ()
    commands: Sequence[str] = ()
    folded: bool = False


@dataclass(frozen=True)
class PageLink:
    """A link to another page of the same site; ``target`` is its file."""

    title: str
    target: str


@dataclass(frozen=True)
class Page:
    """The contents of a report.

    ``verdict`` is the answer in a few sentences and comes first, with ``lead``, the figure that
    shows it; ``facts`` are the main results;
    ``provenance`` (machine, versions, commit, date, design) ends the page. ``links`` lead to
    other pages of a site.
    """

    title: str
    subtitle: str = ""
    facts: Sequence[Fact] = ()
    sections: Sequence[Section] = ()
    provenance: Sequence[Fact] = ()
    verdict: Sequence[str] = ()
    links: Sequence[PageLink] = ()
    lead: Figure | None = None

    def __post_init__(self) -> None:
        """Show the leading figure once."""
        if self.lead is not None:
            lead = _drawing(self.lead)
            others = [
                replace(one, figures=[own for own in one.figures if _drawing(own) != lead])
                for one in self.sections
            ]
            object.__setattr__(self, "sections", others)


def _drawing(figure: Figure) -> str:
    """The drawing that a figure has at every width of the page."""
    return figure.narrow_svg or figure.svg


@dataclass(frozen=True, slots=True)
class TextRun:
    """A run of text within a paragraph, code or not."""

    text: str
    is_code: bool


def render(page: Page) -> str:
    """``page`` as one self-contained HTML document.

    Style and script are inline and allowed by their hashes in a Content-Security-Policy, so that
    the name of a layer or host cannot inject a script.
    """
    style = f"{package_text('page.css')}\n{package_text('figure.css')}"
    script = f"{package_text('files.js')}\n{package_text('page.js')}"
    return (
        _environment()
        .get_template("page.html.j2")
        .render(
            page=page,
            style=style,
            script=script,
            policy=_content_security_policy(style, script),
            has_contents=len(page.sections) >= _SECTIONS_FOR_CONTENTS,
        )
    )


def table_html(table: Table) -> str:
    """``table`` alone as HTML, for a notebook."""
    source = "{% from 'table.html.j2' import show_table %}{{ show_table(table) }}"
    return _environment().from_string(source).render(table=table)


def paragraphs(text: str) -> list[list[TextRun]]:
    """Paragraphs of ``text``: empty lines separate them, backticks enclose code."""
    blocks = [block.strip() for block in re.split(r"\n\s*\n", text) if block.strip()]
    return [_spans(" ".join(block.split())) for block in blocks]


def package_text(name: str) -> str:
    """A file of the templates directory with Unix line ends, which the hash of the page assumes."""
    source = Path(__file__).parent / "templates" / name
    return source.read_text(encoding="utf-8").replace("\r\n", "\n")


def _spans(text: str) -> list[TextRun]:
    parts = text.split("`")
    if len(parts) % 2 == 0:
        return [TextRun(_sentence(text), is_code=False)]
    return [
        TextRun(printable(part) if i % 2 else _sentence(part), bool(i % 2))
        for i, part in enumerate(parts)
        if part
    ]


def _sentence(text: str) -> str:
    """Text in which no line begins with a percent sign."""
    return re.sub(r"(?<=\d) %", "\u00a0%", printable(text))


def _content_security_policy(style: str, script: str) -> str:
    return (
        f"default-src 'none'; style-src {hashed(style)}; script-src {hashed(script)}; "
        "base-uri 'none'; form-action 'none'"
    )


def hashed(source: str) -> str:
    """The hash of an inline style or script in a Content-Security-Policy."""
    digest = base64.b64encode(hashlib.sha256(source.encode()).digest()).decode()
    return f"'sha256-{digest}'"


def _environment() -> "Environment":
    from jinja2 import DictLoader, Environment, StrictUndefined

    names = ("page.html.j2", "table.html.j2")
    environment = Environment(
        loader=DictLoader({name: package_text(name) for name in names}),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"paragraphs": paragraphs, "printable": printable, "sentence": _sentence}
    environment.globals |= {"table_view": _table_view}
    return environment


@dataclass(frozen=True, slots=True)
class _CellView:
    text: str
    sort: str
    align: str


@dataclass(frozen=True, slots=True)
class _TableView:
    rows: list[tuple[_CellView, ...]]
    aligns: list[str]
    is_sortable: bool


def _table_view(table: Table) -> _TableView:
    columns: list[list[_CellView]] = []
    aligns = [str(table.align_of(index)) for index in range(len(table.columns))]
    for index, align in enumerate(aligns):
        keys = [sort_key(cell) for cell in table.cells_of(index)]
        columns.append(
            [
                _CellView(text, "" if key is None else printable(str(key)), align)
                for text, key in zip(table.texts_of(index), keys, strict=True)
            ]
        )
    rows = list(zip(*columns, strict=True))
    return _TableView(rows, aligns, is_sortable=len(rows) >= _ROWS_FOR_SORTING)
