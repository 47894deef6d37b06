"""Options that several commands share, with one spelling and one meaning."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

from paceline.errors import InputError

F = TypeVar("F", bound=Callable[..., Any])


def store_option(function: F) -> F:
    """Add ``--store``: the database of launches."""
    return click.option(
        "--store",
        "store_path",
        type=click.Path(path_type=Path, dir_okay=False),
        default=None,
        help="Database of launches [default: $PACELINE_STORE or .paceline/paceline.db].",
    )(function)


def parse_places(text: str) -> list[tuple[int, int]]:
    """Nodes and processes per node of ``1x1,1x2``; a bare ``4`` is one node of 4."""
    places = []
    for part in text.split(","):
        nodes, _, processes = part.strip().lower().rpartition("x")
        try:
            place = (int(nodes) if nodes else 1, int(processes))
        except ValueError:
            raise InputError(f"'{part}' is not NODESxPROCESSES", "write -j 1x1,1x2") from None
        if min(place) < 1:
            raise InputError(f"'{part}' has no process", "write -j 1x1,1x2")
        places.append(place)
    return places


def parse_settings(texts: Sequence[str]) -> dict[str, str]:
    """Names and values of ``--set NAME=VALUE`` options."""
    settings: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise InputError(f"'{text}' is not NAME=VALUE", "write --set ranks=2")
        settings[name] = value
    return settings


def parse_one_place(text: str | None) -> tuple[int | None, int | None]:
    """Nodes and processes in all of ``2x4``; neither is known without a text."""
    if text is None:
        return None, None
    places = parse_places(text)
    if len(places) != 1:
        raise InputError(f"'{text}' is more than one place", "give one: -j 2x4")
    nodes, processes = places[0]
    return nodes, nodes * processes
