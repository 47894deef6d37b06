"""Recipes: how to run a training program that Paceline does not install, and import its log."""

import string
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

from paceline.errors import InputError
from paceline.file_keys import NOT_IN_FILE, Key


def _stripped(value: object) -> str:
    if not isinstance(value, str):
        raise InputError(f"expected a string, not {value!r}", 'write it in "quotes"')
    return value.strip()


@dataclass(frozen=True)
class ProgramRecipe:
    """How to run one program with comparable results, and what its log contains.

    ``command`` is a template with placeholders in braces ({ranks}, {batch}, ...), ``log`` names
    the file to import afterwards. ``comparable`` lists the options that make results of two
    programs comparable; ``log_contains`` and ``log_lacks`` list the contents of the log.
    """

    name: Annotated[str, NOT_IN_FILE]
    title: str
    reader: str
    install: tuple[str, ...]
    command: Annotated[str, Key(parse=_stripped)]
    log: str
    comparable: tuple[str, ...]
    log_contains: tuple[str, ...]
    log_lacks: tuple[str, ...]
    placeholders: Mapping[str, str]


def placeholders(template: str) -> list[str]:
    """Return the placeholders of a command template, each once, in order."""
    try:
        names = [name for _, name, _, _ in string.Formatter().parse(template) if name is not None]
    except ValueError as error:
        raise InputError(
            f"invalid command template '{template}': {error}", "write {{ for a literal brace"
        ) from None
    return list(dict.fromkeys(names))


def fill(template: str, values: Mapping[str, object]) -> str:
    """Fill in the placeholders of a command; raise if a value is missing."""
    missing = [name for name in placeholders(template) if name not in values]
    if missing:
        raise InputError(
            f"missing value of {', '.join('{' + name + '}' for name in missing)}",
            f"add --set {missing[0]}=VALUE",
        )
    return template.format(**{name: values[name] for name in placeholders(template)})
