"""``paceline hardware``: devices, links and clusters with the source of each number."""

from pathlib import Path

import click

from paceline.cli.next_steps import next_line, same_job
from paceline.cli.output import emit_json, json_option, show

LISTS = ("devices", "links", "clusters", "libraries", "frameworks")

EXAMPLE = """
\b
Examples:
  paceline hardware devices
  paceline hardware A100-80GB
  paceline hardware dgx-h100 --json
  paceline hardware clusters --file lab.toml
"""


@click.command(epilog=EXAMPLE)
@click.argument("what", default="clusters", metavar="[LIST|NAME]")
@click.option(
    "--file",
    "own_file",
    type=click.Path(path_type=Path, dir_okay=False),
    help="TOML file with your hardware; overrides entries of the catalogue.",
)
@json_option
def command(what: str, own_file: Path | None, as_json: bool) -> None:
    """List hardware, or show one entry with the source of each number.

    LIST is devices, links, clusters, libraries or frameworks; NAME is the name of an entry.
    """
    from paceline.catalog.hardware_entry_tables import entry
    from paceline.catalog.hardware_list_tables import listing
    from paceline.hardware.catalogue import catalogue

    known = catalogue().extended_with(own_file) if own_file else catalogue()
    if what in LISTS:
        listed = listing(what, known)
        if as_json:
            emit_json("hardware-list", 1, {"list": what, "entries": listed.entries})
            return
        show([listed.table])
        next_line(same_job("hardware", what=listed.example), "paceline predict --help")
        return
    found = entry(what, known)
    if as_json:
        emit_json("hardware", 1, found.facts)
        return
    show(found.parts)
    next_line(*found.next_commands)
