"""Reads the events of the ranks of a launch: JSON lines, one file per rank."""

import math
import statistics
from dataclasses import fields
from pathlib import Path
from typing import Any

from paceline.errors import InputError
from paceline.json_checks import parsed_json
from paceline.measurement.event_schema import is_valid_event
from paceline.step import Origin, Phase, Step, Task
from paceline.step.breakdown import merge
from paceline.step.step_profile import StepProfile, profile_steps
from paceline.store import LayerTiming, RankSteps
from paceline.user_files import opened

Event = dict[str, Any]


def read_events(path: Path) -> list[Event]:
    """Valid events of a file; lines that are truncated by a kill or invalid are skipped."""
    try:
        with opened(path) as file:
            lines = file.read().decode(errors="replace").splitlines()
    except (InputError, OSError):
        return []
    events = []
    for line in lines:
        try:
            event = parsed_json(line)
        except ValueError:
            continue
        if (
            isinstance(event, dict)
            and isinstance(event.get("event"), str)
            and is_valid_event(event)
        ):
            events.append(event)
    return events


def last_event(events: list[Event], kind: str) -> Event | None:
    found = [event for event in events if event["event"] == kind]
    return found[-1] if found else None


def rank_steps(events: list[Event]) -> RankSteps | None:
    steps = last_event(events, "steps")
    if steps is None:
        return None
    return RankSteps(
        steps["rank"],
        tuple(steps["wall_seconds"]),
        tuple(steps["cpu_seconds"]),
        tuple(steps["losses"]),
        tuple(steps.get("delay_seconds", ())),
    )


def layer_timings(events: list[Event]) -> tuple[LayerTiming, ...]:
    """Times of layers; empty unless the job requested them."""
    layers = last_event(events, "layers")
    names = [field.name for field in fields(LayerTiming)]
    written = layers["layers"] if layers else ()
    return tuple(LayerTiming(*(layer[name] for name in names)) for layer in written)


def step_parts(ranks: list[list[Event]]) -> dict[str, list[float]]:
    """Seconds of each separately run part of a step: the slowest rank of each round."""
    written = [last_event(events, "parts") for events in ranks]
    parts = [event["parts"] for event in written if event is not None]
    if not parts or len(parts) != len(ranks):
        return {}
    names = [name for name in parts[0] if all(name in rank for rank in parts)]
    return {
        name: [max(round_) for round_ in zip(*(rank[name] for rank in parts), strict=False)]
        for name in names
    }


def epoch_results(ranks: list[list[Event]]) -> list[dict[str, float]]:
    """Steps, losses and accuracy of each epoch over all ranks; empty if a rank is missing.

    Losses are means over samples; ``train_loss`` is the mean over the steps of the epoch.
    """
    epochs, steps = ([last_event(events, kind) for events in ranks] for kind in ("epochs", "steps"))
    if not ranks or None in epochs or None in steps:
        return []
    found, begun = [], 0
    for own in zip(*(event["epochs"] for event in epochs if event), strict=False):
        samples = sum(epoch["test_samples"] for epoch in own)
        end = begun + own[0]["steps"]
        losses = [loss for event in steps if event for loss in event["losses"][begun:end]]
        if not samples or not losses:
            return []
        found.append(
            {
                "steps": own[0]["steps"],
                "train_loss": math.fsum(losses) / len(losses),
                "test_loss": math.fsum(epoch["test_loss"] for epoch in own) / samples,
                "test_accuracy": sum(epoch["correct"] for epoch in own) / samples,
                "test_samples": samples,
                "evaluation_seconds": max(epoch["evaluation_seconds"] for epoch in own),
            }
        )
        begun = end
    return found


def measured_step(ranks: list[list[Event]]) -> Step | None:
    """Median instrumented step of a launch, all ranks on one time axis.

    This is the step whose slowest rank has the median duration, so the timeline is a real one.
    Ranks are aligned at the beginning of their step.
    """
    steps = _timelines(ranks)
    if not steps:
        return None
    slowest = [max(rank["step_seconds"] for rank in step) for step in steps]
    chosen = steps[slowest.index(statistics.median_low(slowest))]
    return _joined(chosen, "median instrumented step")


def step_profile(ranks: list[list[Event]]) -> StepProfile | None:
    """Means by rank and phase over the instrumented steps of a launch."""
    return profile_steps(_joined(step, "instrumented step") for step in _timelines(ranks))


def _timelines(ranks: list[list[Event]]) -> list[tuple[Event, ...]]:
    """Instrumented steps that every rank completed, each as one timeline per rank."""
    written = [last_event(events, "timelines") for events in ranks]
    return list(
        zip(*(event["steps"] if event is not None else () for event in written), strict=False)
    )


def _joined(timelines: tuple[Event, ...], label: str) -> Step:
    placed = [
        pair for rank, timeline in enumerate(timelines) for pair in _rank_tasks(timeline, rank)
    ]
    tasks, starts = zip(*placed, strict=True)
    return Step(tasks, starts, Origin.MEASURED, label)


def _rank_tasks(timeline: Event, rank: int) -> list[tuple[Task, float]]:
    """Tasks of one rank: the backward pass computes until its last bucket is submitted.

    A rank does not compute while it waits for a blocking message.
    """
    from paceline.importers.traces.parsing.spans import subtract

    forward_start = timeline["input_seconds"]
    backward_start = forward_start + timeline["forward_seconds"]
    backward_end = backward_start + timeline["backward_seconds"]
    buckets = timeline["buckets"]
    # DDP launches a bucket when its last gradient is computed; the rest of backward is waiting.
    computed = max((bucket["start_seconds"] for bucket in buckets), default=backward_end)
    computed = computed if computed > backward_start else backward_end
    waits = merge(
        [(b["start_seconds"], b["end_seconds"]) for b in buckets if b.get("blocking", False)]
    )
    placed = [(Task("input", Phase.INPUT, "input", forward_start, rank=rank), 0.0)]
    for name, phase, start, end in (
        ("forward", Phase.FORWARD, forward_start, backward_start),
        ("backward", Phase.BACKWARD, backward_start, computed),
    ):
        placed += [
            (Task(name, phase, "compute", stop - begin, rank=rank), begin)
            for begin, stop in subtract(start, end, waits)
        ]
    for number, bucket in enumerate(buckets):
        seconds = bucket["end_seconds"] - bucket["start_seconds"]
        task = Task(
            f"all-reduce {number}",
            Phase.COMMUNICATE,
            "network",
            seconds,
            rank=rank,
            layer=f"bucket {number}",
            size_bytes=bucket["bytes"],
        )
        placed.append((task, bucket["start_seconds"]))
    update = Task("update", Phase.UPDATE, "compute", timeline["update_seconds"], rank=rank)
    return [*placed, (update, backward_end)]
