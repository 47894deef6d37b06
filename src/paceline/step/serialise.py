"""A step as JSON for the store, and as a Chrome trace for Perfetto and chrome://tracing."""

import json
from dataclasses import asdict
from typing import Any

from paceline.step.task import Origin, Phase, Step, Task


def step_to_json(step: Step) -> dict[str, Any]:
    """The step as JSON values, in seconds and bytes."""
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


def chrome_trace(step: Step) -> str:
    """The step as Chrome-trace JSON: a process per rank, a thread per resource, microseconds."""
    lanes = {resource: number for number, resource in enumerate(step.resources)}
    events: list[dict[str, Any]] = []
    for rank in step.ranks:
        events.append(_name("process_name", rank, 0, f"rank {rank}"))
        events.extend(_name("thread_name", rank, tid, lane) for lane, tid in lanes.items())
    for task, start in zip(step.tasks, step.starts, strict=True):
        events.append(
            {
                "ph": "X",
                "name": task.name,
                "cat": str(task.phase),
                "pid": task.rank,
                "tid": lanes[task.resource],
                "ts": start * 1e6,
                "dur": task.seconds * 1e6,
                "args": {
                    "layer": task.layer,
                    "bytes": task.size_bytes,
                    "flops": task.flops,
                    "after": list(task.after),
                },
            }
        )
    return json.dumps(
        {
            "traceEvents": events,
            "displayTimeUnit": "ms",
            "otherData": {"origin": str(step.origin), "label": step.label},
        }
    )


def _name(kind: str, rank: int, thread: int, name: str) -> dict[str, Any]:
    return {"ph": "M", "name": kind, "pid": rank, "tid": thread, "args": {"name": name}}
