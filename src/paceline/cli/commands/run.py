"""``paceline run``: a training command of the user's own, unchanged, recorded as a launch."""

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import click

from paceline.cli.next_steps import next_line, same_job
from paceline.cli.options import (
    parse_one_place,
    parse_settings,
    store_option,
    study_name,
    timeout_seconds,
)
from paceline.cli.output import emit_json, json_option, show, show_launches, warn
from paceline.errors import InputError

if TYPE_CHECKING:
    from paceline.store import Launch

EXAMPLE = """
\b
Examples:
  paceline run -- torchrun --nproc_per_node 2 train.py
  paceline run --repeat 5 -- python train.py
  paceline run --layers -- python train.py
  paceline run --recipe pydtnn --set ranks=2 --set batch=32 --set model=alexnet_cifar10 ...
"""


@click.command(epilog=EXAMPLE)
@click.argument("command_line", nargs=-1, type=click.UNPROCESSED)
@click.option("--recipe", "recipe_name", help="Run this recipe's command (see paceline recipes).")
@click.option("--set", "values", multiple=True, metavar="NAME=VALUE", help="Fill the recipe in.")
@click.option("--program", help="Read the steps from the output, as this program's log.")
@click.option("--model", default="", help="Name of the network [default: the script's name].")
@click.option("--batch", type=click.IntRange(min=1), help="Samples per process and step.")
@click.option("-j", "place", help="NODESxPROCESSES, where the processes do not tell it.")
@click.option("--precision", default="", help="fp32, bf16, ... for the record.")
@click.option("--layers", "with_layers", is_flag=True, help="Time single layers too; slower.")
@click.option(
    "--warmup-steps",
    type=click.IntRange(0),
    default=3,
    show_default=True,
    help="Steps timed but not counted.",
)
@click.option(
    "--repeat",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="Run it so often: launches differ, and intervals come from them.",
)
@click.option("--timeout", help="End the command after so long, such as 2h.")
@click.option(
    "--study",
    callback=study_name,
    help="Study to put the launch in [default: the model's name].",
)
@store_option
@json_option
def command(
    command_line: tuple[str, ...],
    recipe_name: str | None,
    values: tuple[str, ...],
    program: str | None,
    model: str,
    batch: int | None,
    place: str | None,
    precision: str,
    with_layers: bool,
    warmup_steps: int,
    repeat: int,
    timeout: str | None,
    study: str | None,
    store_path: Path | None,
    as_json: bool,
) -> None:
    """Run a training command, unchanged, and record steps, phases and buckets.

    PyTorch scripts are watched from within: optimiser, backward, data loader, DDP and
    collectives. Any other program is known by its log. Nothing has to be edited.

    Signals are passed on, and so is the command's exit code when it fails. Whatever the command
    started ends with it.
    """
    from paceline.measurement.imports import UserFacts
    from paceline.measurement.watch.launches import RunRequest, run_watched, script_name
    from paceline.store import Status, Store, default_store_path

    variables, words, reader = _command(command_line, recipe_name, values)
    nodes, ranks = parse_one_place(place)
    request = RunRequest(
        command=words,
        told=UserFacts(model, batch, ranks, nodes, precision),
        study=study or model or script_name(words),
        program=program or reader,
        with_layers=with_layers,
        warmup_steps=warmup_steps,
        timeout_seconds=timeout_seconds(timeout),
        variables=variables,
    )
    launches: list[Launch] = []
    with Store(store_path or default_store_path()) as store:
        for _ in range(repeat):
            launches.append(run_watched(request, store, echo=not as_json))
            if launches[-1].status is not Status.FINISHED:
                break
    _show(launches, as_json)


def _command(
    command_line: tuple[str, ...], recipe_name: str | None, values: tuple[str, ...]
) -> tuple[dict[str, str], tuple[str, ...], str | None]:
    """Variables, words and log reader of what is to be run."""
    from paceline.frameworks.recipes import fill
    from paceline.frameworks.registry import recipe

    reader = None
    if recipe_name is not None:
        chosen = recipe(recipe_name)
        words = shlex.split(fill(chosen.command, parse_settings(values)))
        reader = chosen.reader
        if command_line:
            raise InputError("--recipe and a command both say what to run", "give one of them")
    elif values:
        raise InputError("--set fills a recipe in, and there is none", "add --recipe NAME")
    else:
        words = list(command_line)
    variables: dict[str, str] = {}
    while words and "=" in words[0] and words[0].split("=", 1)[0].isidentifier():
        name, value = words.pop(0).split("=", 1)
        variables[name] = value
    if not words:
        raise InputError(
            "there is no command to run", "paceline run -- torchrun --nproc_per_node 2 train.py"
        )
    return variables, tuple(words), reader


def _show(launches: "list[Launch]", as_json: bool) -> None:
    """All launches as one configuration, the last one's steps; the first that failed ends it."""
    from paceline.report.tables.launches import launch_json
    from paceline.report.tables.steps import step_table
    from paceline.store import Status

    last = launches[-1]
    finished = [launch for launch in launches if launch.status is Status.FINISHED]
    timeline = last.outcome.timeline
    if as_json:
        documents = [{**launch_json(one), "facts": one.outcome.facts} for one in launches]
        emit_json("run", 1, documents[0] if len(documents) == 1 else {"launches": documents})
    else:
        if finished:
            show_launches(finished)
        if last in finished and timeline is not None:
            show([f"Median step ({timeline.label})", step_table(timeline)])
        notes = {note: None for one in launches for note in one.outcome.facts.get("notes", ())}
        warn(f"note: {note}" for note in notes)
        if last in finished:
            trace = {} if timeline is None else {"trace": "step.json"}
            next_line(
                same_job("explain", study=last.study),
                same_job("show", launch_id=last.id, **trace),
                same_job("report", study=last.study),
            )
    if last not in finished:
        warn([f"{last.status}: {last.outcome.reason}"])
        raise SystemExit(_exit_code(last))


def _exit_code(launch: "Launch") -> int:
    """The command's own code, as a shell gives it; 1 where it ended well but told nothing."""
    code = next(iter(launch.outcome.facts.get("exit_codes", ())), None) or 0
    return 128 - code if code < 0 else code or 1
