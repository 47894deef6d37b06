"""Tables as Markdown and LaTeX."""

import re
from collections.abc import Callable, Iterable

from paceline.render.table import FIGURE_SPACE, Align, Table

_SPECIAL = re.compile(r"[\\&%$#_{}~^]")
_LATEX = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "±": r"$\pm$",
    "×": r"$\times$",
    "∞": r"$\infty$",
}


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
    """A LaTeX table for the package booktabs; the title is its caption, the note is below."""
    alignment = "".join("r" if table.align_of(i) is Align.RIGHT else "l" for i in _range(table))
    head = " & ".join(latex_text(column.heading) for column in table.columns)
    body = [" & ".join(map(latex_text, cells)) + r" \\" for cells in _texts(table)]
    lines = [r"\begin{table}", r"\centering"]
    lines += [rf"\caption{{{latex_text(table.title)}}}"] if table.title else []
    lines += [rf"\begin{{tabular}}{{{alignment}}}", r"\toprule", rf"{head} \\", r"\midrule"]
    lines += [*body, r"\bottomrule", r"\end{tabular}"]
    lines += [rf"\par\smallskip\footnotesize {latex_text(table.note)}"] if table.note else []
    return "\n".join([*lines, r"\end{table}"]) + "\n"


def latex_text(text: str) -> str:
    """Text with the special characters of LaTeX escaped."""
    escaped = _SPECIAL.sub(lambda found: _LATEX.get(found[0], "\\" + found[0]), _plain(text))
    for sign in ("±", "×", "∞"):
        escaped = escaped.replace(sign, _LATEX[sign])
    return escaped


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
