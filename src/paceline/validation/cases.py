"""Rows that each mode applies to, and their baselines."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from paceline.validation.published_row import Configuration, PublishedRow


class Mode(StrEnum):
    """Task of the model."""

    BASELINE = "baseline"
    """Throughput of a row, given the measured baseline of its group."""
    COLD = "cold"
    """Throughput of a row from workload, hardware, plan and framework only."""
    LAYOUT = "layout"
    """The fastest layout of one job on one machine; whether failed layouts fit in memory."""


@dataclass(frozen=True, slots=True)
class Case:
    """A row to predict and its baseline, or the reason why the mode does not apply to it."""

    measurement: PublishedRow
    baseline: PublishedRow | None = None
    skip_reason: str = ""


def cases(
    measurements: Sequence[PublishedRow],
    mode: Mode,
    elsewhere: Mapping[str, PublishedRow] | None = None,
) -> list[Case]:
    """One case per row, in row order.

    A baseline that is not among ``measurements`` is looked up by its id ``elsewhere``, and used
    if it has the same source and model.
    """
    if mode is Mode.BASELINE:
        by_id = {row.configuration.id: row for row in measurements}
        return [_with_baseline(row, by_id, elsewhere or {}) for row in measurements]
    if mode is Mode.LAYOUT:
        comparable = layout_groups(measurements)
        return [
            Case(row)
            if row.failed or _job_of(row) in comparable
            else Case(row, skip_reason="no other layout of the same job to compare with")
            for row in measurements
        ]
    return [Case(row) for row in measurements]


def layout_groups(
    measurements: Sequence[PublishedRow],
) -> dict[tuple[str, int, float], list[PublishedRow]]:
    """Rows of the same job on the same devices with different layouts.

    Keyed by group, devices and global batch; only jobs with at least two layouts.
    """
    groups: dict[tuple[str, int, float], list[PublishedRow]] = defaultdict(list)
    for row in measurements:
        if not row.failed:
            groups[_job_of(row)].append(row)
    return {
        key: rows
        for key, rows in groups.items()
        if len({row.configuration.layout for row in rows}) > 1
    }


def _job_of(row: PublishedRow) -> tuple[str, int, float]:
    what = row.configuration
    return what.group, what.devices, what.global_batch


def _with_baseline(
    row: PublishedRow, by_id: Mapping[str, PublishedRow], elsewhere: Mapping[str, PublishedRow]
) -> Case:
    what = row.configuration
    if row.failed:
        return Case(row, skip_reason="it did not run")
    if not what.baseline_id:
        return Case(row, skip_reason="its group has no baseline row")
    if what.baseline_id == what.id:
        return Case(row, skip_reason="it is the baseline of its group")
    baseline = by_id.get(what.baseline_id)
    if baseline is None:
        found = elsewhere.get(what.baseline_id)
        if found is not None and _same_origin(found.configuration, what):
            baseline = found
    if baseline is None:
        return Case(
            row, skip_reason=f"its baseline '{what.baseline_id}' is not among the usable rows"
        )
    if baseline.configuration.devices >= what.devices:
        return Case(row, skip_reason="its baseline does not have fewer devices")
    if baseline.configuration.throughput_unit != what.throughput_unit:
        return Case(row, skip_reason="its baseline is in another unit")
    return Case(row, baseline)


def _same_origin(first: Configuration, second: Configuration) -> bool:
    return (first.family, first.model) == (second.family, second.model)
