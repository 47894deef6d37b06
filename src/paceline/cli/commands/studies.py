"""``paceline studies``: what has been studied; renamed, deleted, annotated, merged."""

from dataclasses import asdict
from pathlib import Path

import click

from paceline.cli.next_steps import command_line, next_line
from paceline.cli.options import store_option, study_name
from paceline.cli.output import emit_json, json_option, show
from paceline.cli.say import say
from paceline.cli.study_arguments import study_argument
from paceline.errors import InputError

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
    """List the studies of a store with their launches; rename, delete, annotate or merge them."""
    if context.invoked_subcommand is not None:
        return
    from paceline.report.table import Column, Table
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
                note=f"{len(found)} studies; times are UTC.",
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
    """Give STUDY the name NEW."""
    from paceline.store import Store, default_store_path
    from paceline.store.housekeeping import rename_study

    with Store(_existing(store_path or default_store_path())) as store:
        rename_study(store, study, new)
    say(f"{study} is now called {new}")
    next_line(command_line("list", "--study", new))


@command.command(epilog="\b\nExample:\n  paceline studies delete resnet44-0147 --yes")
@_STUDY
@click.option("--yes", is_flag=True, help="Delete it; without, only say what would be deleted.")
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
            raise InputError(f"this would delete {count} launches for good", "add --yes")
        count = delete_study(store, study)
    say(f"{study} is deleted, with {count} launches")
    next_line(command_line("studies"))


@command.command(epilog='\b\nExample:\n  paceline studies annotate resnet44-0147 "new kernel"')
@click.argument("subject")
@click.argument("note")
@store_option
def annotate(subject: str, note: str, store_path: Path | None) -> None:
    """Note something of SUBJECT, a study or the beginning of a launch's id."""
    from paceline.store import Store, default_store_path
    from paceline.store.housekeeping import annotate

    with Store(_existing(store_path or default_store_path())) as store:
        annotate(store, subject, note)
    say(f"noted of {subject}")
    next_line(command_line("studies"))


@command.command(epilog="\b\nExample:\n  paceline studies merge other.db")
@click.argument("other", type=click.Path(path_type=Path, dir_okay=False, exists=True))
@store_option
def merge(other: Path, store_path: Path | None) -> None:
    """Copy the launches of the store OTHER into this one; those that are here are left alone."""
    from paceline.store import Store, default_store_path
    from paceline.store.housekeeping import merge_stores

    with Store(store_path or default_store_path()) as store:
        found = merge_stores(store, other)
    say(f"{found.copied} launches copied, {found.known} were here already")
    if found.unfinished:
        say(f"{found.unfinished} launches without an end are left out")
    for old, new in found.renamed.items():
        say(f"study {old} of {other} is called {new} here")
    next_line(command_line("studies"))


def _existing(path: Path) -> Path:
    """A store that is there: opening one to write would make it."""
    from paceline.store import Store

    Store(path, create=False).close()
    return path
