"""Predicted plans as flags of training programs, as text and JSON."""

from typing import Any

from paceline.errors import InputError
from paceline.predictor.emit.program_flags import ProgramFlags, program_flags
from paceline.predictor.prediction import Prediction
from paceline.units import format_bytes


def flags_of(prediction: Prediction, program: str) -> ProgramFlags:
    """The flags of a plan; an error if the plan does not fit."""
    if prediction.fits is False:
        needed = format_bytes(float(prediction.memory.total_bytes))
        raise InputError(
            f"the plan does not fit ({needed} per device), so no {program} flags are written",
            "find a plan that fits with 'paceline advise'",
        )
    per_node = prediction.cluster.devices_per_node
    return program_flags(program, prediction.plan, prediction.workload, per_node)


def flags_lines(prediction: Prediction, program: str, number: int | None = None) -> list[str]:
    """Flags of a plan, followed by comments on unsupported parts.

    With ``number`` (one of several plans), a plan that does not fit becomes a comment.
    """
    name = "plan" if number is None else f"plan {number}"
    try:
        found = flags_of(prediction, program)
    except InputError as error:
        if number is None:
            raise
        return [f"# {name}: {error}"]
    head = f"# {name} for {program}: {prediction.plan.label}"
    return [head, found.text, *(f"# {text}" for text in found.missing)]


def flags_json(prediction: Prediction, program: str | None) -> dict[str, Any]:
    """The same as JSON; empty without a program, no text for a plan that does not fit."""
    if program is None:
        return {}
    try:
        found = flags_of(prediction, program)
    except InputError as error:
        found = ProgramFlags(program, "", (str(error),))
    return {"flags": {"program": program, "text": found.text, "missing": list(found.missing)}}
