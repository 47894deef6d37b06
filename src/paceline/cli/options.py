"""Options that several commands share, with one spelling and one meaning."""

from collections.abc import Callable
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
