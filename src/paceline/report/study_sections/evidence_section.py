"""Evidence for predictions: timed layers of the network, and the machine probe."""

from paceline.calibration.calibration_tables import gemm_table
from paceline.render.figures import CollectiveInfo, CollectiveSeries, LayersInfo, LayerSize, figure
from paceline.render.html_page import Section
from paceline.render.number_format import Ranged
from paceline.render.table import Column, Table
from paceline.report.study_analysis import StudyAnalysis
from paceline.units import format_bandwidth

SLOWEST = 12


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
    info = LayersInfo(
        tuple(LayerSize(layer.name, layer.gradient_bytes) for layer in reversed(layers))
    )
    caption = "In the order of the backward pass, in which gradients become ready."
    return Section(
        "Layers", tables=[table], figures=[figure("Gradient of each layer", info, caption)]
    )


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
        figures=[
            figure("All-reduce by size", curves, "Median and interquartile range of repetitions.")
        ]
        if curves.series
        else [],
        warnings=list(profile.notes),
    )
