"""``paceline demo``: the whole loop on this machine, in a few minutes."""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from paceline.cli.output import emit_json, json_option, next_line

if TYPE_CHECKING:
    from paceline.report.study import StudyResults
    from paceline.store import Store

EXAMPLE = """
\b
Examples:
  paceline demo
  paceline demo --model resnet20 --batch 32 --launches 2 --out quick-look
"""
PROCESSES = 2


@click.command(epilog=EXAMPLE)
@click.option("--model", default="resnet44", show_default=True, help="A network of the zoo.")
@click.option("--batch", default=64, show_default=True, help="Samples per process and step.")
@click.option("--launches", default=3, show_default=True, help="Launches of each kind.")
@click.option("--steps", default=7, show_default=True, help="Counted steps of a launch.")
@click.option("--nodes", default="4,8,16", show_default=True, help="Node counts to predict.")
@click.option("--link", default="eth_10g", show_default=True, help="Network between them.")
@click.option("--seed", default=1, show_default=True, help="Of the order, the weights, the data.")
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
    from paceline.cli.options import parse_places
    from paceline.frameworks.command import interpreter
    from paceline.frameworks.registry import framework
    from paceline.hardware import catalogue
    from paceline.report.files import write_text
    from paceline.report.page import render
    from paceline.report.study import study_page
    from paceline.store import Store

    interpreter(framework("torch-ddp"))
    node_counts = [count for _, count in parse_places(nodes)]
    network = catalogue.link(link)
    begun = time.monotonic()
    with Store(out / "paceline.db") as store:
        if not as_json:
            click.echo(_header())
        study = _measure(store, model, batch, launches, steps, seed, quiet=as_json)
        results = study_results(store, study, node_counts, network.name)
    report = write_text(out / "report.html", render(study_page(results)))
    if as_json:
        emit_json("demo", 1, {**results_json(results), "report": str(report)})
        return
    _print_results(results)
    click.echo(f"Report: {report}   ({time.monotonic() - begun:.0f} s in all)")
    next_line(
        f"paceline list --store {out}/paceline.db",
        f"paceline inspect {model}",
        "paceline predict --help",
    )


def _header() -> str:
    from paceline import __version__
    from paceline.measurement.environment import load_average, machine_fingerprint

    return f"Paceline {__version__}  ·  {machine_fingerprint()}  ·  load {load_average():.1f}"


def _measure(
    store: "Store", model: str, batch: int, launches: int, steps: int, seed: int, quiet: bool
) -> str:
    """Probe if need be, then run the demo's launches; the name of the study."""
    from paceline.cli.commands.measure import new_study_name
    from paceline.cli.progress import study_progress
    from paceline.measurement.job import Job
    from paceline.measurement.probe import current_profile, probe_machine
    from paceline.measurement.study import Design, run_study
    from paceline.units import format_bandwidth, format_flops, format_seconds
    from paceline.workload import zoo

    graph = zoo.build(model)

    def job(world_size: int, instrument: str = "none", synchronise: bool = True) -> Job:
        return Job(
            model=graph.name,
            graph=graph.to_json(),
            batch_per_rank=batch,
            world_size=world_size,
            instrument=instrument,
            synchronise=synchronise,
            steps=steps,
            warmup_steps=2,
            seed=seed,
            sequence=graph.sequence,
        )

    begun = time.monotonic()
    profile = current_profile(store)
    if profile is None:
        with study_progress("probe") as progress:
            profile = probe_machine(store, (PROCESSES,), on_stage=progress.stage)
    small, large = profile.all_reduce[PROCESSES][0], profile.all_reduce[PROCESSES][-1]
    if not quiet:
        click.echo(
            f" probe    products {format_flops(profile.peak_gemm_flops)}/s · memory "
            f"{format_bandwidth(profile.memory_bandwidth)} · all-reduce of {PROCESSES} ranks "
            f"{format_seconds(small.seconds)} + "
            f"{format_bandwidth(large.size_bytes / large.seconds)}"
            f"   {time.monotonic() - begun:.0f} s"
        )
    kinds = [
        job(1),
        job(PROCESSES, synchronise=False),
        job(PROCESSES),
        job(1, "layers"),
        job(PROCESSES, "phases"),
    ]
    design = Design.randomised(kinds, [launches, launches, launches, 1, 1], seed)
    study, begun = new_study_name(model), time.monotonic()
    with study_progress(study) as progress:
        recorded = run_study(store, study, design, on_launch=progress.before_launch)
    if not quiet:
        click.echo(
            f" measure  {model} b={batch}: {len(recorded)} launches in random order"
            f"   {time.monotonic() - begun:.0f} s"
        )
    return study


