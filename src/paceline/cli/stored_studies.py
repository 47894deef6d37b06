"""Subcommands of ``paceline study`` on recorded studies."""

import shlex
from pathlib import Path

import click

from paceline.cli.echo import echo
from paceline.cli.next_steps import command_line, next_line, same_job
from paceline.cli.options import (
    IntegerRange,
    out_option,
    store_option,
    study_name,
    timeout_seconds,
)
from paceline.cli.output import emit, json_option
from paceline.cli.study_arguments import study_argument
from paceline.errors import InputError
from paceline.units import plural

_STUDY = study_argument(may_be_left_out=False)


@click.command("list", epilog="\b\nExample:\n  paceline study list --launches --last 5")
@click.option("--launches", "each_launch", is_flag=True, help="List launches instead of studies.")
@click.option("--last", type=IntegerRange(1), help="Number of newest launches [default: 40].")
@store_option
@json_option
def list_studies(
    each_launch: bool, last: int | None, store_path: Path | None, as_json: bool
) -> None:
    """List studies, or launches of all studies, newest last."""
    from paceline.store.api import launches, studies

    if each_launch:
        found = launches(last=last or 40, store=store_path)
        newest = found.launches[-1] if found.launches else None
        further = [command_line("study", "show", newest.id)] if newest else []
        emit(found, as_json, *further)
        return
    if last is not None:
        raise InputError("--last requires --launches", "add --launches")
    listed = studies(store=store_path)
    names = [one.name for one in listed.studies[-1:]]
    emit(listed, as_json, *(command_line(*words, name) for name in names for words in _AFTER_LIST))


_AFTER_LIST = (("study", "show"), ("report",))


@click.command(
    short_help="List the launches of a study, or show one.",
    epilog="\b\nExamples:\n  paceline study show resnet44-0147\n  paceline study show 19a3b",
)
@study_argument("subject", "STUDY|LAUNCH")
@click.option("--last", type=IntegerRange(1), help="Number of newest launches [default: 40].")
@out_option("--trace", "Write the instrumented step of a launch as a Chrome trace.")
@store_option
@json_option
def show(
    subject: str, last: int | None, trace: Path | None, store_path: Path | None, as_json: bool
) -> None:
    """List the launches of a study, or show everything recorded about one launch.

    A prefix of the id of a launch is enough.
    """
    from paceline.store.api import LaunchDetails
    from paceline.store.api import show as shown

    found = shown(subject, last=last, trace=trace, store=store_path)
    if isinstance(found, LaunchDetails):
        emit(found, as_json, command_line("report", found.launch.study))
        return
    newest = found.launches[-1]
    emit(
        found,
        as_json,
        command_line("study", "show", newest.id),
        command_line("report", newest.study),
        command_line("study", "export", "launches.csv", "--study", newest.study),
    )


@click.command(epilog="\b\nExample:\n  paceline study rename resnet44-0147 before-upgrade")
@_STUDY
@click.argument("new", callback=study_name)
@store_option
def rename(study: str, new: str, store_path: Path | None) -> None:
    """Rename STUDY to NEW."""
    from paceline.store.api import rename_study

    rename_study(study, new, store=store_path)
    echo(f"Renamed {study} to {new}")
    next_line(command_line("study", "show", new))


@click.command(epilog="\b\nExample:\n  paceline study delete resnet44-0147 --yes")
@_STUDY
@click.option("--yes", is_flag=True, help="Confirm the deletion.")
@store_option
def delete(study: str, yes: bool, store_path: Path | None) -> None:
    """Delete STUDY with all its launches and their logs."""
    from paceline.store.api import delete_study, launches

    if not yes:
        count = plural(launches(study, last=1, store=store_path).total, "launch")
        raise InputError(f"{study} has {count}; deletion is permanent", "add --yes to confirm")
    count = plural(delete_study(study, store=store_path), "launch")
    echo(f"Deleted {study} with {count}")
    next_line(command_line("study", "list"))


@click.command(epilog='\b\nExample:\n  paceline study annotate resnet44-0147 "new kernel"')
@click.argument("subject")
@click.argument("note")
@store_option
def annotate(subject: str, note: str, store_path: Path | None) -> None:
    """Attach NOTE to SUBJECT, a study or a prefix of a launch id."""
    from paceline.store.api import annotate as add_note

    add_note(subject, note, store=store_path)
    echo(f"Added a note to {subject}")
    next_line(command_line("study", "list"))


