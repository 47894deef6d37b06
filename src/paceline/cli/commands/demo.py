"""``paceline demo``: measure, predict and compare on this machine in a few minutes."""

from pathlib import Path

import click

from paceline.cli.echo import echo
from paceline.cli.next_steps import same_job
from paceline.cli.options import IntegerRange, seed_option
from paceline.cli.output import emit, json_option

EXAMPLE = """
\b
Examples:
  paceline demo
  paceline demo --model resnet20 --batch 32 --launches 2 --out quick-look
"""


@click.command(epilog=EXAMPLE)
@click.option(
    "--model", metavar="NAME", default="resnet44", show_default=True, help="Built-in model."
)
@click.option(
    "--batch",
    type=IntegerRange(1),
    default=64,
    show_default=True,
    help="Samples per process and step.",
)
@click.option(
    "--launches",
    type=IntegerRange(1),
    default=3,
    show_default=True,
    help="Launches per configuration.",
)
@click.option(
    "--steps", type=IntegerRange(1), default=7, show_default=True, help="Measured steps per launch."
)
@click.option(
    "--nodes",
    metavar="N[,N]|N..N",
    default="4,8,16",
    show_default=True,
    help="Numbers of nodes to predict.",
)
@click.option(
    "--link", metavar="NAME", default="eth_10g", show_default=True, help="Network between nodes."
)
@seed_option
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("paceline-demo"),
    show_default=True,
    help="Output directory of the report and the store.",
)
@json_option
def command(
    model: str,
    batch: int,
    launches: int,
    steps: int,
    nodes: str,
    link: str,
    seed: int,
    out: Path,
    as_json: bool,
) -> None:
    """Measure, predict and compare on this machine, and write a report.

    Trains a small network on one and two processes, several times in random order. Predicts two
    processes without using their synchronised launches, and larger clusters with a given network.
    Breaks the step time down by cause. Takes about three minutes on two cores.
    """
    from paceline.cli.progress import study_progress
    from paceline.study.api import demo
    from paceline.topology import parse_counts

    with study_progress("demo") as progress:
        found = demo(
            model,
            batch=batch,
            launches=launches,
            steps=steps,
            nodes=parse_counts(nodes, "nodes", "--nodes"),
            link=link,
            seed=seed,
            out=out,
            on_line=(lambda line: None) if as_json else echo,
            on_stage=progress.stage,
            on_launch=progress.before_launch,
        )
    emit(
        found,
        as_json,
        same_job("explain", store_path=found.store, study=found.study),
        same_job("study show", store_path=found.store, subject=found.study),
        same_job("inspect", model=model),
    )
