"""Look-up by name with suggestions: every registry answers a typo the same way."""

import difflib
from collections.abc import Iterable, Mapping
from typing import TypeVar

from paceline.errors import UnknownNameError

T = TypeVar("T")


def nearest(name: str, known: Iterable[str], count: int = 3) -> list[str]:
    """The ``count`` known names most like ``name``, best first."""
    folded = {candidate.lower(): candidate for candidate in known}
    query = name.lower()
    contains = sorted((k for k in folded if query and (query in k or k in query)), key=len)
    close = difflib.get_close_matches(query, folded, n=count, cutoff=0.5)
    ordered = dict.fromkeys([*close, *contains])
    return [folded[k] for k in list(ordered)[:count]]


def file_name(name: str) -> str:
    """``name`` as one part of a path: what separates or hides files becomes a dash."""
    kept = "".join(letter if letter.isprintable() and letter != "/" else "-" for letter in name)
    return kept.lstrip(".") or "unnamed"


def unknown_name(kind: str, name: str, known: Iterable[str], hint: str) -> UnknownNameError:
    """The error for ``name`` that no registry of ``kind`` has, with the nearest names in it."""
    near = nearest(name, known)
    suggestion = f" Near: {', '.join(near)}" if near else ""
    return UnknownNameError(f"no {kind} named '{name}'.{suggestion}", hint)


def look_up(kind: str, name: str, table: Mapping[str, T], hint: str) -> T:
    """``table[name]``, or an `UnknownNameError` that suggests the nearest names."""
    try:
        return table[name]
    except KeyError:
        raise unknown_name(kind, name, table, hint) from None
