"""Timeline of a step, one lane per rank and resource."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from paceline.render.svg.axis import length_axis
from paceline.render.svg.colours import in_phase_order, phase_colour
from paceline.render.svg.element import document, group, text
from paceline.render.svg.legend import LegendEntry, Symbol, legend
from paceline.render.svg.marks import bar
from paceline.render.svg.row_layout import rows
from paceline.render.svg.scale import Scale
from paceline.render.svg.ticks import finite
from paceline.step import Origin, Step
from paceline.step.critical_path import critical_path
from paceline.units import format_seconds, plural, seconds_unit

_BAR = 20.0
_STRIP = 3.0
_MOST_BARS = 1200
"""Bars of a drawing of ``_USUAL_WIDTH`` pixels."""
_USUAL_WIDTH = 920.0
_WIDEST = 4000.0
_LABELS = 160.0
"""Approximate width of the labels next to the lanes, in pixels."""
_LEAST_TIP_WIDTH = 3.0
_MOST_LANES = 24
_IDLE_SHARE = 0.005
"""Lanes that are busy for a smaller share of the step are not drawn."""
_PIXELS_OF_DIGIT = 7.5
_PASS = re.compile(r"(?:forward|backward|weights) (\d+) chunk")
"""Names of passes of a micro-batch through a pipeline chunk."""


@dataclass(frozen=True, slots=True)
class GanttBar:
    """A task: its name, phase, start and duration in seconds; passes of pipelines are numbered."""

    name: str
    phase: str
    start_seconds: float
    seconds: float
    is_critical: bool = False

    @property
    def number(self) -> str:
        """The micro-batch of a pass through a pipeline chunk; empty for other tasks."""
        found = _PASS.match(self.name)
        return found[1] if found else ""

    @property
    def end_seconds(self) -> float:
        return self.start_seconds + self.seconds


@dataclass(frozen=True)
class GanttLane:
    """Tasks of one resource of one rank."""

    label: str
    bars: tuple[GanttBar, ...]


@dataclass(frozen=True)
class GanttInfo:
    """Lanes top to bottom; ``left_out`` is the number of lanes not drawn."""

    lanes: tuple[GanttLane, ...]
    title: str = "time in the step"
    left_out: int = 0

    @property
    def seconds(self) -> float:
        """End of the last bar."""
        ends = finite(bar.end_seconds for lane in self.lanes for bar in lane.bars)
        return max(ends, default=0.0)


def gantt_info(step: Step, ranks: Sequence[int] | None = None) -> GanttInfo:
    """The lanes of a measured or predicted step, of all or of given ``ranks``."""
    critical = set(critical_path(step))
    lanes: dict[tuple[int, str], list[GanttBar]] = {}
    for index, (task, start) in enumerate(zip(step.tasks, step.starts, strict=True)):
        if ranks is None or task.rank in ranks:
            lanes.setdefault((task.rank, task.resource), []).append(
                GanttBar(task.name, str(task.phase), start, task.seconds, index in critical)
            )
    order = {resource: index for index, resource in enumerate(step.resources)}
    one_rank = len({rank for rank, _ in lanes}) == 1
    whole = max((bar.end_seconds for lane in lanes.values() for bar in lane), default=0.0)
    busy = {lane: sum(bar.seconds for bar in bars) for lane, bars in lanes.items()}
    lanes = {lane: bars for lane, bars in lanes.items() if busy[lane] >= _IDLE_SHARE * whole}
    ordered = sorted(lanes, key=lambda lane: (lane[0], order[lane[1]]))
    has_passes = any(bar.number for bars in lanes.values() for bar in bars)
    who = "stage" if has_passes and step.origin is Origin.PREDICTED else "rank"
    drawn = tuple(
        GanttLane(
            resource if one_rank else f"{who} {rank} · {resource}", tuple(lanes[rank, resource])
        )
        for rank, resource in ordered[:_MOST_LANES]
    )
    return GanttInfo(drawn, left_out=max(0, len(ordered) - _MOST_LANES))


def draw(info: GanttInfo, width: float) -> str:
    factor, unit = seconds_unit(info.seconds)
    more = f", {info.left_out} more lanes not drawn" if info.left_out else ""
    axis = length_axis(f"{info.title} ({unit}){more}", [info.seconds * factor])
    phases = in_phase_order(bar.phase for lane in info.lanes for bar in lane.bars)
    entries = [LegendEntry(phase, phase_colour(phase)) for phase in phases]
    if any(bar.is_critical for lane in info.lanes for bar in lane.bars):
        entries.append(LegendEntry("on the critical path", "critical", Symbol.STRIP))
    key, key_height = legend(entries, 0, width, 0)
    labels = [lane.label for lane in info.lanes]
    layout = rows(labels, width, top=key_height + 8, bar_height=_BAR, gap=8)
    scale = layout.scale(axis)
    pixel_seconds = (axis.high - axis.low) / (layout.right - layout.left) / factor
    most = _MOST_BARS * max(1.0, width / _USUAL_WIDTH)
    parts = [
        _lane(blocks, layout.bar_top(number), scale, factor)
        for number, blocks in enumerate(_lane_blocks(info, pixel_seconds, most))
    ]
    tasks = plural(sum(len(lane.bars) for lane in info.lanes), "task")
    lanes = plural(len(info.lanes), "lane")
    description = f"{tasks} on {lanes} over {format_seconds(info.seconds)}."
    return document(
        width, layout.height, "Timeline of a step", description, key, layout.backdrop(axis), *parts
    )


def readable_width(info: GanttInfo, least: float) -> float:
    """Pixels in which passes of micro-batches show their numbers; at most ``_WIDEST``."""
    shares = sorted(
        _digits_width(block) * info.seconds / block.seconds
        for lane in info.lanes
        for block in lane.bars
        if block.number and block.seconds > 0
    )
    most = shares[9 * len(shares) // 10] if shares else 0.0
    return min(max(least, _LABELS + most), max(least, _WIDEST))


def _digits_width(block: GanttBar) -> float:
    return _PIXELS_OF_DIGIT * len(block.number) + 2


def _lane_blocks(info: GanttInfo, pixel_seconds: float, most: float) -> list[list[GanttBar]]:
    """The bars of each lane, merged until there are at most ``most``."""
    while True:
        blocks = [_merged(lane.bars, pixel_seconds) for lane in info.lanes]
        if sum(map(len, blocks)) <= most or pixel_seconds <= 0:
            return blocks
        pixel_seconds *= 1.5


def _lane(blocks: Sequence[GanttBar], top: float, scale: Scale, factor: float) -> str:
    by_class: dict[str, list[str]] = {}
    numbers: list[str] = []
    for block in blocks:
        left, right = scale(block.start_seconds * factor), scale(block.end_seconds * factor)
        begin, duration = format_seconds(block.start_seconds), format_seconds(block.seconds)
        tip = f"{block.name}\n{duration} from {begin}" if right - left >= _LEAST_TIP_WIDTH else ""
        by_class.setdefault(f"{phase_colour(block.phase)} outlined", []).append(
            bar(left, top, max(right - left, 0.5), _BAR, tip=tip)
        )
        if block.is_critical:  # below the bar: an outline would hide the colour of thin bars
            strip = bar(left, top + _BAR + 1.5, max(right - left, 0.5), _STRIP)
            by_class.setdefault("critical", []).append(strip)
        if block.number and right - left >= _digits_width(block):
            middle = (left + right) / 2
            kind = f"number {phase_colour(block.phase)}"
            numbers.append(text(block.number, middle, top + 14, class_=kind, anchor="middle"))
    drawn = [group(*bars, class_=class_) for class_, bars in by_class.items()]
    return "".join([*drawn, *numbers])


def _merged(bars: Iterable[GanttBar], pixel_seconds: float) -> list[GanttBar]:
    """``bars`` in order of time; bars that are too thin to distinguish are merged.

    Consecutive thin bars of one phase are merged; so are bars of several phases within one pixel,
    which then shows the phase that fills most of it.
    """
    runs: list[list[GanttBar]] = []
    drawable = (b for b in bars if len(finite([b.start_seconds, b.seconds])) == 2 and b.seconds > 0)
    end = span = 0.0
    for block in sorted(drawable, key=lambda bar: bar.start_seconds):
        follows = bool(runs) and block.start_seconds - end < pixel_seconds
        thin = min(block.seconds, span / len(runs[-1]) if runs else 0.0) < 2 * pixel_seconds
        if follows and (span < pixel_seconds or (thin and block.phase == runs[-1][-1].phase)):
            runs[-1].append(block)
        else:
            runs.append([block])
            end = block.start_seconds
        end = max(end, block.end_seconds)
        span = end - runs[-1][0].start_seconds
    return [_joined(run) for run in runs]


def _joined(run: Sequence[GanttBar]) -> GanttBar:
    if len(run) == 1:
        return run[0]
    seconds: dict[str, float] = {}
    for block in run:
        seconds[block.phase] = seconds.get(block.phase, 0.0) + block.seconds
    phase = max(seconds, key=seconds.__getitem__)
    start, end = run[0].start_seconds, max(block.end_seconds for block in run)
    critical = any(block.is_critical for block in run)
    return GanttBar(f"{len(run)} tasks: {', '.join(seconds)}", phase, start, end - start, critical)
