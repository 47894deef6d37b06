"""PyTorch's profiler (Kineto): CPU operations with gloo, GPU kernels with NCCL."""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import TypeVar

from paceline.importers.traces.parsing.kineto_events import (
    BACKWARD_PREFIX,
    DEVICE_CATEGORIES,
    DeviceActivity,
    Host,
    Interval,
    add_host_event,
    device_activity,
)
from paceline.importers.traces.parsing.spans import MOST_SPANS, Span, host_gaps, outermost
from paceline.importers.traces.parsing.trace_events import ChromeTrace
from paceline.step import Phase
from paceline.step.exchanges import group_name

Started = TypeVar("Started", Interval, Span)

_RANK = re.compile(r'"rank"\s*:\s*(\d{1,7})')
_WORLD = re.compile(r'"world_size"\s*:\s*(\d{1,7})')


@dataclass(frozen=True)
class RankTimeline:
    """Steps of one rank: number, start time and spans (seconds)."""

    rank: int | None
    world_size: int | None
    steps: list[tuple[int, float, list[Span]]]
    unread: int
    warnings: list[str]
    backend: str = ""


def read_kineto(path: Path) -> RankTimeline:
    """The timeline of one rank's trace file."""
    trace = ChromeTrace(path)
    host = Host()
    device: list[DeviceActivity] = []
    for event in trace:
        if event.phase != "X" or host.size + len(device) >= MOST_SPANS:
            continue
        if event.category in DEVICE_CATEGORIES:
            device.append(device_activity(event))
        else:
            add_host_event(host, event)
    host.sort()
    warnings: list[str] = []
    windows = _windows(host, device, warnings)
    classify = _Classifier(host)
    if device:
        steps = _device_steps(windows, host, device, classify)
    else:
        steps = _host_steps(windows, host, classify)
    rank, world = _RANK.search(trace.header), _WORLD.search(trace.header)
    return RankTimeline(
        rank=int(rank[1]) if rank else None,
        world_size=int(world[1]) if world else None,
        steps=steps,
        unread=trace.unread,
        warnings=warnings,
        backend=_backend(trace.header),
    )


def _windows(
    host: Host, device: Sequence[DeviceActivity], warnings: list[str]
) -> list[tuple[int, float, float]]:
    """Number, start and end of each step on the host."""
    if host.steps:
        first: dict[int, Interval] = {}
        for number, interval in host.steps:
            first.setdefault(number, interval)
        return sorted((n, i.start, i.end) for n, i in first.items())
    moments = [interval.start for _, interval in host.operations]
    moments += [activity.start for activity in device]
    if not moments:
        return []
    ends = [interval.end for _, interval in host.operations]
    ends += [activity.end for activity in device]
    edges = [min(moments), *sorted(interval.end for interval in host.update)]
    if len(edges) == 1:
        warnings.append(
            "no profiler.step() and no optimizer step: the whole trace counts as one step"
        )
        edges.append(max(ends))
    else:
        warnings.append("no profiler.step(): each step ends with the optimizer step")
    return [
        (number, start, end) for number, (start, end) in enumerate(pairwise(edges)) if end > start
    ]


class _Classifier:
    """Assigns a phase to a point in time on a host thread."""

    def __init__(self, host: Host) -> None:
        self._update = _by_thread(host.update)
        self._input = _by_thread(host.input)
        self._backward = _by_thread(host.backward)
        self._last_backward = sorted(interval.end for interval in host.backward)

    def phase(self, moment: float, thread: str, step_end: float) -> Phase:
        """Phase at ``moment`` on ``thread`` in a step that ends at ``step_end``."""
        if _inside(self._update, moment, thread):
            return Phase.UPDATE
        if _inside(self._input, moment, thread):
            return Phase.INPUT
        if _inside(self._backward, moment, thread):
            return Phase.BACKWARD
        # Between backward and the optimizer: gradient clipping, logging, the exchange of gradients.
        position = bisect_right(self._last_backward, step_end) - 1
        if position >= 0 and moment >= self._last_backward[position]:
            return Phase.OTHER
        return Phase.FORWARD


def _by_thread(intervals: Sequence[Interval]) -> dict[str, tuple[list[float], list[float]]]:
    """Starts and ends per thread, outermost only, for bisection."""
    threads: dict[str, tuple[list[float], list[float]]] = {}
    for interval in sorted(intervals, key=lambda i: (i.start, -i.end)):
        starts, ends = threads.setdefault(interval.thread, ([], []))
        if not ends or interval.end > ends[-1]:
            starts.append(interval.start)
            ends.append(interval.end)
    return threads


def _inside(
    threads: dict[str, tuple[list[float], list[float]]], moment: float, thread: str
) -> bool:
    starts, ends = threads.get(thread, ([], []))
    position = bisect_right(starts, moment) - 1
    return position >= 0 and moment < ends[position]


