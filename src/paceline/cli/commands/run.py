"""``paceline run``: record the steps of a user's training command."""

import sys
from pathlib import Path

import click

from paceline.cli.next_steps import same_job
from paceline.cli.options import (
    IntegerRange,
    parse_settings,
    parse_single_topology,
    store_option,
    study_name,
    timeout_seconds,
)
from paceline.cli.output import emit, json_option, warn

EXAMPLE = """
\b
Examples:
  paceline run -- torchrun --nproc_per_node 2 train.py
  paceline run --repeat 5 -- python train.py
  paceline run --layers -- python train.py
  paceline run --try bucket_cap_mb=1 -- torchrun --nproc_per_node 2 train.py
  paceline run --recipe pydtnn --set ranks=2 --set batch=32 --set model=alexnet_cifar10 ...
"""


@click.command(epilog=EXAMPLE)
@click.argument("command_line", nargs=-1, type=click.UNPROCESSED, metavar="[COMMAND]...")
@click.option(
    "--recipe",
    "recipe_name",
    metavar="NAME",
    help="Run the command of a recipe; see 'paceline catalog recipes'.",
)
@click.option(
    "--set",
    "values",
    multiple=True,
    metavar="NAME=VALUE",
    help="Value of a placeholder of the recipe; repeat for each placeholder.",
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
@click.option(
    "--try",
    "trials",
    multiple=True,
    metavar="NAME=VALUE",
    help="Apply a remedy to a PyTorch script: threads, num_workers, bucket_cap_mb, no_sync, "
    "find_unused_parameters, gradient_as_bucket_view, static_graph; repeatable.",
)
@click.option("--timeout", metavar="DURATION", help="Time limit of the command, such as 2h.")
@click.option(
    "--study",
    metavar="NAME",
    callback=study_name,
    help="Study of the launch [default: name of the model].",
)
@click.option(
    "--keep-secrets",
    is_flag=True,
    help="Record the command as it is; by default passwords, tokens and keys become ***.",
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
    trials: tuple[str, ...],
    timeout: str | None,
    study: str | None,
    keep_secrets: bool,
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
    from paceline.measurement.api import run

    nodes, ranks = parse_single_topology(topology)
    stderr = getattr(sys.stderr, "buffer", None)  # None where the caller closed it
    found = run(
        command_line,
        recipe=recipe_name,
        values=parse_settings(values),
        program=program,
        model=model,
        batch=batch,
        nodes=nodes,
        ranks=ranks,
        precision=precision,
        layers=with_layers,
        warmup_steps=warmup_steps,
        repeat=repeat,
        trials=trials,
        timeout_seconds=timeout_seconds(timeout),
        study=study,
        keep_secrets=keep_secrets,
        store=store_path,
        stdout=stderr if as_json else getattr(sys.stdout, "buffer", None),
        stderr=stderr,
    )
    last, further = found.launches[-1], []
    if found.exit_code == 0:
        trace = {} if last.outcome.timeline is None else {"trace": "step.json"}
        explained = [] if found.explanation else [same_job("explain", study=last.study)]
        further = [
            *explained,
            same_job("study show", subject=last.id, **trace),
            same_job("report", study=last.study),
        ]
    emit(found, as_json, *further)
    if found.exit_code:
        if as_json:
            warn(found.warnings())
        raise SystemExit(found.exit_code)
