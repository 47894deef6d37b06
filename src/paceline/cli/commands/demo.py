"""``paceline demo``: measure, predict and compare on this machine in a few minutes."""

import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from paceline.cli.echo import echo
from paceline.cli.next_steps import next_line, same_job
from paceline.cli.options import seed_option
from paceline.cli.output import emit_json, json_option, show, warn

if TYPE_CHECKING:
    from paceline.report.study_analysis import StudyAnalysis

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
@click.option("--batch", default=64, show_default=True, help="Samples per process and step.")
@click.option("--launches", default=3, show_default=True, help="Launches per configuration.")
@click.option("--steps", default=7, show_default=True, help="Measured steps per launch.")
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
    from paceline.cli.progress import run_with_progress, study_progress
    from paceline.hardware import catalogue
    from paceline.report.study_json import study_json
    from paceline.study.demo_study import PROCESSES, Demonstration, describe_machine
    from paceline.topology import parse_counts
    from paceline.units import plural

    network = catalogue.link(link).name
    counts = parse_counts(nodes, "nodes", "--nodes")
    study = Demonstration(model, batch=batch, launches=launches, steps=steps, seed=seed, out=out)
    report_line = (lambda line: None) if as_json else echo
    begun = time.monotonic()
    report_line(describe_machine())
    with study_progress("probe") as progress:
        report_line(f" probe    {study.probe(progress.stage)}   {_since(begun)}")
    measuring = time.monotonic()
    run_with_progress(study, "10min")
    ran = plural(len(study.launches), "launch")
    report_line(f" measure  {model} b={batch}: {ran} in random order   {_since(measuring)}")
    analysis = study.analyse(counts, network)
    report = study.report(out / "report.html", analysis=analysis)
    if as_json:
        emit_json("demo", 1, {**study_json(analysis), "report": str(report)})
        return
    _print(analysis, PROCESSES)
    echo(f"Report: {report}   ({_since(begun)} in total)")
    next_line(
        same_job("explain", store_path=study.path, study=study.name),
        same_job("list", store_path=study.path, study=study.name),
        same_job("inspect", model=model),
    )


def _since(begun: float) -> str:
    return f"{time.monotonic() - begun:.0f} s"


def _print(results: "StudyAnalysis", processes: int) -> None:
    from paceline.analysis.launch_tables import warnings_of
    from paceline.calibration.comparison_tables import comparison_table
    from paceline.errors import PacelineError
    from paceline.explanation.explanation_tables import instrumented_lines, step_kind
    from paceline.render.terminal_waterfall import print_waterfall
    from paceline.units import format_bytes, format_seconds, plural

    warn(warnings_of(results.launches))
    explanation, calibration, profile = results.explanation, results.calibration, results.profile
    alone = None if explanation is None else explanation.alone
    if explanation is None or alone is None or not (calibration and profile and results.here):
        raise PacelineError(
            "too few launches finished for a comparison", "run 'paceline list' for the reasons"
        )
    show(["", comparison_table(alone, [*results.here, *results.elsewhere]), ""])
    subject = f"Step time breakdown of {plural(processes, 'process')}"
    print_waterfall(explanation.waterfall, subject, step_kind(explanation))
    show(instrumented_lines(explanation))
    prediction = results.here[0].prediction
    size, gain = calibration.best_bucket(profile, processes, prediction)
    share = gain / prediction.step_seconds
    if share > 0.002:
        echo(
            f"Best bucket size: {format_bytes(size)} would hide {format_seconds(gain)} of the "
            f"all-reduce ({share:.1%} of the step)."
        )
    else:
        echo("No other bucket size shortens the step by more than 0.2 %.")
