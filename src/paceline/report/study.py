"""The page about one study: what was measured, what was predicted, and why they differ."""

from collections.abc import Sequence
from dataclasses import dataclass

from paceline.analyse.comparison import Comparison
from paceline.analyse.explain import Explanation
from paceline.analyse.groups import LaunchGroup, doubt_lines, grouped
from paceline.analyse.measured_job import MeasuredJob
from paceline.analyse.statistics import mean_step_seconds, throughput, wall_over_cpu
from paceline.hardware.profile import MachineProfile
from paceline.report.figures import (
    CollectiveInfo,
    CollectiveSeries,
    LayersInfo,
    LayerSize,
    PhasesInfo,
    ScalingInfo,
    ScalingPoint,
    ScalingSeries,
    WaterfallInfo,
    figure,
    gantt_info,
    phase_bar,
)
from paceline.report.numbers import Ranged
from paceline.report.page import Fact, Page, Section
from paceline.report.table import Column, Table
from paceline.step import breakdown
from paceline.store import Launch, Status
from paceline.units import format_bandwidth


@dataclass(frozen=True)
class StudyResults:
    """Everything known about a study; what could not be had is None or empty."""

    study: str
    launches: Sequence[Launch]
    here: Sequence[Comparison] = ()
    elsewhere: Sequence[Comparison] = ()
    explanation: Explanation | None = None
    calibration: MeasuredJob | None = None
    profile: MachineProfile | None = None


def study_page(results: StudyResults) -> Page:
    """The whole page of a study."""
    groups = grouped(results.launches)
    models = sorted({launch.model for launch in results.launches})
    sections = [
        _results_section(results, groups),
        _explanation_section(results),
        _layers_section(results),
        _machine_section(results),
        _launches_section(results),
    ]
    return Page(
        title=f"{', '.join(models)}: measured, predicted, explained",
        subtitle=f"Study {results.study}",
        facts=_facts(results, groups),
        sections=[section for section in sections if section is not None],
        provenance=_provenance(results),
    )


def comparison_table(alone: LaunchGroup, comparisons: Sequence[Comparison]) -> Table:
    """Measured and predicted throughput, the error, and what perfect scaling would say."""
    rows: list[tuple[str | float | Ranged | None, ...]] = [
        ("1 process", Ranged.of(alone.throughput), "(calibration)", None, None, None)
    ]
    for one in comparisons:
        low, high = one.prediction.samples_per_second_interval
        rows.append(
            (
                one.label,
                Ranged.of(one.measured.throughput) if one.measured else None,
                f"{one.prediction.samples_per_second:,.1f} [{low:,.1f}, {high:,.1f}]",
                one.error,
                one.prediction.perfect_samples_per_second,
                one.perfect_error,
            )
        )
    return Table(
        columns=(
            Column(""),
            Column("measured", "samples/s"),
            Column("predicted", "samples/s"),
            Column("error", "%", scale=100, decimals=1, signed=True),
            Column("perfect scaling", "samples/s"),
            Column("its error", "%", scale=100, decimals=1, signed=True),
        ),
        rows=tuple(rows),
        note="± is the 95 % interval of the mean over launches; [ ] the 90 % interval of a "
        "prediction. No synchronised launch is used for predicting.",
    )


def _results_section(results: StudyResults, groups: Sequence[LaunchGroup]) -> Section:
    alone = _alone(groups)
    comparisons = [*results.here, *results.elsewhere]
    plain = [group for group in groups if group.first.instrument == "none"]
    warnings = doubt_lines(plain)
    if alone is None or not comparisons:
        return Section("Measured", tables=[_throughput_table(plain)], warnings=warnings)
    scaling = ScalingInfo(
        "throughput (samples/s)",
        (
            ScalingSeries("measured here", _measured_points(plain)),
            *_predicted_series(results, alone),
        ),
        unit="samples/s",
        device_title="workers",
    )
    return Section(
        "Predicted and measured",
        text="From one process, processes that ran side by side without talking, and a probe of "
        "this machine, the step of several processes was predicted and then measured.",
        tables=[comparison_table(alone, comparisons)],
        figures=[figure("Throughput by workers", scaling)],
        warnings=warnings,
    )


