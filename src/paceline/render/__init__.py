"""Output: figures, self-contained pages, and tables for the terminal."""

from paceline.render.files import write_text
from paceline.render.html_page import Fact, Figure, Page, Section, render
from paceline.render.number_format import Ranged
from paceline.render.table import Align, Column, Table

__all__ = [
    "Align",
    "Column",
    "Fact",
    "Figure",
    "Page",
    "Ranged",
    "Section",
    "Table",
    "render",
    "write_text",
]
