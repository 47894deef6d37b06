"""Layout of untrusted text (layer names, host names, labels)."""

import unicodedata

NO_ROOM = "does NOT fit"
"""Mark of a plan that needs more memory than a device has."""

MISSING = "–"
"""Text for an unknown number."""


def printable(text: str) -> str:
    """``text`` on one line without control characters."""
    # Terminals interpret them, and XML 1.0 forbids them.
    if text.isascii() and text.isprintable():
        return text
    return "".join(" " if c in "\n\r\t" else c for c in text if _is_shown(c))


def display_width(text: str) -> int:
    """Terminal columns that ``text`` takes: wide characters two, combining ones none."""
    if text.isascii():
        return len(text)
    return sum(_columns(character) for character in text)


def pad(text: str, width: int, *, right: bool = False, fill: str = " ") -> str:
    """``text`` padded to ``width`` terminal columns, at the left edge or the ``right`` one."""
    filling = fill * max(0, width - display_width(text))
    return filling + text if right else text + filling


def shorten(text: str, width: int) -> str:
    """``text`` truncated to ``width`` terminal columns, with an ellipsis."""
    if display_width(text) <= width:
        return text
    kept, used = "", 1
    for character in text:
        used += _columns(character)
        if used > width:
            break
        kept += character
    return kept.rstrip() + "…" if width > 0 else ""


def wrap(text: str, width: int) -> list[str]:
    """``text`` in lines of at most ``width`` terminal columns, broken between words if possible."""
    lines: list[str] = []
    line = ""
    for word in text.split():
        if line and display_width(line) + 1 + display_width(word) <= width:
            line = f"{line} {word}"
            continue
        lines += [line] if line else []
        *full, line = _pieces(word, max(width, 2))
        lines += full
    return [*lines, line] if line else lines


def _pieces(word: str, width: int) -> list[str]:
    """``word`` cut so that each piece fits ``width`` columns."""
    pieces, used = [""], 0
    for character in word:
        used += _columns(character)
        if used > width:
            pieces.append("")
            used = _columns(character)
        pieces[-1] += character
    return pieces


def _is_shown(character: str) -> bool:
    if character in "\n\r\t":
        return True
    return unicodedata.category(character) not in {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}


def _columns(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1
