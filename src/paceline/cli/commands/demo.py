"""``paceline demo``: the whole loop on this machine, in a few minutes."""

import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from paceline.cli.next_steps import next_line, same_job
from paceline.cli.options import seed_option
from paceline.cli.output import emit_json, json_option, show, warn
from paceline.cli.say import say

if TYPE_CHECKING:
    from paceline.analyse.study_analysis import StudyAnalysis

EXAMPLE = """
\b
Examples:
  paceline demo
  paceline demo --model resnet20 --batch 32 --launches 2 --out quick-look
"""


@click.command(epilog=EXAMPLE)
@click.option("--model", default="resnet44", show_default=True, help="A network of the zoo.")
@click.option("--batch", default=64, show_default=True, help="Samples per process and step.")
@click.option("--launches", default=3, show_default=True, help="Launches of each kind.")
@click.option("--steps", default=7, show_default=True, help="Counted steps of a launch.")
@click.option("--nodes", default="4,8,16", show_default=True, help="Node counts to predict.")
@click.option("--link", default="eth_10g", show_default=True, help="Network between them.")
@seed_option
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("paceline-demo"),
    show_default=True,
    help="Directory for the report and the store.",
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

    Trains a small network on one and two processes, several times in random order; predicts the
    two processes from everything but their synchronised launches; predicts more nodes on a named
    network; and says where the time goes. Takes about three minutes on two cores.
    """
    from paceline.cli.progress import run_with_progress, study_progress
    from paceline.hardware import catalogue
    from paceline.places import parse_counts
    from paceline.report.study_json import study_json
    from paceline.study.demonstration import PROCESSES, Demonstration, machine_words

    network = catalogue.link(link).name
    counts = parse_counts(nodes, "nodes", "--nodes")
    study = Demonstration(model, batch=batch, launches=launches, steps=steps, seed=seed, out=out)
    tell = (lambda line: None) if as_json else say
    begun = time.monotonic()
    tell(machine_words())
    with study_progress("probe") as progress:
        tell(f" probe    {study.probe(progress.stage)}   {_since(begun)}")
    measuring = time.monotonic()
    run_with_progress(study, "10min")
    ran = len(study.launches)
    tell(f" measure  {model} b={batch}: {ran} launches in random order   {_since(measuring)}")
    analysis = study.analyse(counts, network)
    report = study.report(out / "report.html", analysis=analysis)
    if as_json:
        emit_json("demo", 1, {**study_json(analysis), "report": str(report)})
        return
    _print(analysis, PROCESSES)
    say(f"Report: {report}   ({_since(begun)} in all)")
    next_line(
        same_job("explain", store_path=study.path, study=study.name),
        same_job("list", store_path=study.path, study=study.name),
        same_job("inspect", model=model),
    )


def _since(begun: float) -> str:
    return f"{time.monotonic() - begun:.0f} s"


def _print(results: "StudyAnalysis", processes: int) -> None:
    from paceline.errors import PacelineError
    from paceline.report.tables.comparisons import comparison_table
    from paceline.report.tables.launches import warnings_of
    from paceline.report.terminal_waterfall import print_waterfall
    from paceline.units import format_bytes, format_seconds

    warn(warnings_of(results.launches))
    explanation, calibration, profile = results.explanation, results.calibration, results.profile
    alone = None if explanation is None else explanation.alone
    if explanation is None or alone is None or not (calibration and profile and results.here):
        raise PacelineError(
            "too few launches finished to compare anything", "'paceline list' shows why"
        )
    show(["", comparison_table(alone, [*results.here, *results.elsewhere]), ""])
    print_waterfall(explanation.waterfall, f"Where the time of {processes} processes goes")
    prediction = results.here[0].prediction
    size, gain = calibration.best_bucket(profile, processes, prediction)
    share = gain / prediction.step_seconds
    if share > 0.002:
        say(
            f"Largest gain at hand: buckets of {format_bytes(size)} would hide "
            f"{format_seconds(gain)} of the all-reduce ({share:.1%} of the step)."
        )
    else:
        say("No bucket size would shorten the step by more than 0.2 %.")
