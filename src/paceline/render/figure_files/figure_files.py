"""A figure as a file in the format of its suffix: ``.svg``, ``.pdf`` or ``.png``."""

from collections.abc import Callable
from pathlib import Path

from paceline.errors import InputError
from paceline.render.figure_files.svg_renderer import pdf_bytes, png_bytes, require_renderer
from paceline.render.figures.drawing import standalone
from paceline.render.files import check_writable, write_bytes

WRITERS: dict[str, Callable[[str, str], bytes]] = {
    ".svg": lambda svg, caption: standalone(svg, caption).encode(),
    ".pdf": pdf_bytes,
    ".png": png_bytes,
}
"""Functions from an SVG and its caption to the content of a file, by suffix."""


def check_figure_path(path: Path) -> None:
    """Raise the error of writing a figure to ``path`` early, before expensive work."""
    _writer(path)
    if path.suffix.lower() != ".svg":
        require_renderer()
    check_writable(path)


def write_drawing(path: Path, svg: str, caption: str = "") -> Path:
    """Write ``svg`` with its caption in the format that the suffix of ``path`` names."""
    return write_bytes(path, _writer(path)(svg, caption))


def _writer(path: Path) -> Callable[[str, str], bytes]:
    known = WRITERS.get(path.suffix.lower())
    if known is None:
        suffix = f"suffix '{path.suffix}'" if path.suffix else "file without a suffix"
        raise InputError(
            f"cannot write a figure to '{path.name}': unsupported {suffix}",
            f"use one of {', '.join(WRITERS)}",
        )
    return known
