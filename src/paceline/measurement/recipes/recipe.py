"""A recipe for one external program, kept as data."""

import string
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources

from paceline.errors import InputError
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
        _read(entry.name.removesuffix(".toml"), entry.read_text(encoding="utf-8"))
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


def _read(name: str, text: str) -> Recipe:
    document = tomllib.loads(text)
    return Recipe(
        name=name,
        title=document["title"],
        reader=document["reader"],
        install=tuple(document["install"]),
        command=document["command"].strip(),
        log=document["log"],
        comparable=tuple(document["comparable"]),
        tells=tuple(document["tells"]),
        does_not_tell=tuple(document["does_not_tell"]),
        placeholders=dict(document["placeholders"]),
    )
