"""The page about one study: what was measured, what was predicted, and why they differ."""

from collections.abc import Sequence

from paceline.analyse.explain import Explanation
from paceline.analyse.groups import LaunchGroup, doubt_lines
from paceline.analyse.study_analysis import StudyAnalysis
from paceline.report.accuracy import accuracy_section
from paceline.report.factors import factors_section, statistics_tables
from paceline.report.figures import (
    CollectiveInfo,
    CollectiveSeries,
    LayersInfo,
    LayerSize,
    PhaseBar,
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
from paceline.report.tables.comparisons import comparison_table
from paceline.report.tables.explanation import explanation_title, findings_table
from paceline.report.tables.launches import launch_table, throughput_table
from paceline.report.tables.profile import gemm_table
from paceline.report.tables.ranking import (
    left_out_lines,
    parity_table,
    ranking_figure,
    ranking_table,
)
from paceline.step import breakdown
from paceline.store import Launch
from paceline.units import format_bandwidth


def study_page(results: StudyAnalysis) -> Page:
    """The whole page of a study."""
    models = sorted({launch.model for launch in results.launches})
    sections = [
        _ranking_section(results) if results.rankings else _results_section(results),
        *(_explanation_section(results, one) for one in results.explanations),
        accuracy_section(results.accuracy) if results.accuracy else None,
        factors_section(results.effects) if results.effects else None,
        _layers_section(results),
        _machine_section(results),
        _launches_section(results),
    ]
    what = "frameworks compared" if results.rankings else _what_was_done(results)
    return Page(
        title=f"{', '.join(models)}: {what}",
        subtitle=f"Study {results.study}",
        facts=_facts(results),
        sections=[section for section in sections if section is not None],
        provenance=_provenance(results),
    )


def _what_was_done(results: StudyAnalysis) -> str:
    """``measured, predicted, explained``: as far as the study went."""
    done = ["measured"]
    done += ["predicted"] if results.here or results.elsewhere else []
    return ", ".join(done + (["explained"] if results.explanations else []))


def _ranking_section(results: StudyAnalysis) -> Section:
    """Who is faster than whom on each number of processes, and whether all train the same."""
    tables = [ranking_table(count, ranking) for count, ranking in results.rankings.items()]
    parity = results.parity
    return Section(
        "Ranking",
        text=f"{len(results.frameworks)} frameworks trained the same network, their launches "
        "interleaved.",
        tables=[*tables, *([parity_table(parity)] if parity else [])],
        figures=[figure("Throughput by framework", ranking_figure(results.rankings))],
        notes=left_out_lines(parity) if parity else (),
        warnings=results.doubts,
    )


def _results_section(results: StudyAnalysis) -> Section:
    alone = results.alone
    comparisons = [*results.here, *results.elsewhere]
    plain = [group for group in results.groups if group.first.instrument == "none"]
    warnings = doubt_lines(plain)
    if alone is None or not comparisons:
        return Section("Measured", tables=[throughput_table(plain)], warnings=warnings)
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
        text="From one process, processes that were co-located without communication, and a probe "
        "of this machine, the step of several processes was predicted and then measured.",
        tables=[comparison_table(alone, comparisons)],
        figures=[figure("Throughput by workers", scaling)],
        warnings=warnings,
    )


def _predicted_series(results: StudyAnalysis, alone: LaunchGroup) -> list[ScalingSeries]:
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


def _explanation_section(results: StudyAnalysis, explanation: Explanation) -> Section:
    measured = explanation.measured
    figures = [
        figure(
            "From the ideal step to the measured one",
            WaterfallInfo(explanation.waterfall),
            "Each bar is what one cause adds; what no cause accounts for comes last.",
        )
    ]
    profile = explanation.profile
    bars = [
        PhaseBar(
            f"measured, rank {rank.rank}",
            {str(phase): seconds for phase, seconds in rank.phases.items()},
        )
        for rank in (profile.ranks if profile else ())
    ]
    matching = [c for c in results.here if c.prediction.devices == measured.first.world_size]
    bars += [phase_bar("predicted", breakdown(one.prediction.step)) for one in matching]
    if bars:
        figures.append(figure("Phases of a step", PhasesInfo(tuple(bars))))
    timeline = _timeline(results.launches, measured.first)
    if timeline is not None and timeline.outcome.timeline is not None:
        figures.append(figure("A measured step", gantt_info(timeline.outcome.timeline)))
    figures += [
        figure("The predicted step of one rank", gantt_info(one.prediction.step))
        for one in matching
    ]
    findings = findings_table(explanation)
    whose = f" under {measured.first.framework}" if len(results.frameworks) > 1 else ""
    return Section(
        f"Where the time goes{whose}",
        text=f"{explanation_title(explanation)}.",
        tables=[findings] if findings is not None else [],
        figures=figures,
        notes=[f"Not known: {words}" for words in explanation.missing],
    )


