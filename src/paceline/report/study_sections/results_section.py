"""Results: throughput by configuration, ranking of frameworks, scaling."""

from collections.abc import Sequence

from paceline.analysis.configurations import LaunchGroup, warning_lines
from paceline.analysis.launch_statistics import throughput
from paceline.analysis.launch_tables import throughput_table
from paceline.analysis.ranking_tables import (
    left_out_lines,
    parity_table,
    ranking_caption,
    ranking_figure,
    ranking_table,
)
from paceline.render.figures import (
    RepeatedRow,
    RepetitionsInfo,
    ScalingInfo,
    ScalingPoint,
    ScalingSeries,
    efficiency_table,
    figure,
)
from paceline.render.html_page import Figure, Section
from paceline.render.number_format import Ranged
from paceline.report.study_analysis import StudyAnalysis
from paceline.store import Launch

MOST_ROWS = 40
"""Limit of configurations in the figure; the table has all."""
_NAMED = ("framework", "model", "batch", "processes")


def plain_groups(results: StudyAnalysis) -> list[LaunchGroup]:
    """Configurations without timers inside the step, whose throughput counts."""
    return [group for group in results.groups if group.first.instrument == "none"]


def results_section(results: StudyAnalysis) -> Section:
    """Throughput and step time of each configuration, with every launch."""
    plain = plain_groups(results)
    return Section(
        "Results",
        tables=[throughput_table(plain)],
        figures=[_launches_figure(plain)] if plain else (),
        warnings=warning_lines(plain),
    )


def ranking_section(results: StudyAnalysis) -> Section | None:
    """Ranking of frameworks for each number of processes, and their parity."""
    if not results.rankings:
        return None
    tables = [ranking_table(count, ranking) for count, ranking in results.rankings.items()]
    parity = results.parity
    models = ", ".join(sorted({launch.model for launch in results.launches}))
    return Section(
        "Ranking and parity",
        text=f"{len(results.frameworks)} frameworks"
        + (" trained the same network." if results.same_network else ": parity was not checked."),
        tables=[*tables, *([parity_table(parity)] if parity else [])],
        figures=[
            figure(
                "Throughput by framework",
                ranking_figure(results.rankings),
                ranking_caption(results.rankings, models),
            )
        ],
        notes=[
            *(left_out_lines(parity) if parity else ()),
            *(results.completeness.notes if results.completeness else ()),
        ],
    )


def scaling_section(results: StudyAnalysis) -> Section | None:
    """Throughput over processes and nodes, with perfect scaling and scaling without overlap."""
    measured = _measured_series(results)
    predicted = _predicted_series(results)
    if not any(len(series.points) > 1 for series in (*measured, *predicted)):
        return None
    info = ScalingInfo(
        "throughput (samples/s)",
        (*measured, *predicted),
        "samples/s",
        device_title="workers",
        bound=_unhidden(results),
    )
    caption = "Dotted: perfect scaling, the upper bound. Bars are 95 % intervals over launches"
    if predicted:
        caption += (
            ", shaded bands 90 % intervals of predictions. The thin line is the throughput of "
            "nodes without overlap of communication"
        )
    scaled = [series for series in measured if len(series.drawable) > 1]
    table = efficiency_table(scaled, "samples/s", "worker") if scaled else None
    return Section(
        "Scaling",
        tables=[table] if table else [],
        figures=[figure("Throughput by workers", info, f"{caption}.")],
    )


def _launches_figure(plain: Sequence[LaunchGroup]) -> Figure:
    rows = tuple(
        RepeatedRow(
            group.description,
            tuple(throughput(launch) for launch in group.launches),
            Ranged.of(group.throughput),
        )
        for group in plain[:MOST_ROWS]
    )
    caption = "Each point is a launch; the mean and its 95 % interval are below the points."
    if len(plain) > MOST_ROWS:
        caption += f" The first {MOST_ROWS} of {len(plain)} configurations."
    info = RepetitionsInfo("throughput (samples/s)", rows, "samples/s")
    return figure("Throughput, launch by launch", info, caption)


def _measured_series(results: StudyAnalysis) -> list[ScalingSeries]:
    """One series per framework and varied setting, from launches that communicate."""
    by_label: dict[str, list[ScalingPoint]] = {}
    for group in plain_groups(results):
        first = group.first
        if first.synchronised or first.world_size == 1:
            label = _system(first, results)
            point = ScalingPoint(first.world_size, Ranged.of(group.throughput))
            own = by_label.setdefault(label, [])
            if all(point.devices != other.devices for other in own):
                own.append(point)
    return [ScalingSeries(label, tuple(points)) for label, points in by_label.items()]


def _system(launch: Launch, results: StudyAnalysis) -> str:
    """Label of a line: everything that varies except the number of processes."""
    several = {
        "batch": len({one.batch_per_rank for one in results.launches}) > 1,
        "model": len({one.model for one in results.launches}) > 1,
    }
    parts = [launch.framework if len(results.frameworks) > 1 else "measured"]
    parts += [f"batch {launch.batch_per_rank}"] if several["batch"] else []
    parts += [launch.model] if several["model"] else []
    effects = results.effects.levels if results.effects else {}
    levels = launch.job.get("factors", {})
    parts += [f"{name} {levels[name]}" for name in effects if name in levels and name not in _NAMED]
    return ", ".join(parts)


def _predicted_series(results: StudyAnalysis) -> list[ScalingSeries]:
    """Predictions begin at the one process they were made from."""
    alone = results.alone
    if alone is None:
        return []
    start = ScalingPoint(1, Ranged(alone.throughput.mean))
    series = []
    for label, comparisons in (
        ("predicted, this machine", results.here),
        ("predicted, several nodes", results.elsewhere),
    ):
        points = [
            ScalingPoint(
                one.prediction.devices,
                Ranged(
                    one.prediction.samples_per_second, *one.prediction.samples_per_second_interval
                ),
            )
            for one in comparisons
        ]
        if points:
            series.append(ScalingSeries(label, (start, *points), is_predicted=True))
    return series


def _unhidden(results: StudyAnalysis) -> ScalingSeries | None:
    """Throughput of nodes if all communication is exposed; None without predictions."""
    points = tuple(
        ScalingPoint(one.prediction.devices, Ranged(one.prediction.unhidden_samples_per_second))
        for one in results.elsewhere
    )
    return ScalingSeries("all communication exposed", points) if points else None
