"""Recipes of training programs that Paceline does not install, as text."""

import textwrap
from collections.abc import Iterable, Mapping
from dataclasses import asdict

from paceline.catalog.listing import Listing
from paceline.frameworks.program_recipe import ProgramRecipe
from paceline.naming import look_up
from paceline.render.terminal import prose


def recipe_list(recipes: Iterable[ProgramRecipe]) -> Listing:
    found = list(recipes)
    width = max(len(one.name) for one in found)
    lines = tuple(f"  {one.name:<{width}}  {one.title}" for one in found)
    entries = tuple({"name": one.name, "title": one.title} for one in found)
    return Listing("recipes", entries, lines, (f"paceline catalog recipes {found[0].name}",))


def recipe_entry(recipe: ProgramRecipe, values: Mapping[str, str]) -> Listing:
    """One recipe, with the placeholders in ``values`` filled in."""
    command, known = recipe.command, dict(recipe.placeholders)
    for name, value in values.items():
        look_up(f"placeholder of {recipe.name}", name, known, f"choose one of {', '.join(known)}")
        command = command.replace("{" + name + "}", value)
    fields = {**asdict(recipe), "placeholders": known, "filled_command": command}
    further = ("paceline run --help", "paceline import --help")
    return Listing("recipes", (fields,), tuple(_lines(recipe, command, values)), further)


def _lines(recipe: ProgramRecipe, command: str, values: Mapping[str, str]) -> Iterable[str]:
    log = recipe.log.split()[0].rstrip(";,")
    wrapped = textwrap.wrap(
        f"{command} > {log} 2>&1",
        92,
        initial_indent="  ",
        subsequent_indent="      ",
        break_long_words=False,
        break_on_hyphens=False,
    )
    yield f"{recipe.title}\n\nRun\n" + " \\\n".join(wrapped)
    for name, meaning in recipe.placeholders.items():
        if name not in values:
            yield f"    {{{name}}}  {meaning}"
    yield f"  then 'paceline import {log} --dry-run' (the log: {recipe.log})"
    for heading, items in (
        ("Install", recipe.install),
        ("Settings for a fair comparison", recipe.comparable),
        ("The log contains", recipe.log_contains),
        ("The log does not contain", recipe.log_lacks),
    ):
        yield f"\n{heading}"
        for item in items:
            yield from prose(f"  - {item}", "    ")
    yield ""
