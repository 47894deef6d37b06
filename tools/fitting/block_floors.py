"""Host time per block of `overheads.toml`, fitted to layouts with small micro-batches."""

from collections import defaultdict

import numpy as np

from paceline.validation.layouts import scored_layouts
from paceline.validation.published_row import PublishedRow
from paceline.validation.reference_data import layout_table
from paceline.validation.row_step_model import measured_seconds

_LARGEST_MICRO_BATCH = 2
"""Sequences above which the device takes longer than the host."""


def block_seconds(row: PublishedRow) -> float:
    """Seconds of one block and micro-batch, forward and backward, bubble included."""
    what = row.configuration
    stages = what.pp or 1
    passes = (what.micro_batches or 1) + stages - 1
    return measured_seconds(row) / (passes * (what.layers or 1) / stages)


def block_floors() -> dict[tuple[bool, int], float]:
    """Lower quartile of `block_seconds`, by pipelines over several nodes and tp."""
    found = defaultdict(list)
    for row in scored_layouts(layout_table().measurements):
        what = row.configuration
        if row.failed or (what.micro_batch or 1) > _LARGEST_MICRO_BATCH:
            continue
        pipelined = (what.pp or 1) > 1 and what.nodes > 1
        found[pipelined, what.tp or 1].append(block_seconds(row))
    return {key: float(np.quantile(own, 0.25)) for key, own in sorted(found.items())}


def floors_table() -> str:
    """The floors as lines of Markdown, in milliseconds."""
    lines = ["| pipeline over nodes | tp | block |", "|---|---:|---:|"]
    for (pipelined, tp), seconds in block_floors().items():
        lines.append(f"| {'yes' if pipelined else 'no'} | {tp} | {1e3 * seconds:.1f} ms |")
    return "\n".join(lines)