@click.command(epilog="\b\nExample:\n  paceline study merge other.db")
@click.argument("other", type=click.Path(path_type=Path, dir_okay=False, exists=True))
@store_option
@json_option
def merge(other: Path, store_path: Path | None, as_json: bool) -> None:
    """Copy the launches of store OTHER into this one.

    Launches that are already present are skipped.
    """
    from paceline.store.api import merge_store

    emit(merge_store(other, store=store_path), as_json, command_line("study", "list"))


@click.command(epilog="\b\nExample:\n  paceline study rerun resnet44-0147 --launches 5")
@study_argument("subject", "STUDY|LAUNCH")
@click.option(
    "--launches",
    type=IntegerRange(1),
    help="Launches per configuration [default: as before, or 3].",
)
@click.option(
    "--study",
    "name",
    metavar="NAME",
    callback=study_name,
    help="Name of the new study [default: STUDY-rerun].",
)
@click.option("--timeout", metavar="DURATION", help="Time limit of a launch [default: as before].")
@store_option
@json_option
def rerun(
    subject: str,
    launches: int | None,
    name: str | None,
    timeout: str | None,
    store_path: Path | None,
    as_json: bool,
) -> None:
    """Repeat the measurements of a study or launch as a new study.

    The same command continues after an interruption.
    """
    from paceline.cli.progress import study_progress
    from paceline.study.api import rerun as repeated

    with study_progress(f"rerun of {subject}") as progress:
        study = repeated(
            subject,
            launches=launches,
            name=name,
            timeout_seconds=timeout_seconds(timeout),
            store=store_path,
            on_launch=progress.before_launch,
        )
    emit(study, as_json, command_line("compare", subject, study.name))
    if not study.has_results:
        raise SystemExit(1)


@click.command(
    short_help="Export launches as CSV or Parquet.",
    epilog="\b\nExample:\n  paceline study export steps.parquet --table steps",
)
@click.argument("path", type=click.Path(path_type=Path, dir_okay=False))
@click.option(
    "--table",
    type=click.Choice(["launches", "steps", "phases", "layers"]),
    default="launches",
    show_default=True,
    help="One row per launch, per step or phase of each rank, or per layer.",
)
@click.option("--study", metavar="NAME", help="Export only this study.")
@store_option
@json_option
def export(
    path: Path, table: str, study: str | None, store_path: Path | None, as_json: bool
) -> None:
    """Export launches as a tidy table; the suffix of PATH selects CSV or Parquet.

    docs/reference/tables.md describes the columns, with examples for pandas and R.
    """
    from paceline.store.api import export as exported

    found = exported(path, table=table, study=study, store=store_path)
    emit(found, as_json, same_job("study list"))


@click.command(
    short_help="Write a study as a directory for an artifact evaluation.",
    epilog="\b\nExample:\n  paceline study package resnet44-0147 --out artifact",
)
@_STUDY
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    help="New directory [default: STUDY-package].",
)
@store_option
@json_option
def package(study: str, out: Path | None, store_path: Path | None, as_json: bool) -> None:
    """Write STUDY as a directory: launches, tables, results, figures, report and checksums."""
    from paceline.study.package import package_study

    written = package_study(study, out=out, store=store_path)
    emit(written, as_json, shlex.join(["paceline", "study", "verify", str(written.directory)]))


@click.command(
    short_help="Recompute the results of a package and compare them.",
    epilog="\b\nExample:\n  paceline study verify artifact",
)
@click.argument("directory", type=click.Path(path_type=Path, file_okay=False, exists=True))
@json_option
def verify(directory: Path, as_json: bool) -> None:
    """Check the files of the package in DIRECTORY and compute its results again.

    The exit code is 1 if a file differs.
    """
    from paceline.study.package import verify_package

    found = verify_package(directory)
    emit(found, as_json)
    if found.problems:
        raise SystemExit(1)


STORED_STUDIES = (
    *(list_studies, show, rename, delete, annotate, merge, rerun),
    *(export, package, verify),
)
