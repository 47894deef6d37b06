"""Sections of options in the help of a command."""

from collections.abc import Callable
from typing import Any, Protocol, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])


class Options(Protocol):
    """A decorator that adds options to a command."""

    def __call__(self, function: F, /) -> F:
        """Add the options."""
        ...


def together(*options: Options, section: str = "") -> Options:
    """One decorator that adds ``options`` in the order of the help text, under a heading."""

    def added(function: F) -> F:
        before = len(getattr(function, "__click_params__", ()))
        for option in reversed(options):
            function = option(function)
        if section:
            for parameter in getattr(function, "__click_params__", ())[before:]:
                parameter.section = section
        return function

    return added


class SectionedCommand(click.Command):
    """A command whose help lists its options by `together` section; other options come last."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options of each section."""
        sections: dict[str, list[tuple[str, str]]] = {}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is not None:
                title = getattr(parameter, "section", "Other options")
                sections.setdefault(title, []).append(record)
        others = sections.pop("Other options", [])
        for title, records in {**sections, "Other options": others}.items():
            with formatter.section(title):
                formatter.write_dl(records)
