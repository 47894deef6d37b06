"""A step as plain JSON values and back, for the store and for other programs."""

from dataclasses import asdict
from typing import Any

from paceline.step.task import Origin, Phase, Step, Task


def step_to_json(step: Step) -> dict[str, Any]:
    """The step as JSON values; seconds and bytes as they are."""
    return {
        "schema": "paceline/step/1",
        "origin": str(step.origin),
        "label": step.label,
        "metadata": step.metadata,
        "tasks": [
            {**asdict(task), "phase": str(task.phase), "start": start}
            for task, start in zip(step.tasks, step.starts, strict=True)
        ],
    }


def step_from_json(document: dict[str, Any]) -> Step:
    """The step that `step_to_json` wrote."""
    tasks, starts = [], []
    for item in document["tasks"]:
        fields = dict(item)
        starts.append(float(fields.pop("start")))
        fields["phase"] = Phase(fields["phase"])
        fields["after"] = tuple(fields["after"])
        tasks.append(Task(**fields))
    return Step(
        tuple(tasks),
        tuple(starts),
        Origin(document["origin"]),
        document["label"],
        dict(document["metadata"]),
    )
