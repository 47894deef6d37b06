"""Look-up by name with suggestions for typos, shared by all registries."""

import difflib
from collections.abc import Iterable, Mapping
from typing import TypeVar

from paceline.errors import UnknownNameError

T = TypeVar("T")


def nearest(name: str, known: Iterable[str], count: int = 3) -> list[str]:
    """The ``count`` known names most similar to ``name``, best first."""
    folded = {candidate.lower(): candidate for candidate in known}
    query = name.lower()
    contains = sorted((k for k in folded if query and (query in k or k in query)), key=len)
    close = difflib.get_close_matches(query, folded, n=count, cutoff=0.5)
    ordered = dict.fromkeys([*close, *contains])
    return [folded[k] for k in list(ordered)[:count]]


def file_name(name: str) -> str:
    """``name`` as a file name: slashes and control characters become dashes, leading dots go."""
    kept = "".join(letter if letter.isprintable() and letter != "/" else "-" for letter in name)
    return kept.lstrip(".") or "unnamed"


def unknown_name(kind: str, name: str, known: Iterable[str], hint: str) -> UnknownNameError:
    """The error for a ``name`` that is not in ``known``, with similar names as suggestions."""
    return UnknownNameError(f"no {kind} named '{name}'.{did_you_mean(name, known)}", hint)


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """`` Did you mean resnet50, resnet56?``; empty if no known name is similar."""
    near = nearest(name, known)
    return f" Did you mean {', '.join(near)}?" if near else ""


def look_up(kind: str, name: str, table: Mapping[str, T], hint: str) -> T:
    """``table[name]``, or an `UnknownNameError` that suggests similar names."""
    try:
        return table[name]
    except KeyError:
        raise unknown_name(kind, name, table, hint) from None
