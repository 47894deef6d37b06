"""Which layouts are scored, and verdicts on those that failed."""

import math
from dataclasses import replace

from fitting.block_floors import block_floors
from paceline.validation.cases import Mode, cases
from paceline.validation.forecast import Forecast
from paceline.validation.layouts import (
    Verdicts,
    fitted_layouts,
    layout_choices,
    scored_layouts,
    verdicts,
)
from paceline.validation.reference_data import layout_table
from paceline.validation.row_step_model import measured_seconds
from paceline.validation.scores import RowOutcome

ROWS = layout_table().measurements


def test_rows_of_any_utilisation_are_scored_and_failed_ones_kept():
    scored = scored_layouts(ROWS)
    ids = {row.configuration.id for row in scored}
    assert len({row.configuration.id for row in fitted_layouts(ROWS)} - ids) <= 1
    assert sum(row.failed for row in scored) > 300
    assert sum(not row.failed for row in scored) > 600
    assert all(row.configuration.nodes <= 32 for row in scored)


def test_a_row_that_waits_for_every_micro_batch_is_left_out():
    row = next(row for row in scored_layouts(ROWS) if not row.failed)
    what = row.configuration
    passes = (what.micro_batches or 1) + (what.pp or 1) - 1
    slow = (measured_seconds(row) + 0.4 * passes) / measured_seconds(row)
    stalled = replace(row, throughput=row.throughput / slow)
    assert scored_layouts([row, stalled]) == [row]
    full = replace(row, memory_bytes=71 * 2.0**30)
    assert scored_layouts([row, full]) == [row]


def outcome(row, throughput, chance):
    forecast = Forecast(throughput, memory_bytes=1e9, fits_probability=chance)
    return RowOutcome(row, Mode.LAYOUT, forecast)


def test_the_first_layout_that_is_said_to_fit_is_chosen():
    group = next(
        rows
        for rows in _groups().values()
        if len([row for row in rows if not row.failed]) > 2 and any(row.failed for row in rows)
    )
    first, second, third = [row for row in group if not row.failed][:3]
    failed = next(row for row in group if row.failed)
    outcomes = [
        outcome(first, 900.0, 0.2),
        outcome(second, 500.0, 0.9),
        outcome(third, 400.0, 0.9),
        outcome(failed, 999.0, 0.1),
    ]
    (choice,) = layout_choices(outcomes)
    assert choice.chosen == second.configuration.id
    assert verdicts(outcomes) == Verdicts(3, 2, 1, 1)


def test_failed_rows_of_a_job_are_predicted():
    applicable = {
        case.measurement.configuration.id
        for case in cases(ROWS, Mode.LAYOUT)
        if not case.skip_reason
    }
    assert any(row.failed and row.configuration.id in applicable for row in ROWS)


def test_floors_of_blocks_follow_from_the_layouts():
    floors = block_floors()
    assert math.isclose(floors[False, 8], 4.7e-3, rel_tol=0.1)
    assert math.isclose(floors[True, 8], 8.3e-3 + 8 * 1.2e-3 + 64 * 0.105e-3, rel_tol=0.1)


def _groups():
    groups = {}
    for row in ROWS:
        what = row.configuration
        groups.setdefault((what.group, what.devices, what.global_batch), []).append(row)
    return groups
