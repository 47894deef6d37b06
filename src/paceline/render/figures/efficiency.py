"""F10: the efficiency table in the form in which studies publish it."""

from collections.abc import Sequence

from paceline.render.figures.scaling import ScalingSeries
from paceline.render.numbers import percent, short_number
from paceline.render.safe_text import MISSING
from paceline.render.table import Align, Cell, Column, Table


def efficiency_table(series: Sequence[ScalingSeries], unit: str, device: str = "device") -> Table:
    """A row per system and a column per number of devices: speed-up and efficiency.

    The first column of numbers is the throughput of the system's own base, the fewest devices
    it was run on; speed-up counts from there, so that 16 devices after a base of 4 can reach 4.
    """
    counts = sorted({point.devices for one in series for point in one.drawable})
    bases = [min((p.devices for p in one.drawable), default=0) for one in series]
    columns = [
        Column("system"),
        Column(f"base, {device}s", decimals=0),
        Column("base throughput", unit),
        *(
            Column(f"{count:,} {device}{'s' if count > 1 else ''}", align=Align.RIGHT)
            for count in counts
            if any(count > base for base in bases)
        ),
    ]
    shown = [count for count in counts if any(count > base for base in bases)]
    rows = [_row(one, shown) for one in series]
    note = "Speed-up over the base; in brackets, efficiency against perfect scaling."
    return Table(tuple(columns), tuple(rows), "Speed-up and efficiency", note)


def _row(one: ScalingSeries, counts: Sequence[int]) -> tuple[Cell, ...]:
    points = {point.devices: point.value for point in one.drawable}
    if not points:
        return (one.label, None, None, *(MISSING for _ in counts))
    base = min(points)
    cells: list[Cell] = [one.label, base, points[base]]
    for count in counts:
        if count not in points or points[base].value <= 0:
            cells.append(MISSING)
            continue
        speed_up = points[count].value / points[base].value
        cells.append(f"{short_number(speed_up)} ({percent(speed_up * base / count)})")
    return tuple(cells)
