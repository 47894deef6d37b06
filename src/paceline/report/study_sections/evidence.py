"""What predictions rest on: layers of the network as timed, and the machine as probed."""

from paceline.analyse.study_analysis import StudyAnalysis
from paceline.report.figures import (
    CollectiveInfo,
    CollectiveSeries,
    LayersInfo,
    LayerSize,
    figure,
)
from paceline.report.numbers import Ranged
from paceline.report.page import Section
from paceline.report.table import Column, Table
from paceline.report.tables.profile import gemm_table
from paceline.units import format_bandwidth

SLOWEST = 12


def layers_section(results: StudyAnalysis) -> Section | None:
    """The slowest layers and every layer's gradient; None where layers were not timed."""
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
        note="Shares from a launch timed layer by layer, scaled to the plain step.",
    )
    info = LayersInfo(
        tuple(LayerSize(layer.name, layer.gradient_bytes) for layer in reversed(layers))
    )
    caption = "In the order of the backward pass, in which gradients become ready to be sent."
    return Section(
        "Layers", tables=[table], figures=[figure("Gradient of each layer", info, caption)]
    )


def machine_section(results: StudyAnalysis) -> Section | None:
    """Arithmetic, memory and all-reduce of this machine as probed; None where it was not."""
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
        figures=[figure("All-reduce by size", curves, "Median and middle half of repetitions.")]
        if curves.series
        else [],
        warnings=list(profile.notes),
    )
