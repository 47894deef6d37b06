"""``paceline run``: record the steps of a user's training command."""

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from paceline.cli.next_steps import next_line, same_job
from paceline.cli.options import (
    IntegerRange,
    parse_settings,
    parse_single_topology,
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
@click.argument("command_line", nargs=-1, type=click.UNPROCESSED, metavar="[COMMAND]...")
@click.option(
    "--recipe",
    "recipe_name",
    metavar="NAME",
    help="Run the command of a recipe; see 'paceline recipes'.",
)
@click.option(
    "--set",
    "values",
    multiple=True,
    metavar="NAME=VALUE",
    help="Set a placeholder of the recipe; repeatable.",
)
@click.option(
    "--program", metavar="NAME", help="Read steps from the output as the log of this program."
)
@click.option(
    "--model", metavar="NAME", default="", help="Name of the model [default: name of the script]."
)
@click.option("--batch", type=IntegerRange(min=1), help="Samples per process and step.")
@click.option(
    "-j", "topology", metavar="NODESxPROCESSES", help="Topology [default: detected at run time]."
)
@click.option("--precision", metavar="NAME", default="", help="Precision to record, such as bf16.")
@click.option("--layers", "with_layers", is_flag=True, help="Also time each layer; slower.")
@click.option(
    "--warmup-steps",
    type=IntegerRange(0),
    default=3,
    show_default=True,
    help="Warm-up steps, excluded from results.",
)
@click.option(
    "--repeat",
    type=IntegerRange(min=1),
    default=1,
    show_default=True,
    help="Number of launches; intervals are computed over launches.",
)
@click.option("--timeout", metavar="DURATION", help="Time limit of the command, such as 2h.")
@click.option(
    "--study",
    metavar="NAME",
    callback=study_name,
    help="Study of the launch [default: name of the model].",
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
    topology: str | None,
    precision: str,
    with_layers: bool,
    warmup_steps: int,
    repeat: int,
    timeout: str | None,
    study: str | None,
    store_path: Path | None,
    as_json: bool,
) -> None:
    """Run your own training COMMAND unchanged and record steps, phases and buckets.

    PyTorch scripts are instrumented at run time: optimizer, backward, data loader, DDP and
    collectives. For other programs the steps are read from the log. No source change is needed.

    Standard output and standard error of the command are passed through; with --json both go to
    standard error. Signals are forwarded, and a failing command's exit code is returned. Processes
    that the command leaves behind are terminated.
    """
    from paceline.importers.import_launches import UserFacts
    from paceline.measurement.recording.recorded_launch import RunRequest, run_watched, script_name
    from paceline.store import Status, Store, default_store_path

    variables, arguments, reader = _command(command_line, recipe_name, values)
    nodes, ranks = parse_single_topology(topology)
    request = RunRequest(
        command=arguments,
        given=UserFacts(model, batch, ranks, nodes, precision),
        study=study or model or script_name(arguments),
        program=program or reader,
        with_layers=with_layers,
        warmup_steps=warmup_steps,
        timeout_seconds=timeout_seconds(timeout),
        variables=variables,
    )
    launches: list[Launch] = []
    stderr = getattr(sys.stderr, "buffer", None)  # None where the caller closed it
    stdout = stderr if as_json else getattr(sys.stdout, "buffer", None)
    with Store(store_path or default_store_path()) as store:
        for _ in range(repeat):
            launches.append(run_watched(request, store, stdout, stderr))
            if launches[-1].status is not Status.FINISHED:
                break
    _show(launches, as_json)


def _command(
    command_line: tuple[str, ...], recipe_name: str | None, values: tuple[str, ...]
) -> tuple[dict[str, str], tuple[str, ...], str | None]:
    """Environment variables, arguments and log reader of the command to run."""
    from paceline.frameworks.framework_registry import recipe
    from paceline.frameworks.program_recipe import fill

    reader = None
    if recipe_name is not None:
        chosen = recipe(recipe_name)
        arguments = shlex.split(fill(chosen.command, parse_settings(values)))
        reader = chosen.reader
        if command_line:
            raise InputError("--recipe and a command are mutually exclusive", "give one of them")
    elif values:
        raise InputError("--set requires --recipe", "add --recipe NAME")
    else:
        arguments = list(command_line)
    variables: dict[str, str] = {}
    while arguments and "=" in arguments[0] and arguments[0].split("=", 1)[0].isidentifier():
        name, value = arguments.pop(0).split("=", 1)
        variables[name] = value
    if not arguments:
        raise InputError(
            "missing command", "write paceline run -- torchrun --nproc_per_node 2 train.py"
        )
    return variables, tuple(arguments), reader


def _show(launches: "list[Launch]", as_json: bool) -> None:
    """Print all launches as one configuration, and the steps of the last."""
    from paceline.analysis.launch_tables import launch_json
    from paceline.render.step_tables import step_table
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
    """The exit code of the command as in a shell; 1 if it succeeded without recording steps."""
    code = next(iter(launch.outcome.facts.get("exit_codes", ())), None) or 0
    return 128 - code if code < 0 else code or 1
