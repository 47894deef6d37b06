"""The analysis of a study as JSON values."""

from typing import Any

from paceline.analysis.accuracy_tables import accuracy_json
from paceline.analysis.ranking_tables import parity_json, rankings_json
from paceline.calibration.prediction_error import comparisons_json
from paceline.explanation.explanation_tables import waterfall_json
from paceline.report.study_analysis import StudyAnalysis


def study_json(results: StudyAnalysis) -> dict[str, Any]:
    """Comparisons, waterfall and, for several frameworks, rankings and parity."""
    document: dict[str, Any] = {
        "study": results.study,
        "launches": len(results.launches),
        "comparisons": comparisons_json([*results.here, *results.elsewhere]),
        "waterfall": waterfall_json(results.explanation),
    }
    if results.rankings:
        document["rankings"] = rankings_json(results.rankings)
        document["parity"] = parity_json(results.parity) if results.parity else None
    if results.accuracy is not None:
        document["accuracy"] = accuracy_json(results.accuracy)
    return document
