"""Tables as Markdown and LaTeX."""

import re
from collections.abc import Callable, Iterable

from paceline.render.table import FIGURE_SPACE, Align, Table

_SPECIAL = re.compile(r"[\\&%$#_{}~^±×∞→≤≥≈█▏▎▍▌▋▊▉░]+")
_LATEX = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "±": r"$\pm$",
    "×": r"$\times$",
    "∞": r"$\infty$",
    "→": r"$\rightarrow$",
    "≤": r"$\leq$",
    "≥": r"$\geq$",
    "≈": r"$\approx$",
}
_BARS = "▏▎▍▌▋▊▉█"
"""Bars of one to eight eighths of a column."""
_ROWS_OF_A_PAGE = 40
_LONGEST_LABEL = 60


def to_markdown(table: Table) -> str:
    """A Markdown table with its title above and its note below."""
    marks = ["---:" if table.align_of(i) is Align.RIGHT else "---" for i in _range(table)]
    lines = [f"**{_plain(table.title)}**\n"] if table.title else []
    lines += [_row(column.heading for column in table.columns), _row(marks, escape=False)]
    lines += [_row(cells) for cells in _texts(table)]
    if table.note:
        lines += ["", _plain(table.note)]
    return "\n".join(lines) + "\n"


def to_latex(table: Table) -> str:
    """A LaTeX table for the package booktabs; caption and label of the title, note below.

    A table longer than a page needs the package longtable.
    """
    alignment = "".join("r" if table.align_of(i) is Align.RIGHT else "l" for i in _range(table))
    head = " & ".join(latex_text(column.heading) for column in table.columns)
    body = [" & ".join(map(latex_text, cells)) + r" \\" for cells in _texts(table)]
    title = table.title or ", ".join(column.heading for column in table.columns[:3])
    label = re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")[:_LONGEST_LABEL]
    caption = [rf"\caption{{{latex_text(title)}}}\label{{tab:{label}}}"]
    rows = [r"\toprule", rf"{head} \\", r"\midrule", *body, r"\bottomrule"]
    note = [rf"\par\smallskip\footnotesize {latex_text(table.note)}"] if table.note else []
    if len(body) > _ROWS_OF_A_PAGE:
        rows.insert(3, r"\endhead")
        caption = [rf"{line} \\" for line in caption]
        lines = [rf"\begin{{longtable}}{{{alignment}}}", *caption, *rows, r"\end{longtable}"]
        lines += ["{%", *note, r"\par}"] if note else []
    else:
        tabular = [rf"\begin{{tabular}}{{{alignment}}}", *rows, r"\end{tabular}"]
        lines = [r"\begin{table}", r"\centering", *caption, *tabular, *note, r"\end{table}"]
    return "\n".join(lines) + "\n"


def latex_text(text: str) -> str:
    """Text with the special characters of LaTeX escaped; bars become rules."""
    return _SPECIAL.sub(lambda found: _latex_signs(found[0]), _plain(text))


def _latex_signs(signs: str) -> str:
    columns = sum((_BARS.find(sign) + 1) / 8 or float(sign == "░") for sign in signs)
    bar = rf"\rule{{{columns / 2:.3g}em}}{{1.5ex}}" if columns else ""
    kept = [sign for sign in signs if sign not in f"{_BARS}░"]
    return bar + "".join(_LATEX.get(sign, f"\\{sign}") for sign in kept)


MARKUPS: dict[str, Callable[[Table], str]] = {"markdown": to_markdown, "latex": to_latex}
"""Writers of tables by name."""


def _range(table: Table) -> range:
    return range(len(table.columns))


def _texts(table: Table) -> list[list[str]]:
    columns = [table.texts_of(index) for index in _range(table)]
    return [[columns[i][row] for i in _range(table)] for row in range(len(table.rows))]


def _plain(text: str) -> str:
    return " ".join(text.replace(FIGURE_SPACE, " ").split())


def _row(cells: Iterable[str], escape: bool = True) -> str:
    texts = [_plain(cell) for cell in cells]
    if escape:
        texts = [re.sub(r"([\\|`*_<])", r"\\\1", text) for text in texts]
    return "| " + " | ".join(texts) + " |"
