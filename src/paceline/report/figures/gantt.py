"""F5: a step as it unfolds, one lane per rank and resource."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from paceline.report.svg.axis import length_axis
from paceline.report.svg.element import document, group
from paceline.report.svg.legend import LegendEntry, Symbol, legend
from paceline.report.svg.marks import bar
from paceline.report.svg.rows import Rows, rows
from paceline.report.svg.scale import Scale
from paceline.report.svg.series import in_phase_order, phase_colour
from paceline.report.svg.ticks import finite
from paceline.step import Step, critical_path
from paceline.units import format_seconds, seconds_unit

_BAR = 20.0
_NARROWEST = 1.0
_MOST_LANES = 24


@dataclass(frozen=True, slots=True)
class GanttBar:
    """A task: its name, phase, start and duration in seconds."""

    name: str
    phase: str
    start_seconds: float
    seconds: float
    is_critical: bool = False

    @property
    def end_seconds(self) -> float:
        """When it ends."""
        return self.start_seconds + self.seconds


@dataclass(frozen=True)
class GanttLane:
    """What one resource of one rank does."""

    label: str
    bars: tuple[GanttBar, ...]


@dataclass(frozen=True)
class GanttInfo:
    """Lanes top to bottom; ``left_out`` says how many more there were."""

    lanes: tuple[GanttLane, ...]
    title: str = "time in the step"
    left_out: int = 0

    @property
    def seconds(self) -> float:
        """When the last bar ends."""
        ends = finite(bar.end_seconds for lane in self.lanes for bar in lane.bars)
        return max(ends, default=0.0)


def gantt_info(step: Step, ranks: Sequence[int] | None = None) -> GanttInfo:
    """The lanes of a measured or predicted step, of all ranks or of those named."""
    critical = set(critical_path(step))
    lanes: dict[tuple[int, str], list[GanttBar]] = {}
    for index, (task, start) in enumerate(zip(step.tasks, step.starts, strict=True)):
        if ranks is None or task.rank in ranks:
            lanes.setdefault((task.rank, task.resource), []).append(
                GanttBar(task.name, str(task.phase), start, task.seconds, index in critical)
            )
    order = {resource: place for place, resource in enumerate(step.resources)}
    ordered = sorted(lanes, key=lambda lane: (lane[0], order[lane[1]]))
    one_rank = len({rank for rank, _ in ordered}) == 1
    drawn = tuple(
        GanttLane(
            resource if one_rank else f"rank {rank} · {resource}", tuple(lanes[rank, resource])
        )
        for rank, resource in ordered[:_MOST_LANES]
    )
    return GanttInfo(drawn, left_out=max(0, len(ordered) - _MOST_LANES))


def draw(info: GanttInfo, width: float) -> str:
    """The figure as SVG; its height follows from the number of lanes."""
    factor, unit = seconds_unit(info.seconds)
    more = f", {info.left_out} more lanes not drawn" if info.left_out else ""
    axis = length_axis(f"{info.title} ({unit}){more}", [info.seconds * factor])
    phases = in_phase_order(bar.phase for lane in info.lanes for bar in lane.bars)
    entries = [LegendEntry(phase, phase_colour(phase)) for phase in phases]
    if any(bar.is_critical for lane in info.lanes for bar in lane.bars):
        entries.append(LegendEntry("on the critical path", "neutral", Symbol.OUTLINE))
    key, key_height = legend(entries, 0, width, 0)
    labels = [lane.label for lane in info.lanes]
    layout = rows(labels, width, top=key_height + 8, bar_height=_BAR, gap=8)
    scale = layout.scale(axis)
    parts = [_lane(lane, layout, scale, factor, number) for number, lane in enumerate(info.lanes)]
    tasks = sum(len(lane.bars) for lane in info.lanes)
    description = f"{tasks} tasks on {len(info.lanes)} lanes over {format_seconds(info.seconds)}."
    return document(
        width, layout.height, "Timeline of a step", description, key, layout.backdrop(axis), *parts
    )


def _lane(lane: GanttLane, layout: Rows, scale: Scale, factor: float, number: int) -> str:
    by_phase: dict[str, list[str]] = {}
    top = layout.bar_top(number)
    pixel = _NARROWEST / max(abs(scale.end - scale.start), 1.0) * (scale.high - scale.low) / factor
    for block in _merged(lane.bars, pixel):
        left, right = scale(block.start_seconds * factor), scale(block.end_seconds * factor)
        begin, duration = format_seconds(block.start_seconds), format_seconds(block.seconds)
        tip = f"{block.name}\n{duration} from {begin}"
        class_ = "fill critical" if block.is_critical else "fill outlined"
        by_phase.setdefault(block.phase, []).append(
            bar(left, top, max(right - left, 0.5), _BAR, class_=class_, tip=tip)
        )
    return "".join(group(*bars, class_=phase_colour(phase)) for phase, bars in by_phase.items())


def _merged(bars: Iterable[GanttBar], pixel_seconds: float) -> list[GanttBar]:
    """``bars`` in order of time; runs too thin to tell apart become one bar of their phase."""
    merged: list[GanttBar] = []
    counts: list[int] = []
    drawable = (b for b in bars if len(finite([b.start_seconds, b.seconds])) == 2 and b.seconds > 0)
    for block in sorted(drawable, key=lambda bar: bar.start_seconds):
        last = merged[-1] if merged else None
        if (
            last is not None
            and block.phase == last.phase
            and block.start_seconds - last.end_seconds < pixel_seconds
            and min(block.seconds, last.seconds / counts[-1]) < 2 * pixel_seconds
        ):
            counts[-1] += 1
            seconds = max(block.end_seconds, last.end_seconds) - last.start_seconds
            name = f"{counts[-1]} tasks: {last.phase}"
            critical = last.is_critical or block.is_critical
            merged[-1] = GanttBar(name, last.phase, last.start_seconds, seconds, critical)
        else:
            merged.append(block)
            counts.append(1)
    return merged
