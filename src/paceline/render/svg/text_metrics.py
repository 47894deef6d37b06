"""Approximate width of text, for layout without a font."""

import unicodedata

FONT_SIZE = 12.0
"""Pixels; the size of all text in a drawing unless its class has another one."""

_NARROW = frozenset("iljtfrI.,:;'|!()[]{}/\\ -·")
_WIDE = frozenset("mwMW@%&—…∞")


def text_width(text: str, size: float = FONT_SIZE) -> float:
    """Upper estimate of the width of ``text`` in pixels in a common sans-serif font."""
    return sum(map(_em, text)) * size


def fitted(text: str, width: float, size: float = FONT_SIZE) -> str:
    """``text``, cut with an ellipsis if it is wider than ``width`` pixels."""
    if text_width(text, size) <= width:
        return text
    room = width - text_width("…", size)
    kept = 0
    for character in text:
        room -= _em(character) * size
        if room < 0:
            break
        kept += 1
    return text[:kept].rstrip() + "…" if kept else ""


def _em(character: str) -> float:
    if character in _NARROW:
        return 0.38
    if character in _WIDE:
        return 0.95
    if unicodedata.combining(character):
        return 0.0
    if unicodedata.east_asian_width(character) in "WF":
        return 1.05
    return 0.72 if character.isupper() else 0.6
