"""Phases of a step, stacked."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from paceline.render.number_format import percent
from paceline.render.safe_text import MISSING
from paceline.render.svg.axis import length_axis
from paceline.render.svg.colours import in_phase_order, phase_colour
from paceline.render.svg.element import document, group, text
from paceline.render.svg.legend import LegendEntry, Symbol, legend
from paceline.render.svg.marks import bar
from paceline.render.svg.row_layout import Rows, rows
from paceline.render.svg.scale import Scale
from paceline.render.svg.ticks import finite
from paceline.step import Breakdown
from paceline.units import format_seconds, seconds_unit

_HIDDEN = 5.0
_BAR = 22.0


@dataclass(frozen=True)
class PhaseBar:
    """One step: seconds of each phase, which sum to it.

    ``hidden_seconds`` is communication overlapped by computation; it does not lengthen the step
    and is drawn as a thin strip below.
    """

    label: str
    seconds: Mapping[str, float]
    hidden_seconds: float = 0.0

    @property
    def drawable(self) -> list[tuple[str, float]]:
        """Phases with a positive, finite time."""
        return [(name, s) for name, s in self.seconds.items() if finite([s]) and s > 0]

    @property
    def total_seconds(self) -> float:
        return sum(seconds for _, seconds in self.drawable)


@dataclass(frozen=True)
class PhasesInfo:
    """Steps to compare, top to bottom."""

    bars: tuple[PhaseBar, ...]
    title: str = "step time"
    names: Mapping[str, str] = field(
        default_factory=lambda: {"communicate": "communicate, exposed"}
    )


def phase_bar(label: str, breakdown: Breakdown) -> PhaseBar:
    seconds = {str(phase): value for phase, value in breakdown.exposed.items()}
    return PhaseBar(label, seconds, breakdown.hidden_communication_seconds)


def draw(info: PhasesInfo, width: float) -> str:
    longest = max((max(b.total_seconds, b.hidden_seconds) for b in info.bars), default=0.0)
    factor, unit = seconds_unit(longest)
    axis = length_axis(f"{info.title} ({unit})", [longest * factor])
    key, key_height = legend(_legend(info), 0, width, 0)
    ends = [_total(item) for item in info.bars]
    labels = [item.label for item in info.bars]
    layout = rows(labels, width, top=key_height + 8, bar_height=_BAR, gap=18, ends=ends)
    scale = layout.scale(axis)
    parts = [
        _bar(item, layout, scale, factor, number, info.names)
        for number, item in enumerate(info.bars)
    ]
    description = "; ".join(
        f"{item.label}: " + ", ".join(f"{n} {format_seconds(s)}" for n, s in item.drawable)
        for item in info.bars
    )
    return document(
        width, layout.height, info.title, description, key, layout.backdrop(axis), *parts
    )


def _legend(info: PhasesInfo) -> list[LegendEntry]:
    present = in_phase_order(name for item in info.bars for name, _ in item.drawable)
    entries = [LegendEntry(info.names.get(name, name), phase_colour(name)) for name in present]
    if any(item.hidden_seconds > 0 for item in info.bars):
        entries.append(LegendEntry("communicate, overlapped", "phase-communicate", Symbol.STRIP))
    return entries


def _total(item: PhaseBar) -> str:
    return format_seconds(item.total_seconds) if item.drawable else MISSING


def _bar(
    item: PhaseBar,
    layout: Rows,
    scale: Scale,
    factor: float,
    number: int,
    names: Mapping[str, str],
) -> str:
    top = layout.bar_top(number)
    parts: list[str] = []
    reached = 0.0
    for name, seconds in item.drawable:
        start, end = scale(reached * factor), scale((reached + seconds) * factor)
        share = seconds / item.total_seconds
        tip = f"{item.label}\n{names.get(name, name)}: {format_seconds(seconds)} ({percent(share)})"
        parts.append(
            group(
                bar(start, top, end - start, _BAR, tip=tip),
                class_=f"{phase_colour(name)} outlined",
            )
        )
        reached += seconds
    if item.hidden_seconds > 0:
        end = scale(item.hidden_seconds * factor)
        tip = f"{item.label}\noverlapped communication: {format_seconds(item.hidden_seconds)}"
        strip = bar(scale(0), top + _BAR + 2, end - scale(0), _HIDDEN, tip=tip)
        parts.append(group(strip, class_="phase-communicate"))
    total = _total(item)
    end = scale(reached * factor)
    return "".join(parts) + text(total, end + 8, top + _BAR / 2 + 4, class_="value")
