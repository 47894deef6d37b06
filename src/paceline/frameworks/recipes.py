"""How to run a training program that Paceline does not install, and what its log is good for."""

import string
from collections.abc import Mapping
from dataclasses import dataclass, fields

from paceline.errors import InputError
from paceline.located_toml import TomlTable


@dataclass(frozen=True)
class ProgramRecipe:
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


def read_recipe(table: TomlTable) -> ProgramRecipe:
    """The recipe of one ``[recipe.NAME]`` table."""
    keys = tuple(field.name for field in fields(ProgramRecipe) if field.name != "name")
    table.check_keys(keys, needed=keys)
    described = table.table("placeholders")
    return ProgramRecipe(
        name=table.name,
        title=table.text_of("title"),
        reader=table.text_of("reader"),
        install=tuple(table.names("install")),
        command=table.text_of("command").strip(),
        log=table.text_of("log"),
        comparable=tuple(table.names("comparable")),
        tells=tuple(table.names("tells")),
        does_not_tell=tuple(table.names("does_not_tell")),
        placeholders={name: described.text_of(name) for name in described.values},
    )


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
