"""``paceline compare``: the same training under several frameworks, ranked."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from paceline.cli.options import parse_places, store_option
from paceline.cli.output import emit_json, json_option, next_line

if TYPE_CHECKING:
    from paceline.analyse.ranking import Ranking
    from paceline.store import Launch
    from paceline.testing.parity import ParityTable

EXAMPLE = """
\b
Examples:
  paceline compare --frameworks torch-ddp,jax --model resnet20 --batch 32 -j 1x1
  paceline compare --frameworks torch-ddp,tensorflow,jax,mxnet --model resnet44 -j 1x1,1x2
"""


@click.command(epilog=EXAMPLE)
@click.option("--frameworks", required=True, help="Names by commas; see 'paceline frameworks'.")
@click.option("--model", default="resnet44", show_default=True, help="A network of the zoo.")
@click.option("--batch", default=64, show_default=True, help="Samples per process.")
@click.option("-j", "places", default="1x1", show_default=True, help="NODESxPROCESSES, by commas.")
@click.option("--launches", default=3, show_default=True, help="Launches of each configuration.")
@click.option("--steps", default=10, show_default=True, help="Counted steps of a launch.")
@click.option("--warmup-steps", default=3, show_default=True, help="Steps before those.")
@click.option("--threads", default=1, show_default=True, help="Threads of each process.")
@click.option("--timeout", default="10min", show_default=True, help="Longest a launch may take.")
@click.option("--seed", default=1, show_default=True, help="Of the order, the weights, the data.")
@click.option("--study", "study_name", help="Name of the study [default: model and time].")
@click.option(
    "--figure",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Where to write the figure [default: STUDY.svg beside the store].",
)
@store_option
@json_option
def command(
    frameworks: str,
    model: str,
    batch: int,
    places: str,
    launches: int,
    steps: int,
    warmup_steps: int,
    threads: int,
    timeout: str,
    seed: int,
    study_name: str | None,
    figure: Path | None,
    store_path: Path | None,
    as_json: bool,
) -> None:
    """Train one network under several frameworks and say which are faster, and how surely.

    Parity comes first: from the same weights and data, each framework must have the described
    parameters and come to the losses of the NumPy reference (without dropout, whose masks are
    random, on short sequences). One that does not is left out.
    Launches are interleaved in random order.
    """
    from paceline.cli.commands.measure import jobs_of, new_study_name
    from paceline.cli.progress import study_progress
    from paceline.measurement.study import Design, run_study
    from paceline.store import Store, default_store_path
    from paceline.testing.parity import check_parity
    from paceline.units import parse_seconds
    from paceline.workload import zoo

    names = _runnable(frameworks)
    seconds = parse_seconds(timeout)
    spots = parse_places(places)
    study = study_name or f"compare-{new_study_name(model)}"
    jobs_for = partial(
        jobs_of,
        model,
        batch,
        "weak",
        spots,
        ["none"],
        False,
        sequence=None,
        steps=steps,
        warmup_steps=warmup_steps,
        threads=threads,
        seed=seed,
    )
    with Store(store_path or default_store_path()) as store:
        with study_progress("parity") as progress:
            parity = check_parity(
                zoo.build(model),
                names,
                store,
                f"{study}-parity",
                seconds,
                lambda name: progress.stage(f"parity: {name}"),
            )
        if not as_json:
            _print_parity(parity)
        _check_some(parity)
        jobs = [job for name in parity.same for job in jobs_for(framework=name)]
        with study_progress(study) as progress:
            design = Design.randomised(jobs, launches, seed)
            recorded = run_study(store, study, design, seconds, None, progress.before_launch)
        rankings = rankings_of(recorded)
        drawn = _write_figure(rankings, figure or store.path.parent / f"{study}.svg")
    if as_json:
        emit_json("compare", 1, _document(study, parity, rankings, drawn))
        return
    _print_rankings(rankings, recorded)
    click.echo(f"Figure: {drawn}")
    next_line(f"paceline report {study}", "paceline list")


def rankings_of(launches: "list[Launch]") -> "dict[int, Ranking]":
    """A ranking of the frameworks for each number of processes."""
    from paceline.analyse.groups import grouped
    from paceline.analyse.ranking import rank

    by_processes: dict[int, list[Any]] = {}
    for group in grouped(launches):
        first = group.first
        by_processes.setdefault(first.world_size, []).append((first.framework, group))
    return {processes: rank(named) for processes, named in sorted(by_processes.items())}


def _runnable(text: str) -> list[str]:
    from paceline.errors import InputError
    from paceline.frameworks.command import check_runnable
    from paceline.frameworks.registry import framework

    names = list(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))
    if not names:
        raise InputError("no framework was named", "write --frameworks torch-ddp,jax")
    for name in names:
        check_runnable(framework(name))
    return names


def _check_some(parity: "ParityTable") -> None:
    from paceline.errors import InputError

    if not parity.same:
        reasons = "; ".join(f"{row.framework}: {row.reason}" for row in parity.rows)
        raise InputError(f"no framework trains {parity.model} as described: {reasons}")


def _print_parity(parity: "ParityTable") -> None:
    from paceline.report.table import Column, Table
    from paceline.report.terminal import print_table

    note = (
        f"Largest relative difference of {len(parity.losses)} losses from {parity.reference}"
        f"; {parity.parameters} parameters are described."
    )
    if parity.without_dropout:
        note += " Dropout left out: masks differ by framework."
    table = Table(
        columns=(
            Column("framework"),
            Column("parameters", decimals=0),
            Column("first loss", decimals=6),
            Column("last loss", decimals=6),
            Column("difference"),
            Column("same training"),
        ),
        rows=tuple(
            (
                row.framework,
                None if row.parameters is None else float(row.parameters),
                row.losses[0] if row.losses else None,
                row.losses[-1] if row.losses else None,
                f"{row.difference:.0e}" if row.losses else "-",
                "no" if row.reason else "yes",
            )
            for row in parity.rows
        ),
        title=f"Parity on {parity.model}",
        note=note,
    )
    print_table(table)
    for row in parity.rows:
        if row.reason:
            click.echo(f"left out: {row.framework}: {row.reason}", err=True)


def _print_rankings(rankings: "dict[int, Ranking]", launches: "list[Launch]") -> None:
    from paceline.cli.tables import print_doubts
    from paceline.report.numbers import Ranged
    from paceline.report.table import Column, Table
    from paceline.report.terminal import print_table

    for processes, ranking in rankings.items():
        best = ranking.groups[0].throughput.mean
        rows = []
        for name, group in zip(ranking.names, ranking.groups, strict=True):
            tied = ", ".join(ranking.tied_with(name)) or "none"
            share = group.throughput.mean / best
            shown = Ranged.of(group.throughput), Ranged.of(group.step)
            rows.append((float(ranking.place(name)), name, *shown, share, tied))
        print_table(
            Table(
                columns=(
                    Column("place", decimals=0),
                    Column("framework"),
                    Column("throughput", "samples/s"),
                    Column("step", "ms", scale=1e3),
                    Column("of best", decimals=2),
                    Column("not told from"),
                ),
                rows=tuple(rows),
                title=f"{processes} process{'es' if processes > 1 else ''}",
                note="± is the 95 % interval over launches; places by t tests over "
                "launches, Holm's correction, 5 %.",
            )
        )
    print_doubts(launches)


def _write_figure(rankings: "dict[int, Ranking]", path: Path) -> Path:
    from paceline.report.figures.bars import BarSeries, BarsInfo
    from paceline.report.figures.drawing import draw, standalone
    from paceline.report.files import write_text
    from paceline.report.numbers import Ranged

    names = list(dict.fromkeys(name for ranking in rankings.values() for name in ranking.names))
    series = []
    for processes, ranking in rankings.items():
        found = dict(zip(ranking.names, ranking.groups, strict=True))
        values = [Ranged.of(found[n].throughput) if n in found else None for n in names]
        label = f"{processes} process{'es' if processes > 1 else ''}"
        series.append(BarSeries(label, tuple(values)))
    info = BarsInfo("throughput (samples/s)", tuple(names), tuple(series), "samples/s")
    write_text(path, standalone(draw(info)))
    return path


def _document(
    study: str, parity: "ParityTable", rankings: "dict[int, Ranking]", figure: Path
) -> dict[str, Any]:
    return {
        "study": study,
        "model": parity.model,
        "parity": {
            "reference": parity.reference,
            "reference_losses": list(parity.losses),
            "without_dropout": parity.without_dropout,
            "frameworks": [
                {
                    "name": row.framework,
                    "parameters": row.parameters,
                    "losses": list(row.losses),
                    "largest_relative_difference": row.difference,
                    "same": not row.reason,
                    "reason": row.reason,
                }
                for row in parity.rows
            ],
        },
        "rankings": [
            {
                "processes": processes,
                "frameworks": [
                    {
                        "name": name,
                        "place": ranking.place(name),
                        "launches": group.throughput.launches,
                        "throughput_samples_per_second": group.throughput.mean,
                        "throughput_low_samples_per_second": group.throughput.low,
                        "throughput_high_samples_per_second": group.throughput.high,
                        "step_seconds": group.step.mean,
                        "not_told_from": ranking.tied_with(name),
                    }
                    for name, group in zip(ranking.names, ranking.groups, strict=True)
                ],
                "pairs": [
                    {
                        "faster": pair.faster,
                        "slower": pair.slower,
                        "ratio": pair.ratio,
                        "p_value": pair.p_value,
                        "corrected_p_value": pair.corrected_p,
                        "different": pair.different,
                    }
                    for pair in ranking.pairs
                ],
            }
            for processes, ranking in rankings.items()
        ],
        "figure": str(figure),
    }
