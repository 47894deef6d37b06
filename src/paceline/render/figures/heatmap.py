"""Heat map of a step: the dominant phase of each time slice and rank.

Many ranks share rows with their neighbours, and neighbouring slices of one phase are one block.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from paceline.render.svg.axis import length_axis
from paceline.render.svg.colours import in_phase_order, phase_colour
from paceline.render.svg.element import document, group
from paceline.render.svg.legend import LegendEntry, legend
from paceline.render.svg.marks import bar
from paceline.render.svg.row_layout import rows
from paceline.step import Phase, Step
from paceline.units import format_seconds, plural, seconds_unit

MOST_ROWS = 48
SLICES = 160
_BAR = 12.0


@dataclass(frozen=True, slots=True)
class HeatBlock:
    """Neighbouring slices of one row with the same phase.

    ``share`` is the part of the block that the phase fills, over all ranks of the row.
    """

    phase: str
    start_seconds: float
    seconds: float
    share: float


@dataclass(frozen=True)
class HeatRow:
    """One rank, or several neighbouring ones."""

    label: str
    blocks: tuple[HeatBlock, ...]


@dataclass(frozen=True)
class HeatmapInfo:
    """Rows from the first rank down; ``seconds`` is the length of the step."""

    rows: tuple[HeatRow, ...]
    seconds: float
    title: str = "time in the step"


def heatmap_info(step: Step) -> HeatmapInfo:
    """The map of a step; ranks must be on one clock."""
    ranks, seconds = step.ranks, step.seconds
    each = max(1, -(-len(ranks) // MOST_ROWS))
    chunks = [ranks[first : first + each] for first in range(0, len(ranks), each)]
    row_of = {rank: row for row, chunk in enumerate(chunks) for rank in chunk}
    width = seconds / SLICES if seconds > 0 else 1.0
    filled: list[list[dict[Phase, float]]] = [[{} for _ in range(SLICES)] for _ in chunks]
    for task, start in zip(step.tasks, step.starts, strict=True):
        _fill(filled[row_of[task.rank]], task.phase, start, start + task.seconds, width)
    drawn = tuple(
        HeatRow(_label(chunk), _blocks(slices, width, len(chunk)))
        for chunk, slices in zip(chunks, filled, strict=True)
    )
    return HeatmapInfo(drawn, seconds)


def _fill(
    slices: Sequence[dict[Phase, float]], phase: Phase, start: float, end: float, width: float
) -> None:
    """Add a task to its slices; overlapping tasks all count."""
    first, last = max(0, int(start / width)), min(len(slices) - 1, int(end / width))
    for index in range(first, last + 1):
        inside = min(end, (index + 1) * width) - max(start, index * width)
        if inside > 0:
            slices[index][phase] = slices[index].get(phase, 0.0) + inside


def _blocks(
    slices: Sequence[dict[Phase, float]], width: float, ranks: int
) -> tuple[HeatBlock, ...]:
    """Neighbouring slices with the same dominant phase as one block; idle ones are waiting."""
    found = []
    first = 0
    for phase, run in groupby(_dominant(own, width * ranks) for own in slices):
        count = len(list(run))
        inside = sum(own.get(phase, 0.0) for own in slices[first : first + count])
        if phase is Phase.WAIT:
            inside = count * width * ranks
        share = min(1.0, inside / (count * width * ranks))
        found.append(HeatBlock(str(phase), first * width, count * width, share))
        first += count
    return tuple(found)


def _dominant(slices: dict[Phase, float], whole: float) -> Phase:
    """The phase that fills most of a slice; waiting if half of it is empty.

    Computation takes precedence over communication that it overlaps.
    """
    computing = {p: s for p, s in slices.items() if p is not Phase.COMMUNICATE}
    if computing and sum(computing.values()) >= whole / 2:
        return max(computing, key=lambda phase: computing[phase])
    if sum(slices.values()) >= whole / 2:
        return max(slices, key=lambda phase: slices[phase])
    return Phase.WAIT


def _label(ranks: Sequence[int]) -> str:
    return f"rank {ranks[0]}" if len(ranks) == 1 else f"ranks {ranks[0]}-{ranks[-1]}"


def draw(info: HeatmapInfo, width: float) -> str:
    factor, unit = seconds_unit(info.seconds)
    axis = length_axis(f"{info.title} ({unit})", [info.seconds * factor])
    phases = in_phase_order(block.phase for row in info.rows for block in row.blocks)
    key, key_height = legend([LegendEntry(p, phase_colour(p)) for p in phases], 0, width, 0)
    labels = [row.label for row in info.rows]
    layout = rows(labels, width, top=key_height + 8, bar_height=_BAR, gap=1)
    scale = layout.scale(axis)
    parts = []
    for number, row in enumerate(info.rows):
        for block in row.blocks:
            left, right = (
                scale(moment * factor)
                for moment in (block.start_seconds, block.start_seconds + block.seconds)
            )
            tip = f"{row.label}: {block.phase}\n{format_seconds(block.seconds)}, {block.share:.0%}"
            mark = bar(left, layout.bar_top(number), max(right - left, 0.5), _BAR, tip=tip)
            parts.append(group(mark, class_=phase_colour(block.phase)))
    described = f"{plural(len(info.rows), 'row')} of ranks over {format_seconds(info.seconds)}."
    return document(
        width, layout.height, "Ranks over time", described, key, layout.backdrop(axis), *parts
    )