def _host_steps(
    windows: Sequence[tuple[int, float, float]], host: Host, classify: _Classifier
) -> list[tuple[int, float, list[Span]]]:
    """Steps of a CPU job: outermost operations, whole annotated phases, messages, host gaps."""
    steps: list[tuple[int, float, list[Span]]] = []
    moments = [interval.start for _, interval in host.operations]
    for number, start, end in windows:
        inside = host.operations[bisect_left(moments, start) : bisect_left(moments, end)]
        compute = [
            Span(_short(name), phase, "compute", i.start, min(i.end, end))
            for name, i in inside
            for phase in (classify.phase(i.start, i.thread, end),)
            if phase not in (Phase.UPDATE, Phase.INPUT)
        ]
        compute += _whole(host.update, "optimiser step", Phase.UPDATE, start, end)
        compute += _whole(host.input, "next batch", Phase.INPUT, start, end)
        messages = _begun_in(host.messages, start, end)
        compute = outermost(compute)
        compute = outermost([*compute, *host_gaps(compute, messages, start, end)])
        steps.append((number, start, [*compute, *_numbered(messages)]))
    return steps


def _device_steps(
    windows: Sequence[tuple[int, float, float]],
    host: Host,
    device: Sequence[DeviceActivity],
    classify: _Classifier,
) -> list[tuple[int, float, list[Span]]]:
    """Steps of a GPU job: kernels by the step and phase of the call that launched them."""
    begins = [start for _, start, _ in windows]
    spans: list[list[Span]] = [[] for _ in windows]
    main_stream = _busiest_stream(device)
    for activity in device:
        # A GPU runs behind the host: a kernel belongs to the step that launched it.
        launch = host.launches.get(activity.correlation)
        moment = activity.start if launch is None else launch.start
        position = bisect_right(begins, moment) - 1
        if position < 0 or moment > windows[position][2]:
            continue
        phase, resource = _device_resource(activity, main_stream)
        if phase is None:
            thread = "" if launch is None else launch.thread
            phase = classify.phase(moment, thread, windows[position][2])
        spans[position].append(
            Span(
                activity.name[:200],
                phase,
                resource,
                activity.start,
                activity.end,
                size_bytes=activity.size_bytes,
                group=activity.group,
            )
        )
    steps: list[tuple[int, float, list[Span]]] = []
    for (number, start, end), own in zip(windows, spans, strict=True):
        loading = _whole(host.input, "next batch", Phase.INPUT, start, end, "input")
        messages = [span for span in own if span.phase is Phase.COMMUNICATE]
        others = [span for span in own if span.phase is not Phase.COMMUNICATE]
        begin = min((span.start for span in [*own, *loading]), default=start)
        steps.append((number, begin, [*loading, *others, *_numbered(messages)]))
    return steps


def _device_resource(activity: DeviceActivity, main_stream: str) -> tuple[Phase | None, str]:
    if activity.is_message:
        return Phase.COMMUNICATE, f"network {group_name(activity.group)}".strip()
    if activity.category == "gpu_memcpy":
        return Phase.COPY, "copy"
    if activity.stream == main_stream:
        return None, "compute"
    return None, f"compute stream {activity.stream}"


def _whole(
    intervals: Sequence[Interval],
    name: str,
    phase: Phase,
    start: float,
    end: float,
    resource: str = "compute",
) -> list[Span]:
    return [
        Span(name, phase, resource, i.start, min(i.end, end))
        for i in _begun_in(intervals, start, end)
    ]


def _begun_in(items: Sequence[Started], start: float, end: float) -> Sequence[Started]:
    """Items that start within a window; ``items`` are sorted by start."""
    first = bisect_left(items, start, key=lambda item: item.start)
    return items[first : bisect_left(items, end, key=lambda item: item.start)]


def _numbered(messages: Sequence[Span]) -> list[Span]:
    """Messages by start time, numbered as buckets."""
    return [
        replace(m, name=m.name[:200], layer=f"bucket {number}")
        for number, m in enumerate(sorted(messages, key=lambda span: span.start))
    ]


def _busiest_stream(device: Sequence[DeviceActivity]) -> str:
    seconds: dict[str, float] = {}
    for activity in device:
        if activity.category == "kernel" and not activity.is_message:
            busy = seconds.get(activity.stream, 0.0)
            seconds[activity.stream] = busy + activity.end - activity.start
    return max(seconds, key=lambda stream: seconds[stream], default="")


def _short(name: str) -> str:
    return name.removeprefix(BACKWARD_PREFIX + ": ")[:200]


def _backend(header: str) -> str:
    match = re.search(r'"distributedInfo"\s*:\s*(\{[^{}]*)', header)
    found = re.search(r'"backend"\s*:\s*"([\w:,]{1,60})"', match[1]) if match else None
    return found[1] if found else ""
