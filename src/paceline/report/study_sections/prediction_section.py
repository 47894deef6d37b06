"""Prediction against measurement: throughput, phases, errors."""

from collections.abc import Mapping

from paceline.calibration.calibration_tables import comparison_table
from paceline.calibration.prediction_error import Comparison
from paceline.explanation.explain_step import Explanation
from paceline.render.figures import (
    PhaseBar,
    PhasesInfo,
    ScatterGroup,
    ScatterInfo,
    ScatterPoint,
    figure,
)
from paceline.render.html_page import Figure, Section
from paceline.render.table import Column, Table
from paceline.report.study_analysis import StudyAnalysis
from paceline.step import Phase

WORTH_A_SCATTER = 3
"""Number of comparisons from which a figure adds to their table."""


def model_section(results: StudyAnalysis) -> Section | None:
    """Predictions and measurements of the same configurations; None without predictions."""
    alone = results.alone
    comparisons = [*results.here, *results.elsewhere]
    if alone is None or not comparisons:
        return None
    pairs = [(one, found) for one in results.here if (found := _explanation_of(one, results))]
    return Section(
        "Prediction against measurement",
        text="The step of several processes was predicted from one process, co-located processes "
        "without communication and a probe of this machine, and then measured.",
        tables=[
            comparison_table(alone, comparisons),
            *(_phase_table(one, found) for one, found in pairs if found.profile),
        ],
        figures=_scatter(results),
        notes=_notes(comparisons),
    )


def _explanation_of(one: Comparison, results: StudyAnalysis) -> Explanation | None:
    for explanation in results.explanations:
        if one.measured is not None and explanation.measured.first in one.measured.launches:
            return explanation
    return None


def measured_phases(explanation: Explanation, rank: int | None = None) -> dict[str, float]:
    """Mean seconds by phase of one rank (default: the slowest) in instrumented launches."""
    profile = explanation.profile
    if profile is None:
        return {}
    own = profile.slowest if rank is None else next(r for r in profile.ranks if r.rank == rank)
    return {str(phase): seconds for phase, seconds in own.phases.items()}


def predicted_phases(one: Comparison) -> dict[str, float]:
    """Seconds by phase of a predicted step; waiting of ranks for each other counts as wait."""
    found = {str(phase): s for phase, s in one.prediction.breakdown.exposed.items()}
    rest = one.prediction.step_seconds - sum(found.values())
    if rest > 0:
        found[str(Phase.WAIT)] = found.get(str(Phase.WAIT), 0.0) + rest
    return found


def phases_figure(results: StudyAnalysis, explanation: Explanation) -> Figure | None:
    """Measured phases of each rank, and predicted phases of the configuration."""
    profile = explanation.profile
    bars = [
        PhaseBar(f"measured, rank {rank.rank}", measured_phases(explanation, rank.rank))
        for rank in (profile.ranks if profile else ())
    ]
    bars += [
        PhaseBar(
            "predicted",
            predicted_phases(one),
            one.prediction.breakdown.hidden_communication_seconds,
        )
        for one in results.here
        if _explanation_of(one, results) is explanation
    ]
    if not bars:
        return None
    return figure(
        "Phases of a step",
        PhasesInfo(tuple(bars)),
        "Measured phases are from instrumented launches if plain ones have none; the prediction "
        "is for a step without timers.",
    )


def _phase_table(one: Comparison, explanation: Explanation) -> Table:
    measured, predicted = measured_phases(explanation), predicted_phases(one)
    names = [str(phase) for phase in Phase if {str(phase)} & (measured.keys() | predicted.keys())]
    rows = [_phase_row(name, measured, predicted) for name in names]
    rows.append(("step", sum(measured.values()), sum(predicted.values())))
    return Table.of(
        rows,
        (Column("phase"), lambda row: row[0]),
        (Column("measured", "ms", scale=1e3), lambda row: row[1]),
        (Column("predicted", "ms", scale=1e3), lambda row: row[2]),
        (Column("difference", "ms", scale=1e3, signed=True), lambda row: row[2] - row[1]),
        title=f"Phases on {one.label}",
        note="The slowest rank; each instant belongs to one phase. Measured phases are from "
        "instrumented launches; the prediction is for a step without timers.",
    )


def _phase_row(
    name: str, measured: Mapping[str, float], predicted: Mapping[str, float]
) -> tuple[str, float, float]:
    return name, measured.get(name, 0.0), predicted.get(name, 0.0)


def _scatter(results: StudyAnalysis) -> list[Figure]:
    points = tuple(
        ScatterPoint(one.measured.throughput.mean, one.prediction.samples_per_second, one.label)
        for one in results.here
        if one.measured is not None
    )
    if len(points) < WORTH_A_SCATTER:
        return []
    info = ScatterInfo((ScatterGroup("configurations", points),))
    return [
        figure("Predicted and measured", info, "On the line, prediction and measurement agree.")
    ]


def _notes(comparisons: list[Comparison]) -> list[str]:
    notes = dict.fromkeys(note for one in comparisons for note in one.prediction.notes)
    return [f"{note[:1].upper()}{note[1:]}." for note in notes]
