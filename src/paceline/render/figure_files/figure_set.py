"""All figures of a page as files for a paper, with a LaTeX file that includes them by caption."""

import re
from collections.abc import Iterator
from pathlib import Path

from paceline.render.figure_files.figure_data import figure_rows, rows_csv
from paceline.render.figure_files.figure_files import WRITERS, write_drawing
from paceline.render.figure_files.matplotlib_scripts import matplotlib_script
from paceline.render.figure_files.svg_renderer import require_renderer
from paceline.render.files import write_text
from paceline.render.html_page import Figure, Page
from paceline.render.markup import latex_text

INCLUDED = ".pdf"
"""The format that LaTeX includes."""


def write_figures(page: Page, directory: Path) -> list[Path]:
    """Write each figure of ``page`` in every format, its data, and ``figures.tex``.

    They need the extra ``figures``: ``figures.tex`` includes PDF files.
    """
    require_renderer()
    written: list[Path] = []
    entries: list[str] = []
    for number, (section, figure) in enumerate(_figures(page), start=1):
        name = f"{number:02d}-{_slug(figure.title)}"
        caption = f"{figure.title}. {figure.caption}".strip()
        for suffix in WRITERS:
            written.append(write_drawing(directory / f"{name}{suffix}", figure.svg, caption))
        written += _write_data(directory / name, figure)
        entries.append(_entry(name, caption, section))
    head = f"% {' '.join(page.title.split())}: figures with their captions, for \\input.\n"
    return [*written, write_text(directory / "figures.tex", head + "\n".join(entries))]


def _slug(title: str) -> str:
    """A file name and LaTeX label: letters, digits and dashes."""
    return re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")[:60] or "figure"


def _write_data(path: Path, figure: Figure) -> list[Path]:
    """The numbers of a figure as CSV, and a script that draws them with matplotlib."""
    rows = figure_rows(figure.info)
    if not rows:
        return []
    written = [write_text(path.with_suffix(".csv"), rows_csv(rows))]
    script = matplotlib_script(figure.info, figure.title, path.name)
    return [*written, write_text(path.with_suffix(".py"), script)] if script else written


def _figures(page: Page) -> Iterator[tuple[str, Figure]]:
    if page.lead is not None:
        yield page.title, page.lead
    for section in page.sections:
        for figure in section.figures:
            yield section.title, figure


def _entry(name: str, caption: str, section: str) -> str:
    return (
        f"% {' '.join(section.split())}\n"
        "\\begin{figure}\n\\centering\n"
        f"\\includegraphics[width=\\linewidth]{{{name}{INCLUDED}}}\n"
        f"\\caption{{{latex_text(caption)}}}\n\\label{{fig:{name}}}\n\\end{{figure}}\n"
    )
