"""Evidence for predictions: timed layers of the network, and the machine probe."""

from collections.abc import Sequence

from paceline.calibration.calibration_tables import gemm_table
from paceline.hardware.machine_profile import CollectivePoint
from paceline.render.figures import (
    CollectiveInfo,
    CollectiveSeries,
    LayersInfo,
    LayerSize,
    MessageSize,
    figure,
)
from paceline.render.html_page import Section
from paceline.render.number_format import Ranged
from paceline.render.table import Column, Table
from paceline.report.study_analysis import StudyAnalysis
from paceline.units import format_bandwidth

SLOWEST = 12
_CURVE = (
    "Median and interquartile range of repetitions. Line: time of the smallest message plus size "
    "over the highest rate."
)


def layers_section(results: StudyAnalysis) -> Section | None:
    """The slowest layers and the gradient of each layer; None if layers were not timed."""
    if results.calibration is None:
        return None
    layers = [layer for layer in results.calibration.layers if layer.gradient_bytes > 0]
    slowest = sorted(
        results.calibration.layers,
        key=lambda layer: -(layer.forward_seconds + layer.backward_seconds),
    )[:SLOWEST]
    table = Table.of(
        slowest,
        (Column("slowest layers"), lambda x: x.name),
        (Column("forward", "ms", scale=1e3, decimals=2), lambda x: x.forward_seconds),
        (Column("backward", "ms", scale=1e3, decimals=2), lambda x: x.backward_seconds),
        (Column("gradient", "kB", scale=1e-3, decimals=1), lambda x: x.gradient_bytes),
        note="Shares of a launch with layer timers, scaled to the plain step.",
    )
    sizes = tuple(LayerSize(layer.name, layer.gradient_bytes) for layer in reversed(layers))
    info = LayersInfo(sizes, _messages(results, [layer.name for layer in sizes]))
    caption = "In the order of the backward pass, in which gradients become ready."
    if info.messages:
        caption += " Messages are those of the predicted step."
    return Section(
        "Layers", tables=[table], figures=[figure("Gradient of each layer", info, caption)]
    )


def _messages(results: StudyAnalysis, names: list[str]) -> tuple[MessageSize, ...]:
    """Messages of the predicted step, which are named after their first and last layer."""
    found = []
    for task in results.here[-1].prediction.step.tasks if results.here else ():
        first, _, last = task.layer.partition("..")
        if task.size_bytes > 0 and {first, last or first} <= set(names):
            ends = names.index(first), names.index(last or first)
            found.append(MessageSize(task.size_bytes, min(ends), max(ends)))
    return tuple(found)


def machine_section(results: StudyAnalysis) -> Section | None:
    """Probed GEMM, memory and all-reduce of this machine; None without a probe."""
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
                tuple(
                    (one.size_bytes, curve[0].seconds + one.size_bytes / _fastest(curve))
                    for one in curve
                ),
            )
            for ranks, curve in profile.all_reduce.items()
        )
    )
    gemm = gemm_table(profile, f"One thread. Memory: {format_bandwidth(profile.memory_bandwidth)}.")
    measured = profile.measured_at[:16].replace("T", " ")
    return Section(
        "This machine",
        text=f"{profile.machine}. {profile.source}, {measured} UTC.",
        tables=[gemm],
        figures=[figure("All-reduce by size", curves, _CURVE)] if curves.series else [],
        warnings=list(profile.notes),
    )


def _fastest(curve: Sequence[CollectivePoint]) -> float:
    """The highest rate of a curve, bytes/s."""
    return max(point.size_bytes / point.seconds for point in curve)