def _predicted_series(results: StudyResults, alone: LaunchGroup) -> list[ScalingSeries]:
    """Predictions begin at the one process they were made from."""
    start = ScalingPoint(1, Ranged(alone.throughput.mean))
    series = []
    for label, comparisons in (
        ("predicted here", results.here),
        ("predicted, nodes on a network", results.elsewhere),
    ):
        if comparisons:
            points = [
                ScalingPoint(
                    one.prediction.devices,
                    Ranged(
                        one.prediction.samples_per_second,
                        *one.prediction.samples_per_second_interval,
                    ),
                )
                for one in comparisons
            ]
            series.append(ScalingSeries(label, (start, *points), is_predicted=True))
    return series


def _measured_points(plain: Sequence[LaunchGroup]) -> tuple[ScalingPoint, ...]:
    return tuple(
        ScalingPoint(group.first.world_size, Ranged.of(group.throughput))
        for group in plain
        if group.first.synchronised or group.first.world_size == 1
    )


def _explanation_section(results: StudyResults) -> Section | None:
    explanation = results.explanation
    if explanation is None:
        return None
    measured = explanation.measured
    figures = [
        figure(
            "From the ideal step to the measured one",
            WaterfallInfo(explanation.waterfall),
            "Each bar is what one cause adds; what no cause accounts for comes last.",
        )
    ]
    bars = [
        phase_bar(f"measured, rank {rank}", parts) for rank, parts in enumerate(explanation.phases)
    ]
    matching = [c for c in results.here if c.prediction.devices == measured.first.world_size]
    bars += [phase_bar("predicted", breakdown(one.prediction.step)) for one in matching]
    if bars:
        figures.append(figure("Phases of a step", PhasesInfo(tuple(bars))))
    timeline = _timeline(results.launches, measured.first.world_size)
    if timeline is not None and timeline.outcome.timeline is not None:
        figures.append(figure("A measured step", gantt_info(timeline.outcome.timeline)))
    figures += [
        figure("The predicted step of one rank", gantt_info(one.prediction.step))
        for one in matching
    ]
    return Section(
        "Where the time goes",
        text=f"{measured.words}: {explanation.efficiency:.0%} of perfect scaling.",
        figures=figures,
        notes=[f"Not known: {words}" for words in explanation.missing],
    )


def _timeline(launches: Sequence[Launch], processes: int) -> Launch | None:
    for launch in launches:
        if launch.instrument == "phases" and launch.world_size == processes:
            return launch
    return None


def _layers_section(results: StudyResults) -> Section | None:
    if results.calibration is None:
        return None
    layers = [layer for layer in results.calibration.layers if layer.gradient_bytes > 0]
    slowest = sorted(
        results.calibration.layers,
        key=lambda layer: -(layer.forward_seconds + layer.backward_seconds),
    )[:12]
    table = Table(
        (
            Column("slowest layers"),
            Column("forward", "ms", scale=1e3, decimals=2),
            Column("backward", "ms", scale=1e3, decimals=2),
            Column("gradient", "kB", scale=1e-3, decimals=1),
        ),
        tuple((x.name, x.forward_seconds, x.backward_seconds, x.gradient_bytes) for x in slowest),
        note="Shares from a launch timed layer by layer, scaled to the plain step.",
    )
    info = LayersInfo(
        tuple(LayerSize(layer.name, layer.gradient_bytes) for layer in reversed(layers))
    )
    return Section("Layers", tables=[table], figures=[figure("Gradient of each layer", info)])


