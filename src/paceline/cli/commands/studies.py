"""``paceline studies``: list, rename, delete, annotate and merge studies."""

from dataclasses import asdict
from pathlib import Path

import click

from paceline.cli.echo import echo
from paceline.cli.next_steps import command_line, next_line
from paceline.cli.options import store_option, study_name
from paceline.cli.output import emit_json, json_option, show
from paceline.cli.study_arguments import study_argument
from paceline.errors import InputError
from paceline.units import plural

EXAMPLE = """
\b
Examples:
  paceline studies
  paceline studies rename resnet44-0147 before-upgrade
  paceline studies annotate resnet44-0147 "new kernel, governor performance"
  paceline studies merge other.db
  paceline studies delete resnet44-0147 --yes
"""
_STUDY = study_argument(may_be_left_out=False)


@click.group(epilog=EXAMPLE, invoke_without_command=True)
@store_option
@json_option
@click.pass_context
def command(context: click.Context, store_path: Path | None, as_json: bool) -> None:
    """List, rename, delete, annotate or merge studies."""
    if context.invoked_subcommand is not None:
        return
    from paceline.render.table import Column, Table
    from paceline.store import Store, default_store_path
    from paceline.store.housekeeping import study_summaries

    with Store(store_path or default_store_path(), create=False) as store:
        found = study_summaries(store)
    if as_json:
        emit_json("studies", 1, {"studies": [asdict(one) for one in found]})
        return
    show(
        [
            Table.of(
                found,
                (Column("study"), lambda one: one.name),
                (Column("launches", decimals=0), lambda one: one.launches),
                (Column("finished", decimals=0), lambda one: one.finished),
                (Column("failed", decimals=0), lambda one: one.failed),
                (Column("models"), lambda one: one.models),
                (Column("frameworks"), lambda one: one.frameworks),
                (Column("last"), lambda one: one.last_at[:16].replace("T", " ")),
                (Column("notes"), lambda one: "; ".join(one.notes)),
                note=f"{plural(len(found), 'study')}; times are in UTC.",
            )
        ]
    )
    if found:
        next_line(command_line("report", found[-1].name), command_line("list"))


@command.command(epilog="\b\nExample:\n  paceline studies rename resnet44-0147 before-upgrade")
@_STUDY
@click.argument("new", callback=study_name)
@store_option
def rename(study: str, new: str, store_path: Path | None) -> None:
    """Rename STUDY to NEW."""
    from paceline.store import Store, default_store_path
    from paceline.store.housekeeping import rename_study

    with Store(_existing(store_path or default_store_path())) as store:
        rename_study(store, study, new)
    echo(f"Renamed {study} to {new}")
    next_line(command_line("list", "--study", new))


@command.command(epilog="\b\nExample:\n  paceline studies delete resnet44-0147 --yes")
@_STUDY
@click.option("--yes", is_flag=True, help="Confirm the deletion.")
@store_option
def delete(study: str, yes: bool, store_path: Path | None) -> None:
    """Delete STUDY with all its launches and their logs."""
    from paceline.store import Store, default_store_path
    from paceline.store.housekeeping import delete_study

    with Store(_existing(store_path or default_store_path())) as store:
        if not yes:
            count = store.count(study)
            if not count:
                raise store.no_study(study)
            raise InputError(
                f"{study} has {plural(count, 'launch')}; deletion is permanent",
                "add --yes to confirm",
            )
        count = delete_study(store, study)
    echo(f"Deleted {study} with {plural(count, 'launch')}")
    next_line(command_line("studies"))


@command.command(epilog='\b\nExample:\n  paceline studies annotate resnet44-0147 "new kernel"')
@click.argument("subject")
@click.argument("note")
@store_option
def annotate(subject: str, note: str, store_path: Path | None) -> None:
    """Attach NOTE to SUBJECT, a study or a prefix of a launch id."""
    from paceline.store import Store, default_store_path
    from paceline.store.housekeeping import annotate

    with Store(_existing(store_path or default_store_path())) as store:
        annotate(store, subject, note)
    echo(f"Added a note to {subject}")
    next_line(command_line("studies"))


@command.command(epilog="\b\nExample:\n  paceline studies merge other.db")
@click.argument("other", type=click.Path(path_type=Path, dir_okay=False, exists=True))
@store_option
def merge(other: Path, store_path: Path | None) -> None:
    """Copy the launches of store OTHER into this one.

    Launches that are already present are skipped.
    """
    from paceline.store import Store, default_store_path
    from paceline.store.housekeeping import merge_stores

    with Store(store_path or default_store_path()) as store:
        found = merge_stores(store, other)
    echo(f"Copied {plural(found.copied, 'launch')}; {found.known} already present")
    if found.unfinished:
        echo(f"Skipped {plural(found.unfinished, 'unfinished launch')}")
    for old, new in found.renamed.items():
        echo(f"Study {old} of {other} was renamed to {new}")
    next_line(command_line("studies"))


def _existing(path: Path) -> Path:
    """Check that the store exists: opening it for writing would create it."""
    from paceline.store import Store

    Store(path, create=False).close()
    return path
