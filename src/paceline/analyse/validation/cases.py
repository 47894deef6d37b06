"""Which rows each mode asks about, and what the model may be told about them."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from paceline.analyse.validation.measurement import Configuration, Measurement


class Mode(StrEnum):
    """The question that is put to the model."""

    BASELINE = "baseline"
    """Given the measured baseline of the group, how fast are its other rows?"""
    COLD = "cold"
    """From workload, hardware, plan and framework alone, how fast is the row?"""
    LAYOUT = "layout"
    """Of the layouts of one job on one machine, which is the fastest?"""


@dataclass(frozen=True, slots=True)
class Question:
    """A row to predict with the baseline that may be used, or why it is not asked about."""

    measurement: Measurement
    baseline: Measurement | None = None
    left_out: str = ""


def cases(
    measurements: Sequence[Measurement],
    mode: Mode,
    elsewhere: Mapping[str, Measurement] | None = None,
) -> list[Question]:
    """One case per row, in the order of the rows.

    A baseline that is not among ``measurements`` may be found by its id ``elsewhere``, if it is
    of the same source and model.
    """
    if mode is Mode.BASELINE:
        by_id = {row.configuration.id: row for row in measurements}
        return [_with_baseline(row, by_id, elsewhere or {}) for row in measurements]
    if mode is Mode.LAYOUT:
        comparable = {
            row.configuration.id for rows in layout_groups(measurements).values() for row in rows
        }
        return [
            Question(row)
            if row.configuration.id in comparable
            else Question(row, left_out="no other layout of the same job to compare with")
            for row in measurements
        ]
    return [Question(row) for row in measurements]


def layout_groups(
    measurements: Sequence[Measurement],
) -> dict[tuple[str, int, float], list[Measurement]]:
    """Rows that are the same job on the same devices under different layouts.

    Keyed by group, devices and global batch; only where there are at least two layouts.
    """
    groups: dict[tuple[str, int, float], list[Measurement]] = defaultdict(list)
    for row in measurements:
        what = row.configuration
        if row.failed:
            continue
        groups[what.group, what.devices, what.global_batch].append(row)
    return {
        key: rows
        for key, rows in groups.items()
        if len({row.configuration.layout for row in rows}) > 1
    }


def _with_baseline(
    row: Measurement, by_id: Mapping[str, Measurement], elsewhere: Mapping[str, Measurement]
) -> Question:
    what = row.configuration
    if row.failed:
        return Question(row, left_out="it did not run")
    if not what.baseline_id:
        return Question(row, left_out="its group has no baseline row")
    if what.baseline_id == what.id:
        return Question(row, left_out="it is the baseline of its group")
    baseline = by_id.get(what.baseline_id)
    if baseline is None:
        found = elsewhere.get(what.baseline_id)
        if found is not None and _same_origin(found.configuration, what):
            baseline = found
    if baseline is None:
        return Question(
            row, left_out=f"its baseline '{what.baseline_id}' is not among the usable rows"
        )
    if baseline.configuration.devices >= what.devices:
        return Question(row, left_out="its baseline has no fewer devices than it")
    if baseline.configuration.throughput_unit != what.throughput_unit:
        return Question(row, left_out="its baseline is in another unit")
    return Question(row, baseline)


def _same_origin(first: Configuration, second: Configuration) -> bool:
    return (first.family, first.model) == (second.family, second.model)
