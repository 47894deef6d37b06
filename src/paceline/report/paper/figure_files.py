"""A figure as a file that is what its name says: ``.svg``, ``.pdf`` or ``.png``."""

from collections.abc import Callable
from pathlib import Path

from paceline.errors import InputError
from paceline.report.figures.drawing import standalone
from paceline.report.files import write_bytes
from paceline.report.paper.pdf import pdf_bytes
from paceline.report.paper.png import png_bytes
from paceline.report.paper.shapes import shapes_of

WRITERS: dict[str, Callable[[str, str], bytes]] = {
    ".svg": lambda svg, caption: standalone(svg, caption).encode(),
    ".pdf": lambda svg, caption: pdf_bytes(shapes_of(svg), caption),
    ".png": lambda svg, caption: png_bytes(shapes_of(svg), caption),
}
"""What makes the content of a file from a drawing and its caption, by the file's ending."""


def check_figure_path(path: Path) -> None:
    """Raise now what writing a figure to ``path`` would raise later, after much work."""
    from paceline.report.files import check_writable

    _writer(path)
    check_writable(path)


def write_drawing(path: Path, svg: str, caption: str = "") -> Path:
    """Write a drawing in the format that the ending of ``path`` names, its caption inside."""
    return write_bytes(path, _writer(path)(svg, caption))


def _writer(path: Path) -> Callable[[str, str], bytes]:
    known = WRITERS.get(path.suffix.lower())
    if known is None:
        ending = f"'{path.suffix}'" if path.suffix else "no ending"
        raise InputError(
            f"no figure is written to '{path.name}': {ending} names no format of a figure",
            f"end it in {', '.join(WRITERS)}",
        )
    return known
