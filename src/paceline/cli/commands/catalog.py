"""``paceline catalog``: models, hardware, constants, published rows and recipes."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from paceline.cli.echo import echo
from paceline.cli.options import IntegerRange, parse_settings
from paceline.cli.output import emit, json_option
from paceline.errors import InputError

if TYPE_CHECKING:
    from paceline.catalog.listing import Listing

EXAMPLE = """
\b
Examples:
  paceline catalog models llama
  paceline catalog devices
  paceline catalog devices A100-80GB
  paceline catalog clusters dgx-h100 --json
  paceline catalog links --file lab.toml
  paceline catalog constants libraries.nccl --status prior
  paceline catalog publications --model bert_base --where 'nodes>1' --sort -throughput
  paceline catalog recipes caffe
"""


@click.group(epilog=EXAMPLE)
def command() -> None:
    """List models, devices, links, clusters, frameworks, constants and published rows.

    Give a NAME to show one entry with the source of each number.
    """


def _show(found: "Listing", as_json: bool) -> None:
    emit(found, as_json, *found.next_commands)


_GIVEN = ParameterSource.COMMANDLINE
_NAME = click.argument("name", required=False, metavar="[NAME]")
_FILE = click.Option(
    ["--file"],
    type=click.Path(path_type=Path, dir_okay=False),
    help="TOML file with your hardware; overrides entries of the catalogue.",
)


@command.command(
    short_help="List the built-in models.",
    epilog="\b\nExample:\n  paceline catalog models llama",
)
@click.argument("search", default="", metavar="[SEARCH]")
@json_option
def models(search: str, as_json: bool) -> None:
    """List the built-in models, or those whose name contains SEARCH.

    Transformers of any size are available as gpt_h{hidden}_l{layers} and
    bert_h{hidden}_l{layers}, optionally followed by _a{heads} and _v{vocabulary}.
    """
    from paceline.catalog.api import models

    _show(models(search), as_json)


_SIMPLE = (
    (
        "devices",
        "devices",
        "A100-80GB",
        "with peak FLOP/s and memory, or show one with its sources",
    ),
    ("links", "links", "ib_edr_100g", "with bandwidth and latency, or show one with its sources"),
    ("clusters", "clusters", "dgx-a100", "with device and links, or show one with its parts"),
    ("libraries", "libraries", "nccl", "for communication, or show the algorithms of one"),
    (
        "frameworks",
        "framework_profiles",
        "torch-ddp",
        "as the predictor models them, or show one ('paceline frameworks' installs them)",
    ),
)
"""Subcommand, public function, an example of NAME, and the end of the help text."""


def _add_listing(name: str, function: str, example: str, text: str) -> None:
    """Add a subcommand that lists entries or shows one."""

    @command.command(
        name,
        short_help=f"List {name}, or show one.",
        help=f"List {name} {text}.",
        epilog=f"\b\nExample:\n  paceline catalog {name} {example}",
    )
    @_NAME
    @json_option
    def listed(as_json: bool, **options: Any) -> None:
        from paceline.catalog import api

        _show(getattr(api, function)(**options), as_json)

    if name in ("devices", "links", "clusters"):
        listed.params.insert(1, _FILE)


for _one in _SIMPLE:
    _add_listing(*_one)


@command.command(
    short_help="List the constants of the predictor.",
    epilog="\b\nExample:\n  paceline catalog constants kernels.matrix.ceiling",
)
@_NAME
@click.option(
    "--status",
    type=click.Choice(["fact", "prior", "fitted"]),
    help="List only constants of this status.",
)
@json_option
def constants(name: str | None, status: str | None, as_json: bool) -> None:
    """List the constants of the predictor with unit, status and source.

    NAME is a constant, shown with the effect of a 10 % increase on standard cases, or a prefix
    such as libraries.nccl, which lists the constants below it.
    """
    from paceline.catalog.api import predictor_constants

    _show(predictor_constants(name, status=status), as_json)


@command.command(
    short_help="Show how to run other programs.",
    epilog="\b\nExample:\n  paceline catalog recipes pydtnn --set ranks=2",
)
@_NAME
@click.option(
    "--set",
    "values",
    multiple=True,
    metavar="NAME=VALUE",
    help="Value of a placeholder; repeat for each placeholder.",
)
@json_option
def recipes(name: str | None, values: tuple[str, ...], as_json: bool) -> None:
    """Show how to run another training program and collect its log for a comparison."""
    from paceline.catalog.api import recipes

    _show(recipes(name, values=parse_settings(values)), as_json)


def _filter(name: str, example: str) -> Callable[[Any], Any]:
    return click.option(f"--{name}", metavar="NAME", help=f"Select a {name}, such as {example}.")


@command.command(
    short_help="List published measurements.",
    epilog="\b\nExample:\n  paceline catalog publications --family hkbu --limit 5",
)
@_filter("family", "dlperf")
@_filter("model", "resnet50_v1.5")
@_filter("device", "v100_sxm2_16gb")
@_filter("framework", "pytorch_ddp")
@click.option(
    "--where",
    multiple=True,
    metavar="CONDITION",
    help="COLUMN=VALUE, or with != < <= > >= or ~ (contains); repeatable.",
)
@click.option(
    "--sort",
    metavar="[-]COLUMN",
    default="id",
    show_default=True,
    help="Sort by a column; -COLUMN sorts in descending order.",
)
@click.option("--limit", type=IntegerRange(min=1), help="Number of rows to show.  [default: 40]")
@click.option("--export", type=click.Path(dir_okay=False), help="Write all selected rows as CSV.")
@click.option("--sources", is_flag=True, help="List the sources and their licences.")
@json_option
def publications(sources: bool, as_json: bool, **filters: Any) -> None:
    """List the published measurements that 'paceline validate' scores predictions on.

    None of them was measured by Paceline; every row cites the page of its publication.
    """
    from paceline.catalog.api import published_rows, published_sources

    context = click.get_current_context()
    given = [name for name in filters if context.get_parameter_source(name) is _GIVEN]
    if sources and given:
        raise InputError("--sources lists all sources", f"omit --{given[0]}")
    _show(published_sources() if sources else published_rows(**filters), as_json)
    if filters["export"]:
        echo(f"wrote the selected rows to {filters['export']}", err=True)