def _machine_section(results: StudyResults) -> Section | None:
    profile = results.profile
    if profile is None:
        return None
    curves = CollectiveInfo(
        tuple(
            CollectiveSeries(
                f"{ranks} ranks",
                tuple(
                    (
                        point.size_bytes,
                        Ranged(
                            point.seconds,
                            point.lower_quartile_seconds,
                            point.upper_quartile_seconds,
                        ),
                    )
                    for point in curve
                ),
            )
            for ranks, curve in profile.all_reduce.items()
        )
    )
    gemm = Table(
        (Column("product of"), Column("GFLOP/s", scale=1e-9, decimals=1)),
        tuple((f"{n} × {n}", rate) for n, rate in sorted(profile.gemm_flops.items())),
        note=f"One thread. Memory: {format_bandwidth(profile.memory_bandwidth)}.",
    )
    return Section(
        "This machine",
        text=f"{profile.machine}. {profile.source}, {profile.measured_at}.",
        tables=[gemm],
        figures=[figure("All-reduce by size", curves, "Median and middle half of repetitions.")],
        warnings=list(profile.notes),
    )


def _launches_section(results: StudyResults) -> Section:
    rows = []
    for launch in results.launches:
        done = launch.status is Status.FINISHED
        kind = "plain" if launch.instrument == "none" else launch.instrument
        if launch.world_size > 1 and not launch.synchronised:
            kind = "side by side"
        rows.append(
            (
                launch.id,
                float(launch.world_size),
                kind,
                str(launch.status) if done else f"{launch.status}: {launch.outcome.reason}",
                throughput(launch) if done else None,
                mean_step_seconds(launch) if done else None,
                wall_over_cpu(launch) if done else None,
            )
        )
    table = Table(
        (
            Column("launch"),
            Column("processes", decimals=0),
            Column("kind"),
            Column("status"),
            Column("samples/s"),
            Column("step", "ms", scale=1e3),
            Column("wall/CPU", decimals=2),
        ),
        tuple(rows),
        note="In the order in which they ran, which was random.",
    )
    return Section("Launches", tables=[table])


def _throughput_table(groups: Sequence[LaunchGroup]) -> Table:
    return Table(
        (Column("configuration"), Column("throughput", "samples/s"), Column("step", "ms", 1e3)),
        tuple((g.words, Ranged.of(g.throughput), Ranged.of(g.step)) for g in groups),
        note="± is the 95 % interval of the mean over launches (Student's t).",
    )


def _alone(groups: Sequence[LaunchGroup]) -> LaunchGroup | None:
    for group in groups:
        if group.first.world_size == 1 and group.first.instrument == "none":
            return group
    return None


def _facts(results: StudyResults, groups: Sequence[LaunchGroup]) -> list[Fact]:
    facts = []
    alone = _alone(groups)
    if alone is not None:
        facts.append(_throughput_fact("1 process", alone))
    for one in results.here:
        if one.measured is not None:
            facts.append(_throughput_fact(one.label, one.measured))
        low, high = one.prediction.samples_per_second_interval
        error = "" if one.error is None else f", error {one.error:+.1%}"
        facts.append(
            Fact(
                f"{one.label}, predicted",
                f"{one.prediction.samples_per_second:,.1f} samples/s",
                f"[{low:,.1f}, {high:,.1f}]{error}",
            )
        )
    return facts


def _throughput_fact(label: str, group: LaunchGroup) -> Fact:
    rate = group.throughput
    note = f"± {rate.half_width:,.1f} over {rate.launches} launches" if rate.launches > 1 else ""
    return Fact(label, f"{rate.mean:,.1f} samples/s", note)


def _provenance(results: StudyResults) -> list[Fact]:
    if not results.launches:
        return []
    first = results.launches[0]
    environment, facts = first.environment, first.outcome.facts
    loads = [launch.outcome.facts.get("load_before") for launch in results.launches]
    known = [load for load in loads if load is not None]
    return [
        Fact("machine", f"{environment.get('cpu_model')}, {environment.get('cores')} cores"),
        Fact("framework", str(facts.get("versions", {}).get("framework", first.framework))),
        Fact("Paceline", f"{environment.get('paceline')} on Python {environment.get('python')}"),
        Fact("commit of the working directory", str(environment.get("git_commit") or "none")),
        Fact("begun", first.created_at),
        Fact("design", f"{len(results.launches)} launches in shuffled blocks"),
        Fact(
            "load average before launches",
            f"{min(known):.1f} to {max(known):.1f}" if known else "unknown",
        ),
    ]
