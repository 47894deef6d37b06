"""Options of commands that measure; other commands do not load their declarations."""

from collections.abc import Mapping
from typing import Any

import click

from paceline.cli.help_sections import together
from paceline.cli.knob_options import options_of
from paceline.cli.options import study_name
from paceline.spec.knob import knobs_of
from paceline.spec.study_options import LAUNCHER, StudyOptions

study_name_option = together(
    click.option(
        "--study",
        "name",
        metavar="NAME",
        callback=study_name,
        help="Name of the study [default: model and time].",
    ),
    section="Study",
)


def study_keywords(options: Mapping[str, Any]) -> dict[str, Any]:
    """The given options of a study, except the timeout, as keywords of `paceline.Study`."""
    given = {name: value for name, value in options.items() if value is not None}
    settings = {name: given[name] for name in knobs_of(StudyOptions) if name in given}
    settings.pop("launch_seconds", None)
    return {**settings, "name": options["name"], "store": options["store_path"]}


launcher_options = options_of(StudyOptions, only=LAUNCHER)
"""Launcher, its options and hosts."""


def launcher_settings(options: Mapping[str, Any]) -> dict[str, Any]:
    """The `launcher_options` that were given, as keywords of `paceline.Study`."""
    return {name: options[name] for name in LAUNCHER if options[name]}