def _timeline(launches: Sequence[Launch], like: Launch) -> Launch | None:
    for launch in launches:
        if (
            launch.instrument == "phases"
            and launch.world_size == like.world_size
            and launch.framework == like.framework
        ):
            return launch
    return None


def _layers_section(results: StudyAnalysis) -> Section | None:
    if results.calibration is None:
        return None
    layers = [layer for layer in results.calibration.layers if layer.gradient_bytes > 0]
    slowest = sorted(
        results.calibration.layers,
        key=lambda layer: -(layer.forward_seconds + layer.backward_seconds),
    )[:12]
    table = Table.of(
        slowest,
        (Column("slowest layers"), lambda x: x.name),
        (Column("forward", "ms", scale=1e3, decimals=2), lambda x: x.forward_seconds),
        (Column("backward", "ms", scale=1e3, decimals=2), lambda x: x.backward_seconds),
        (Column("gradient", "kB", scale=1e-3, decimals=1), lambda x: x.gradient_bytes),
        note="Shares from a launch timed layer by layer, scaled to the plain step.",
    )
    info = LayersInfo(
        tuple(LayerSize(layer.name, layer.gradient_bytes) for layer in reversed(layers))
    )
    return Section("Layers", tables=[table], figures=[figure("Gradient of each layer", info)])


def _machine_section(results: StudyAnalysis) -> Section | None:
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
    gemm = gemm_table(profile, f"One thread. Memory: {format_bandwidth(profile.memory_bandwidth)}.")
    return Section(
        "This machine",
        text=f"{profile.machine}. {profile.source}, {profile.measured_at}.",
        tables=[gemm],
        figures=[figure("All-reduce by size", curves, "Median and middle half of repetitions.")],
        warnings=list(profile.notes),
    )


def _launches_section(results: StudyAnalysis) -> Section:
    table = launch_table(results.launches, "In the order in which they ran.", of_one_study=True)
    plain = [group for group in results.groups if group.first.instrument == "none"]
    return Section("Launches", tables=[*statistics_tables(plain), table])


def _facts(results: StudyAnalysis) -> list[Fact]:
    facts = [
        _throughput_fact(f"{ranking.names[0]}, {_counted(count)}", ranking.groups[0])
        for count, ranking in results.rankings.items()
    ]
    if facts:
        return facts
    if results.alone is not None:
        facts.append(_throughput_fact("1 process", results.alone))
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


def _counted(processes: int) -> str:
    return f"{processes} process{'es' if processes > 1 else ''}"


def _throughput_fact(label: str, group: LaunchGroup) -> Fact:
    rate = group.throughput
    note = f"± {rate.half_width:,.1f} over {rate.launches} launches" if rate.launches > 1 else ""
    return Fact(label, f"{rate.mean:,.1f} samples/s", note)


def _provenance(results: StudyAnalysis) -> list[Fact]:
    if not results.launches:
        return []
    first = results.launches[0]
    environment = first.environment
    loads = [launch.outcome.facts.get("load_before") for launch in results.launches]
    known = [load for load in loads if load is not None]
    return [
        Fact("machine", f"{environment.get('cpu_model')}, {environment.get('cores')} cores"),
        Fact("framework", ", ".join(_versions(results.launches))),
        Fact("Paceline", f"{environment.get('paceline')} on Python {environment.get('python')}"),
        Fact("commit of the working directory", str(environment.get("git_commit") or "none")),
        Fact("begun", first.created_at),
        Fact("launches", str(len(results.launches))),
        Fact(
            "load average before launches",
            f"{min(known):.1f} to {max(known):.1f}" if known else "unknown",
        ),
    ]


def _versions(launches: Sequence[Launch]) -> list[str]:
    """Each framework with the version that its launches told."""
    told: dict[str, str] = {}
    for launch in launches:
        version = launch.outcome.facts.get("versions", {}).get("framework")
        told.setdefault(launch.framework, f"{launch.framework} {version}" if version else "")
    return [words or name for name, words in told.items()]
