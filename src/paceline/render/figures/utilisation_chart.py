"""Utilisation of each resource over the time of a step, by phase."""

from collections.abc import Mapping
from dataclasses import dataclass

from paceline.render.number_format import percent
from paceline.render.svg.axis import length_axis
from paceline.render.svg.colours import in_phase_order, phase_colour
from paceline.render.svg.element import document, group, line, text
from paceline.render.svg.legend import LegendEntry, legend
from paceline.render.svg.marks import steps
from paceline.render.svg.row_layout import Rows, rows
from paceline.render.svg.scale import LinearScale, Scale
from paceline.step import Step
from paceline.units import seconds_unit

_LANE = 54.0
_IDLE_SHARE = 0.005
"""Resources that are busy for a smaller share of the step are not drawn."""


@dataclass(frozen=True)
class UtilisationLane:
    """One resource: for each phase the share in use (0 to 1), one number per bin."""

    label: str
    shares: Mapping[str, tuple[float, ...]]


@dataclass(frozen=True)
class UtilisationInfo:
    """Resources over ``seconds`` seconds cut into equal bins."""

    lanes: tuple[UtilisationLane, ...]
    seconds: float
    title: str = "time in the step"


def utilisation_info(step: Step, bins: int = 120) -> UtilisationInfo:
    """Utilisation of the resources of a step, averaged over ranks."""
    ranks, width = max(len(step.ranks), 1), step.seconds / bins
    busy: dict[str, dict[str, list[float]]] = {}
    for task, start in zip(step.tasks, step.starts, strict=True):
        if width <= 0 or task.seconds <= 0:
            continue
        shares = busy.setdefault(task.resource, {}).setdefault(str(task.phase), [0.0] * bins)
        end = start + task.seconds
        for index in range(max(int(start / width), 0), min(int(end / width) + 1, bins)):
            overlap = min(end, (index + 1) * width) - max(start, index * width)
            shares[index] += max(overlap, 0.0) / width / ranks
    lanes = (
        UtilisationLane(resource, {phase: tuple(values) for phase, values in phases.items()})
        for resource, phases in busy.items()
    )
    shown = tuple(lane for lane in lanes if _mean(lane) >= _IDLE_SHARE)
    return UtilisationInfo(shown, step.seconds)


def draw(info: UtilisationInfo, width: float) -> str:
    factor, unit = seconds_unit(info.seconds)
    axis = length_axis(f"{info.title} ({unit})", [info.seconds * factor])
    phases = in_phase_order(phase for lane in info.lanes for phase in lane.shares)
    entries = [LegendEntry(phase, phase_colour(phase)) for phase in phases]
    key, key_height = legend(entries, 0, width, 0)
    labels = [lane.label for lane in info.lanes]
    layout = rows(labels, width, top=key_height + 8, bar_height=_LANE, gap=16, ends=["100 %"])
    scale = layout.scale(axis)
    end = scale(info.seconds * factor)
    parts = [_lane(lane, layout, scale, end, number) for number, lane in enumerate(info.lanes)]
    description = "; ".join(f"{lane.label} {percent(_mean(lane))} busy" for lane in info.lanes)
    return document(
        width,
        layout.height,
        "Resource utilisation",
        description,
        key,
        layout.backdrop(axis),
        *parts,
    )


def _mean(lane: UtilisationLane) -> float:
    bins = max((len(values) for values in lane.shares.values()), default=0)
    return sum(map(sum, lane.shares.values())) / bins if bins else 0.0


def _lane(lane: UtilisationLane, layout: Rows, scale: Scale, end: float, number: int) -> str:
    top = layout.bar_top(number)
    bottom = top + _LANE
    y = LinearScale(0.0, 1.0, bottom, top)
    bins = max((len(values) for values in lane.shares.values()), default=0)
    left = scale(0.0)
    edges = [left + (end - left) * index / max(bins, 1) for index in range(bins + 1)]
    reached = [0.0] * bins
    areas: list[str] = []
    for phase, values in lane.shares.items():
        reached = [low + value for low, value in zip(reached, values, strict=True)]
        outline = [(x, y(share)) for x, share in zip(edges, [*reached, *reached[-1:]], strict=True)]
        areas.append(group(steps(outline, bottom), class_=phase_colour(phase)))
    parts = areas[::-1]
    parts.append(line(left, bottom, end, bottom, class_="base"))
    parts.append(text(percent(_mean(lane)), end + 8, bottom - 2, class_="value"))
    return "".join(parts)
