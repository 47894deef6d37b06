"""What people see: figures, one self-contained page, and tables for the terminal."""

from paceline.report.files import write_text
from paceline.report.numbers import Ranged
from paceline.report.page import Fact, Figure, Page, Section, render
from paceline.report.table import Align, Column, Table

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
