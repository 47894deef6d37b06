"""``paceline recipes``: how to run training programs that Paceline does not install."""

from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from paceline.cli.echo import echo
from paceline.cli.next_steps import next_line
from paceline.cli.options import parse_settings
from paceline.cli.output import emit_json, json_option
from paceline.errors import InputError

if TYPE_CHECKING:
    from paceline.frameworks.program_recipe import ProgramRecipe

EXAMPLE = """
\b
Examples:
  paceline recipes
  paceline recipes caffe
  paceline recipes pydtnn --set ranks=2 --set batch=32
"""


@click.command(epilog=EXAMPLE)
@click.argument("name", required=False, metavar="[NAME]")
@click.option(
    "--set", "values", multiple=True, metavar="NAME=VALUE", help="Set a placeholder; repeatable."
)
@json_option
def command(name: str | None, values: tuple[str, ...], as_json: bool) -> None:
    """Show how to run another training program and collect its log for a comparison.

    Without NAME, list the recipes.
    """
    from paceline.frameworks.framework_registry import recipe, recipes
    from paceline.naming import look_up

    if name is None:
        if values:
            raise InputError("--set requires a recipe", "write paceline recipes NAME --set ...")
        _list(list(recipes().values()), as_json)
        return
    chosen, given = recipe(name), parse_settings(values)
    filled = chosen.command
    known = dict.fromkeys(chosen.placeholders)
    for placeholder, value in given.items():
        look_up(f"placeholder of {name}", placeholder, known, f"choose one of {', '.join(known)}")
        filled = filled.replace("{" + placeholder + "}", value)
    if as_json:
        fields = {**asdict(chosen), "placeholders": dict(chosen.placeholders)}
        emit_json("recipe", 1, {**fields, "filled_command": filled})
        return
    _print(chosen, filled, given)
    next_line("paceline run --help", "paceline import --help")


def _log_file(chosen: "ProgramRecipe") -> str:
    return chosen.log.split()[0].rstrip(";,")


def _list(found: "list[ProgramRecipe]", as_json: bool) -> None:
    if as_json:
        emit_json("recipes", 1, {"recipes": [{"name": r.name, "title": r.title} for r in found]})
        return
    width = max(len(one.name) for one in found)
    for one in found:
        echo(f"  {one.name:<{width}}  {one.title}")
    next_line(f"paceline recipes {found[0].name}")


def _print(chosen: "ProgramRecipe", filled: str, given: dict[str, str]) -> None:
    import textwrap

    command_lines = textwrap.wrap(
        f"{filled} > {_log_file(chosen)} 2>&1",
        92,
        initial_indent="  ",
        subsequent_indent="      ",
        break_long_words=False,
        break_on_hyphens=False,
    )
    echo(f"{chosen.title}\n\nRun\n" + " \\\n".join(command_lines))
    for placeholder, meaning in chosen.placeholders.items():
        if placeholder not in given:
            echo(f"    {{{placeholder}}}  {meaning}")
    echo(f"  then 'paceline import {_log_file(chosen)} --dry-run' (the log: {chosen.log})")
    for heading, lines in (
        ("Install", chosen.install),
        ("Settings for a fair comparison", chosen.comparable),
        ("The log contains", chosen.tells),
        ("The log does not contain", chosen.does_not_tell),
    ):
        echo(f"\n{heading}")
        for line in lines:
            echo(textwrap.fill(line, 98, initial_indent="  - ", subsequent_indent="    "))
    echo("")
