"""Options shared by several commands."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from paceline.errors import InputError
from paceline.json_checks import LARGEST_COUNT
from paceline.topology import Topology, parse_topologies
from paceline.units import parse_seconds, read_integer
from paceline.user_files import check_store_path

if TYPE_CHECKING:
    from paceline.parallel_map import Workers

F = TypeVar("F", bound=Callable[..., Any])


class IntegerRange(click.IntRange):
    """An integer in a range, shown as ``INTEGER`` in help; it always fits in 64 bits."""

    name = "integer"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """The integer of ASCII digits."""
        try:
            number = read_integer(value) if isinstance(value, str) else value
            if abs(number) >= LARGEST_COUNT:
                raise ValueError
        except ValueError:
            self.fail(f"{value!r:.60} is not a valid integer.", param, ctx)
        return int(super().convert(number, param, ctx))


def study_name(context: click.Context, parameter: click.Parameter, name: str | None) -> str | None:
    """Check that a study name can be printed and used as a file name."""
    if name is not None and (not name.strip() or not name.isprintable() or "/" in name):
        raise InputError(f"invalid study name {name!r}", "use letters, digits, dots and dashes")
    return name


def timeout_seconds(text: str | None) -> float | None:
    """Seconds of ``--timeout``."""
    if text is None:
        return None
    seconds = parse_seconds(text)
    if seconds <= 0:
        raise InputError(
            f"--timeout must be greater than 0 (got '{text}')", "use a value such as 10min"
        )
    return seconds


def _store_path(
    context: click.Context, parameter: click.Parameter, path: Path | None
) -> Path | None:
    """Check the path early: some commands look for the store before they open it."""
    if path is not None:
        check_store_path(path)
    return path


store_option = click.option(
    "--store",
    "store_path",
    type=click.Path(path_type=Path, dir_okay=False),
    default=None,
    callback=_store_path,
    is_eager=True,  # study arguments read the store
    help="Database of launches [default: $PACELINE_STORE or .paceline/paceline.db].",
)

seq_option = click.option(
    "--seq",
    type=IntegerRange(),
    help="Sequence length in tokens [default: the published one].",
)

seed_option = click.option(
    "--seed",
    type=IntegerRange(),
    default=1,
    show_default=True,
    help="Seed of launch order, initial weights and data.",
)


def out_option(name: str, text: str) -> Callable[[F], F]:
    """Add an option for an output file, which is checked before the command starts."""

    def checked(
        context: click.Context, parameter: click.Parameter, path: Path | None
    ) -> Path | None:
        if path is not None:
            from paceline.render.files import check_writable

            check_writable(path)
        return path

    kind = click.Path(path_type=Path, dir_okay=False)
    return click.option(name, type=kind, callback=checked, help=text)


def figure_option(name: str, text: str) -> Callable[[F], F]:
    """Add an option for a figure file; the suffix selects SVG, PDF or PNG."""

    def checked(
        context: click.Context, parameter: click.Parameter, path: Path | None
    ) -> Path | None:
        if path is not None:
            from paceline.render.figure_files.figure_files import check_figure_path

            check_figure_path(path)
        return path

    return click.option(
        name,
        type=click.Path(path_type=Path, dir_okay=False),
        callback=checked,
        help=f"{text} (.svg, .pdf, .png).",
    )


def workers_option(function: F) -> F:
    """Add ``--workers``, checked before the command starts."""

    def checked(context: click.Context, parameter: click.Parameter, value: str) -> "Workers":
        from paceline.parallel_map import parse_workers

        return parse_workers(value)

    return click.option(
        "--workers",
        default="1",
        show_default=True,
        callback=checked,
        metavar="N|ADDRESS",
        help="Worker processes, or the address of a running cluster: tcp://HOST:8786 (Dask), "
        "ray://HOST:10001 (Ray). Results are identical.",
    )(function)


def parse_settings(texts: Sequence[str]) -> dict[str, str]:
    """Names and values of ``--set NAME=VALUE`` options."""
    settings: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise InputError(f"expected NAME=VALUE, got '{text}'", "write --set ranks=2")
        settings[name] = value
    return settings


def parse_single_topology(text: str | None) -> tuple[int | None, int | None]:
    """Nodes and total processes of ``2x4``; (None, None) without a text."""
    if text is None:
        return None, None
    topologies: list[Topology] = parse_topologies(text)
    if len(topologies) != 1:
        raise InputError(f"expected one topology, got '{text}'", "give one: -j 2x4")
    nodes, processes = topologies[0]
    return nodes, nodes * processes
