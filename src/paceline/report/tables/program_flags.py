"""Predicted plans in the words of a program, as text and for programs."""

from typing import Any

from paceline.plan.program_flags import program_flags
from paceline.predictor.prediction import Prediction


def flags_lines(prediction: Prediction, program: str, number: int | None = None) -> list[str]:
    """A plan in the words of a program, what it cannot be told behind it."""
    found = program_flags(program, prediction.plan, prediction.workload)
    name = "plan" if number is None else f"plan {number}"
    head = f"# {name} for {program}: {prediction.plan.label}"
    return [head, found.text, *(f"# {words}" for words in found.missing)]


def flags_json(prediction: Prediction, program: str | None) -> dict[str, Any]:
    """The same for programs; nothing where none is named."""
    if program is None:
        return {}
    found = program_flags(program, prediction.plan, prediction.workload)
    return {"flags": {"program": program, "text": found.text, "missing": list(found.missing)}}