def study_results(
    store: "Store", study: str, node_counts: Sequence[int], link_name: str
) -> "StudyResults":
    """Calibrate, predict, compare and explain a study as far as its launches allow."""
    from paceline.analyse.calibration import calibrate
    from paceline.analyse.comparison import Comparison, compare_processes
    from paceline.analyse.explain import explain
    from paceline.analyse.local_prediction import predict_nodes, predict_processes
    from paceline.errors import InputError
    from paceline.hardware import catalogue
    from paceline.measurement.probe import current_profile
    from paceline.report.study import StudyResults

    launches = store.launches(study)
    if not launches:
        known = ", ".join(store.studies()[-5:]) or "none yet"
        raise InputError(f"there is no study named '{study}'", f"studies here: {known}")
    profile = current_profile(store)
    try:
        calibration = calibrate(launches)
    except InputError:
        calibration = None
    try:
        explanation = explain(launches)
    except InputError:
        explanation = None
    here: list[Comparison] = []
    elsewhere: list[Comparison] = []
    if calibration is not None:
        if profile is not None:
            counts = sorted(set(calibration.colocated) & set(profile.all_reduce))
            here = compare_processes(
                [predict_processes(calibration, profile, count) for count in counts], launches
            )
        link = catalogue.link(link_name)
        elsewhere = [Comparison(predict_nodes(calibration, link, n)) for n in node_counts]
    return StudyResults(study, launches, here, elsewhere, explanation, calibration, profile)


def results_json(results: "StudyResults") -> dict[str, Any]:
    """The comparison and the waterfall of a study as JSON."""
    from paceline.analyse.comparison import comparisons_json

    explanation = results.explanation
    return {
        "study": results.study,
        "launches": len(results.launches),
        "comparisons": comparisons_json([*results.here, *results.elsewhere]),
        "waterfall": [
            {"label": item.label, "seconds": item.seconds, "kind": str(item.kind)}
            for item in (explanation.waterfall.items if explanation else ())
        ],
    }


def _print_results(results: "StudyResults") -> None:
    from paceline.analyse.local_prediction import best_bucket
    from paceline.cli.tables import print_doubts
    from paceline.errors import PacelineError
    from paceline.report.study import comparison_table
    from paceline.report.terminal import print_table, print_waterfall
    from paceline.units import format_bytes, format_seconds

    print_doubts(results.launches)
    explanation, calibration, profile = results.explanation, results.calibration, results.profile
    if explanation is None or calibration is None or profile is None or not results.here:
        raise PacelineError(
            "too few launches finished to compare anything", "'paceline list' shows why"
        )
    click.echo("")
    print_table(comparison_table(explanation.alone, [*results.here, *results.elsewhere]))
    click.echo("")
    print_waterfall(explanation.waterfall, f"Where the time of {PROCESSES} processes goes")
    prediction = results.here[0].prediction
    size, gain = best_bucket(calibration, profile, PROCESSES, prediction)
    share = gain / prediction.step_seconds
    if share > 0.002:
        click.echo(
            f"Largest gain at hand: buckets of {format_bytes(size)} would hide "
            f"{format_seconds(gain)} of the all-reduce ({share:.1%} of the step)."
        )
    else:
        click.echo("No bucket size would shorten the step by more than 0.2 %.")
