"""Options of the command line, derived from declared knobs."""

from collections.abc import Collection
from typing import Any

import click

from paceline.cli.help_sections import Options, together
from paceline.spec.knob import KnobField, knobs_of

_METAVARS = {int: "N", float: "X"}


class KnobType(click.ParamType[Any]):
    """The value of a knob: checked as in Python, with the spelling of the option in errors."""

    def __init__(self, knob: KnobField) -> None:
        self.knob = knob
        self.name = knob.kind.__name__

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The value of an argument; defaults pass."""
        return self.knob.read(value) if isinstance(value, str) else value


class NegativeFlag(click.Option):
    """``--x/--no-x`` with ``--x`` as the default: help lists ``--no-x``."""

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        """The help record of the second spelling."""
        record = super().get_help_record(ctx)
        return record and (self.secondary_opts[0], record[1])


def options_of(*specs: type, only: Collection[str] = (), without: Collection[str] = ()) -> Options:
    """A decorator that adds the knobs of ``specs`` to a command, in sections by group.

    Commands receive the keywords of the Python function; None is "not given". ``only`` and
    ``without`` select knobs by name.
    """
    knobs = [
        knob
        for spec in specs
        for name, knob in knobs_of(spec).items()
        if name not in without and (not only or name in only)
    ]
    groups = list(dict.fromkeys(knob.knob.group for knob in knobs))
    knobs.sort(key=lambda knob: groups.index(knob.knob.group))
    return together(*(_option(knob) for knob in knobs))


def _option(knob: KnobField) -> Options:
    metadata = knob.knob
    settings: dict[str, Any] = {"default": knob.default, "help": metadata.text}
    spelling = knob.option
    if knob.kind is not bool:
        settings |= {"type": KnobType(knob), "metavar": metavar_of(knob)}
        if metadata.repeated:
            settings |= {"multiple": True, "callback": lambda _, __, given: list(given) or None}
    elif knob.has_negation:
        spelling = f"{spelling}/{knob.negation}"
        settings |= {"cls": NegativeFlag} if metadata.negative else {}
    else:
        settings["is_flag"] = True
    if knob.default not in (None, False, ()):
        settings["show_default"] = True

    def added(function: Any) -> Any:
        spellings = [spelling, *([metadata.also] if metadata.also else [])]
        function = click.option(*spellings, knob.name, **settings)(function)
        function.__click_params__[-1].section = metadata.group
        return function

    return added


def metavar_of(knob: KnobField) -> str:
    """The notation of a value in help and documentation."""
    if knob.knob.metavar:
        return knob.knob.metavar
    choices = [str(choice) for choice in knob.knob.choices]
    return f"[{'|'.join(choices)}]" if choices else _METAVARS.get(knob.kind, "TEXT")
