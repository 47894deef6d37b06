"""A recipe for one external program, kept as data."""

import string
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cache
from importlib import resources

from paceline.errors import InputError
from paceline.located_toml import Table, parse_toml
from paceline.naming import look_up


@dataclass(frozen=True)
class Recipe:
    """How to run one program so that its figures can be compared, and what its log is good for.

    ``command`` is a template with placeholders in braces ({ranks}, {batch}, ...), ``log`` names
    the file to import afterwards. ``comparable`` lists the options without which numbers of two
    programs do not mean the same; ``tells`` and ``does_not_tell`` are about the log.
    """

    name: str
    title: str
    reader: str
    install: tuple[str, ...]
    command: str
    log: str
    comparable: tuple[str, ...]
    tells: tuple[str, ...]
    does_not_tell: tuple[str, ...]
    placeholders: Mapping[str, str]


@cache
def recipes() -> dict[str, Recipe]:
    """Every recipe by name, in alphabetical order."""
    folder = resources.files("paceline.measurement.recipes") / "data"
    found = [
        _read(parse_toml(entry.read_text(encoding="utf-8"), entry.name))
        for entry in folder.iterdir()
        if entry.name.endswith(".toml")
    ]
    return {one.name: one for one in sorted(found, key=lambda one: one.name)}


def recipe(name: str) -> Recipe:
    """The recipe called ``name``; an unknown name suggests the nearest ones."""
    return look_up("recipe", name, recipes(), "'paceline recipes' lists all")


def placeholders(template: str) -> list[str]:
    """Names in braces of a command template, each once, in order."""
    try:
        names = [name for _, name, _, _ in string.Formatter().parse(template) if name is not None]
    except ValueError as error:
        raise InputError(
            f"'{template}' is not a command template: {error}", "write {{ for a brace"
        ) from None
    return list(dict.fromkeys(names))


def fill(template: str, values: Mapping[str, object]) -> str:
    """The command with every placeholder filled in; a missing value is named."""
    missing = [name for name in placeholders(template) if name not in values]
    if missing:
        raise InputError(
            f"the command needs {', '.join('{' + name + '}' for name in missing)}",
            f"give it with --set {missing[0]}=VALUE",
        )
    return template.format(**{name: values[name] for name in placeholders(template)})


def _read(root: Table) -> Recipe:
    keys = tuple(field.name for field in fields(Recipe) if field.name != "name")
    root.check_keys(keys, needed=keys)
    described = root.table("placeholders")
    return Recipe(
        name=root.file.removesuffix(".toml"),
        title=root.text_of("title"),
        reader=root.text_of("reader"),
        install=tuple(root.names("install")),
        command=root.text_of("command").strip(),
        log=root.text_of("log"),
        comparable=tuple(root.names("comparable")),
        tells=tuple(root.names("tells")),
        does_not_tell=tuple(root.names("does_not_tell")),
        placeholders={name: described.text_of(name) for name in described.values},
    )
