"""Arguments that name a study; optional if the store contains only one."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click
from click.core import ParameterSource

from paceline.cli.echo import echo
from paceline.errors import InputError

F = TypeVar("F", bound=Callable[..., Any])
_NAMED = 8


def study_argument(
    name: str = "study", metavar: str | None = None, *, may_be_left_out: bool = True
) -> Callable[[F], F]:
    """Add an argument that names a study.

    Without a value, the only study of the store is used; with several, an error lists them.
    Commands that change or delete a study require the name (not ``may_be_left_out``).
    """

    def named(context: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
        if value is not None or context.resilient_parsing:
            return value
        found = _only_study(context.params.get("store_path"), shown, may_be_left_out)
        context.set_parameter_source(
            name, ParameterSource.COMMANDLINE
        )  # so that next lines name it
        return found

    shown = metavar or name.upper()
    return click.argument(
        name,
        required=False,
        callback=named,
        metavar=f"[{shown}]" if may_be_left_out else shown,
    )


def _only_study(path: Path | None, metavar: str, may_be_left_out: bool) -> str:
    from paceline.store import Store, default_store_path

    with Store(path or default_store_path(), create=False) as store:
        studies = store.studies()[::-1]
    if not studies:
        raise InputError("the store contains no study", "create one with 'paceline measure'")
    if len(studies) == 1 and may_be_left_out:
        echo(f"using study {studies[0]}, the only one in the store", err=True)
        return studies[0]
    more = f" and {len(studies) - _NAMED} older" if len(studies) > _NAMED else ""
    raise InputError(
        f"missing argument {metavar}",
        f"name a study (newest first): {', '.join(studies[:_NAMED])}{more}",
    )
