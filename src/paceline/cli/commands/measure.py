"""``paceline measure``: train for some steps, several times, and record it."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from paceline.cli.options import parse_places, store_option
from paceline.cli.output import emit_json, json_option, next_line

if TYPE_CHECKING:
    from paceline.measurement.job import Job

EXAMPLE = """
\b
Examples:
  paceline measure --model resnet44 --batch 64 -j 1x1,1x2
  paceline measure --model resnet20 --batch 128 --scaling strong -j 1x1,1x2 --launches 5
  paceline measure --resume resnet44-0147
"""


@click.command(epilog=EXAMPLE)
@click.option("--model", default="resnet44", show_default=True, help="A network of the zoo.")
@click.option("--batch", default=64, show_default=True, help="Samples: per process, or in all.")
@click.option("--seq", "sequence", type=int, help="Positions per sample, for sequence models.")
@click.option(
    "--scaling",
    type=click.Choice(["weak", "strong"]),
    default="weak",
    show_default=True,
    help="Whether --batch is per process (weak) or shared by all (strong).",
)
@click.option("-j", "places", default="1x1", show_default=True, help="NODESxPROCESSES, by commas.")
@click.option("--framework", default="torch-ddp", show_default=True)
@click.option(
    "--launcher",
    default="",
    help="What starts the processes [default: local, or what the framework needs].",
)
@click.option("--precision", type=click.Choice(["fp32", "bf16"]), default="fp32", show_default=True)
@click.option("--launches", default=3, show_default=True, help="Launches of each configuration.")
@click.option("--steps", default=10, show_default=True, help="Counted steps of a launch.")
@click.option("--warmup-steps", default=3, show_default=True, help="Steps before those.")
@click.option("--threads", default=1, show_default=True, help="Threads of each process.")
@click.option(
    "--instrument",
    default="none",
    show_default=True,
    help="Kinds of launches by commas: none (throughput), phases, layers.",
)
@click.option(
    "--unsynchronised", is_flag=True, help="Also run processes side by side without talking."
)
@click.option("--bucket", help="DDP's bucket size, such as 25MiB.")
@click.option("--timeout", default="10min", show_default=True, help="Longest a launch may take.")
@click.option("--port", type=int, help="Port where ranks meet [default: a free one].")
@click.option("--seed", default=1, show_default=True, help="Of the order, the weights, the data.")
@click.option("--study", "study_name", help="Name of the study [default: model and time].")
@click.option("--resume", "resumed", help="Finish a study that was interrupted.")
@store_option
@json_option
def command(
    model: str,
    batch: int,
    sequence: int | None,
    scaling: str,
    places: str,
    framework: str,
    launcher: str,
    precision: str,
    launches: int,
    steps: int,
    warmup_steps: int,
    threads: int,
    instrument: str,
    unsynchronised: bool,
    bucket: str | None,
    timeout: str,
    port: int | None,
    seed: int,
    study_name: str | None,
    resumed: str | None,
    store_path: Path | None,
    as_json: bool,
) -> None:
    """Train for some steps, several times in random order, and record how fast it went.

    Every launch is a fresh start of all processes, since one start differs from the next by more
    than one step from another. A study that was interrupted goes on with --resume.
    """
    from paceline.cli.progress import study_progress
    from paceline.cli.tables import launches_json, print_throughput
    from paceline.frameworks.command import check_runnable
    from paceline.frameworks.registry import framework as find_framework
    from paceline.measurement.study import Design, run_study
    from paceline.store import Store, default_store_path
    from paceline.units import parse_bytes, parse_seconds

    check_runnable(find_framework(framework))
    design = None
    if resumed is None:
        jobs = list(
            jobs_of(
                model,
                batch,
                scaling,
                parse_places(places),
                [kind.strip() for kind in instrument.split(",")],
                unsynchronised,
                sequence=sequence,
                framework=framework,
                launcher=launcher,
                precision=precision,
                steps=steps,
                warmup_steps=warmup_steps,
                threads=threads,
                bucket_bytes=parse_bytes(bucket) if bucket else None,
                seed=seed,
            )
        )
        design = Design.randomised(jobs, launches, seed)
    with Store(store_path or default_store_path()) as store:
        study = resumed or study_name or new_study_name(model)
        try:
            with study_progress(study) as progress:
                recorded = run_study(
                    store, study, design, parse_seconds(timeout), port, progress.before_launch
                )
        except KeyboardInterrupt:
            click.echo(f"\ncontinue with: paceline measure --resume {study}", err=True)
            raise
        if as_json:
            emit_json("measure", 1, {"study": study, "launches": launches_json(recorded)})
            return
        click.echo(f"Study {study}: {len(recorded)} launches, kept in {store.path}")
        print_throughput(recorded)
        next_line(f"paceline explain {study}", f"paceline report {study}", "paceline list")


def jobs_of(
    model: str,
    batch: int,
    scaling: str,
    places: list[tuple[int, int]],
    instruments: list[str],
    unsynchronised: bool,
    *,
    sequence: int | None,
    **settings: Any,
) -> Iterator["Job"]:
    """Every job of a study: each place with each instrument, and side by side where asked."""
    from paceline.errors import InputError
    from paceline.frameworks.registry import framework
    from paceline.measurement.job import Job, batch_per_rank
    from paceline.measurement.run import launcher_for
    from paceline.workload import zoo

    graph = zoo.build(model)
    description = graph.to_json()
    name = settings.get("framework", Job.framework)
    chosen = framework(name)
    if not chosen.claims(description):
        raise InputError(
            f"the worker of {name} cannot build {graph.name}",
            "PyTorch's workers build every network: --framework torch-ddp",
        )
    for nodes, processes in places:
        world_size = nodes * processes
        starter = launcher_for(chosen, settings.get("launcher", Job.launcher), world_size)
        starter.validate(nodes, processes)
        for instrument in instruments:
            for synchronise in (True, False) if unsynchronised and world_size > 1 else (True,):
                yield Job(
                    model=graph.name,
                    graph=description,
                    batch_per_rank=batch_per_rank(batch, world_size, scaling),
                    world_size=world_size,
                    nodes=nodes,
                    instrument=instrument,
                    synchronise=synchronise,
                    sequence=sequence or graph.sequence,
                    **settings,
                )


def new_study_name(model: str) -> str:
    """A name that says what and when: the model, and the hour and minute of the day."""
    from datetime import datetime

    return f"{model}-{datetime.now():%m%d-%H%M%S}"
