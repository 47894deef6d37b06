"""An analysed study as JSON values: the same facts as its page."""

from typing import Any

from paceline.analyse.comparison import comparisons_json
from paceline.analyse.study_analysis import StudyAnalysis
from paceline.report.tables.accuracy import accuracy_json
from paceline.report.tables.explanation import waterfall_json
from paceline.report.tables.ranking import parity_json, rankings_json


def study_json(results: StudyAnalysis) -> dict[str, Any]:
    """Comparisons, waterfall and, where frameworks were compared, ranking and parity."""
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
