"""Step time of a series, derived in every way that its fields allow.

Ways that are certain by their unit must agree. A duration whose meaning is unclear (of one step,
or of all steps since the last line) counts only if another estimate confirms one of the meanings.
"""

import re
import statistics
from dataclasses import dataclass
from itertools import pairwise

from paceline.importers.logs.inference.line_fields import FieldKind, LogField
from paceline.importers.logs.inference.training_series import Series, StepLineRecord
from paceline.importers.logs.parsing.printed_numbers import LONGEST_SECONDS, SHORTEST_SECONDS

AGREES_WITHIN = 0.05
PAUSE = 5.0
"""An interval longer than this multiple of the median includes an evaluation or a checkpoint."""
COARSE = 0.05
"""Largest relative rounding error of an estimate that is used on its own."""
UNEVEN = 0.25
"""Largest difference of mean and median of the times between lines that are used."""
UNCLEAR_SECONDS = 10.0
"""Numbers without a unit above it may be milliseconds."""
STAMPS = "time stamps"
FEW = 5
FALLING = 0.9
FALLEN = 1.3
"""Ratio of first and last time, if all fall, above which they are means since the start."""
SHARE = 0.3
"""Least share of the records of a series that must have a field."""

_STEP_DURATION = re.compile(
    r"(?:step|iter(?:ation)?|batch)[_ ]?(?:time|timing|cost|duration)"
    r"|time[_ ]per[_ ](?:step|iter\w*|batch)|time/(?:step|iter\w*|batch)"
    r"|avg_batch_cost|(?:^|[\s_])dt$|(?:step|iter|batch)[_ ]?latency"
)
_PART_OF_STEP = re.compile(
    r"data|load|read|fetch|input|forward|\bfwd|backward|\bbwd|optim|comm|all.?reduce|sync|eval|val"
    r"|save|ckpt|compile|init|start|total|gpu|h2d|wait|grad|eta|remain|update"
)
_ALWAYS_PART = re.compile(r"data|load|forward|\bfwd|backward|\bbwd|optim|comm")
_DURATION = re.compile(r"time|elapsed|duration|took|cost|timer|\bsec(?:ond)?s?\b|^$|\bdt$")
_TIMES = (FieldKind.SECONDS, FieldKind.STEP_SECONDS)
_RATES = {
    FieldKind.SAMPLE_RATE: FieldKind.SAMPLES,
    FieldKind.DEVICE_SAMPLE_RATE: FieldKind.DEVICE_SAMPLES,
    FieldKind.TOKEN_RATE: FieldKind.TOKENS,
    FieldKind.DEVICE_TOKEN_RATE: None,
}
"""Kind of field with the amount per step of each kind of rate."""


@dataclass(frozen=True)
class StepEstimate:
    """One estimate of the step time: (step, steps, seconds per step) of each record.

    ``rounding`` is the relative rounding error of the mean; ``is_certain`` means that unit or label
    leave no doubt that the times are those of one step.
    """

    source: str
    times: tuple[tuple[int, int, float], ...]
    rounding: float
    is_certain: bool

    @property
    def seconds(self) -> float:
        """Mean seconds per step without pauses."""
        usual = statistics.median(seconds for _, _, seconds in self.times)
        kept = [(count, each) for _, count, each in self.times if each <= PAUSE * usual]
        return sum(count * each for count, each in kept) / sum(count for count, _ in kept)

    @property
    def usual(self) -> float:
        """Median seconds per step."""
        return statistics.median(seconds for _, _, seconds in self.times)


def agrees(one: StepEstimate, other: StepEstimate) -> bool:
    """Whether means or medians of two estimates agree within 5 % and their rounding."""
    tolerance = AGREES_WITHIN + one.rounding + other.rounding
    pairs = ((one.seconds, other.seconds), (one.usual, other.usual))
    return any(abs(a - b) <= tolerance * max(a, b) for a, b in pairs)


def step_estimates(series: Series) -> list[StepEstimate]:
    """Every estimate that the fields of the series allow, certain ones first."""
    labels: dict[str, int] = {}
    for record in series.records:
        for label in record.fields:
            labels[label] = labels.get(label, 0) + 1
    common = [name for name, seen in labels.items() if seen >= SHARE * len(series.records)]
    if series.counts_epochs:
        found = [one for label in common for one in _epoch_estimates(series, label)]
        return [one for one in found if one is not None and one.rounding <= 0.5]
    found = [_stamp_estimate(series)]
    for label in common:
        if f"{label}+" in common and _is_mean(series, f"{label}+"):
            found.append(_mean_estimate(series, f"{label}+", label))
            if all(after.step - before.step == 1 for before, after in series.intervals()):
                found.extend(_field_estimates(series, label))  # each step has a line of its own
        elif not _is_mean(series, label):
            found.extend(_field_estimates(series, label))
    estimates = [one for one in found if one is not None and one.rounding <= 0.5]
    return sorted(estimates, key=lambda one: not one.is_certain)


def _is_mean(series: Series, label: str) -> bool:
    """Whether a number is the mean of the number in front of it: ``Time 0.93 (0.95)``."""
    first = next((one.fields for one in series.records if label in one.fields), {})
    before = first.get(label[:-1]) if label.endswith("+") else None
    return before is not None and before.kind is first[label].kind


def _mean_estimate(series: Series, mean: str, last: str) -> StepEstimate | None:
    """``Time 0.35 (0.36)``: time of the last step and its mean since the begin of the epoch.

    The idiom of PyTorch's ImageNet example; the mean is exact, its last step only a sample. The
    time between the first and the last line is the difference of two means times their steps.
    """
    records = [one for one in series.records if mean in one.fields]
    first = records[0].fields[mean]
    if _PART_OF_STEP.search(last) or not (
        first.kind in _TIMES
        or (first.kind is FieldKind.PLAIN and _is_duration(last, [first]))
        or last == mean
    ):
        return None
    times, error = [], 0.0
    offset = 1 if _counts_from_zero(records) else 0
    for segment in sorted({one.segment for one in records}):
        own = [one for one in records if one.segment == segment]
        begin, end = own[0], own[-1]
        begun = series.begun.get(segment, 0) - offset
        done, before = end.step - begun, begin.step - begun
        if done <= before or before < 1:
            continue
        if before == 1 and last != mean and not _is_near(begin.fields[last], begin.fields[mean]):
            return None  # the mean of one step is that step: the mean runs on over epochs
        spent = end.fields[mean].value * done - begin.fields[mean].value * before
        times.append((end.step, done - before, spent / (done - before)))
        error += first.rounding * (done + before)
    spent = sum(count * each for _, count, each in times)
    if not times or any(each <= 0 for *_, each in times):
        return None
    estimate = StepEstimate(f"{last} (mean)", tuple(times), error / spent, is_certain=True)
    if last == mean:
        return estimate
    usual = statistics.median(one.fields[last].value for one in records if last in one.fields)
    return estimate if usual / 1.5 <= estimate.seconds <= 1.5 * usual else None


def _counts_from_zero(records: list[StepLineRecord]) -> bool:
    """Whether the first step is 0: it is printed, or every line ends a stride (19, 39, 59)."""
    steps = [one.step for one in records]
    stride = min((b - a for a, b in pairwise(steps) if b > a), default=1)
    return 0 in steps or (stride > 1 and all((step + 1) % stride == 0 for step in steps))


def _is_near(one: LogField, other: LogField) -> bool:
    tolerance = AGREES_WITHIN * max(one.value, other.value) + one.rounding + other.rounding
    return abs(one.value - other.value) <= tolerance


def _stamp_estimate(series: Series) -> StepEstimate | None:
    """Time stamps of consecutive lines over the steps between them."""
    times, resolution = [], 0.0
    for before, after in series.intervals():
        if before.stamp is None or after.stamp is None or after.stamp < before.stamp:
            continue
        count = after.step - before.step
        times.append((after.step, count, (after.stamp - before.stamp) / count))
        resolution = max(resolution, before.resolution)
    times = _undamaged(times)
    elapsed = sum(count * each for _, count, each in times)
    if len(times) < 2 or elapsed <= 0 or statistics.median(each for *_, each in times) <= 0:
        return None
    if statistics.median(count * each for _, count, each in times) < 2 * resolution:
        # Lines closer than the resolution: single intervals mean nothing, their sum does.
        steps = sum(count for _, count, _ in times)
        times = [(times[-1][0], steps, elapsed / steps)]
    estimate = StepEstimate(STAMPS, tuple(times), resolution / elapsed, series.counts_steps)
    # Lines that were held back and then printed at once make mean and median differ.
    is_even = abs(estimate.seconds - estimate.usual) <= UNEVEN * estimate.usual
    return estimate if is_even and _is_steady(estimate) else None


def _undamaged(times: list[tuple[int, int, float]]) -> list[tuple[int, int, float]]:
    """Intervals without the few that are far too short: their counter was cut or overwritten."""
    if not times:
        return times
    usual = statistics.median(seconds for *_, seconds in times)
    kept = [one for one in times if one[2] > usual / 2]
    return kept if len(kept) >= 0.8 * len(times) else times


def _is_steady(estimate: StepEstimate) -> bool:
    """Whether half of the times are within a factor of 1.5 of the median."""
    usual = estimate.usual
    near = sum(usual / 1.5 <= seconds <= 1.5 * usual for _, _, seconds in estimate.times)
    return near >= 0.5 * len(estimate.times) and estimate.seconds <= LONGEST_SECONDS / 1e3


def _field_estimates(series: Series, label: str) -> list[StepEstimate | None]:
    records = [one for one in series.records if label in one.fields]
    kinds = {one.fields[label].kind for one in records}
    kind = next(iter(kinds)) if len(kinds) == 1 else FieldKind.OTHER
    values = [one.fields[label] for one in records]
    name = label or "duration"
    if kind is FieldKind.STEP_RATE:
        records = [one for one in records if one.fields[label].value > 0]
        if len(records) < 2:
            return []
        each = [(r.segment, r.step, 1 / r.fields[label].value) for r in records]
        rounding = _rounding(series, label)
        return [_per_record(series, f"{name} ({kind})", each, rounding, is_certain=True)]
    if kind in _RATES:
        return [_amount_estimate(series, label, kind)]
    if kind is FieldKind.MEAN_STEP_SECONDS:
        return [_mean_estimate(series, label, label)]
    if kind is FieldKind.ELAPSED:
        return [_elapsed_estimate(series, label, is_stated=True)]
    if kind is FieldKind.INTERVAL:
        covered = series.covered()
        each = [
            (r.segment, r.step, r.fields[label].value / covered[r.segment, r.step]) for r in records
        ]
        return [_per_record(series, name, each, _rounding(series, label), is_certain=True)]
    if kind is FieldKind.STEP_SECONDS:
        each = [(r.segment, r.step, r.fields[label].value) for r in records]
        rounding = _rounding(series, label)
        return [_per_record(series, f"{name} ({kind})", each, rounding, is_certain=True)]
    if kind is FieldKind.SECONDS or (kind is FieldKind.PLAIN and _is_duration(label, values)):
        elapsed = _elapsed_estimate(series, label) if not _STEP_DURATION.search(label) else None
        if elapsed is not None:
            return [elapsed]
        return _duration_estimates(series, label)
    return []


def _epoch_estimates(series: Series, label: str) -> list[StepEstimate | None]:
    """Time per step in lines of epochs; the time of the epoch itself includes evaluation."""
    kinds = {one.fields[label].kind for one in series.records if label in one.fields}
    if kinds <= {FieldKind.STEP_SECONDS, FieldKind.STEP_RATE}:
        return _field_estimates(series, label)
    if kinds <= {FieldKind.SECONDS, FieldKind.PLAIN} and _STEP_DURATION.search(label):
        return _duration_estimates(series, label)
    return []


def _amount_estimate(series: Series, label: str, kind: FieldKind) -> StepEstimate | None:
    """Samples or tokens per step over their printed rate."""
    each = []
    for record in series.records:
        rate = record.fields.get(label)
        own = [one.value for one in record.fields.values() if one.kind is _RATES[kind]]
        amount = own[0] if own else series.amounts.get(kind, 0.0)
        if rate is not None and rate.value > 0 and amount > 0:
            each.append((record.segment, record.step, amount / rate.value))
    if len(each) < 2:
        return None
    return _per_record(series, f"{label} ({kind})", each, _rounding(series, label), is_certain=True)


def _is_duration(label: str, values: list[LogField]) -> bool:
    """Whether a number without a unit is a duration by its label, printed with decimals."""
    named = _DURATION.search(label) or _STEP_DURATION.search(label)
    return bool(label and named and not any(one.is_integer for one in values))


def _elapsed_estimate(series: Series, label: str, is_stated: bool = False) -> StepEstimate | None:
    """A duration that grows with the counter is the time since the start of the segment.

    A stated clock may be set back (modded-nanogpt does so after its warm-up).
    """
    times, rounding, growth = [], 0.0, []
    for before, after in series.intervals():
        first, second = before.fields.get(label), after.fields.get(label)
        if first is None or second is None:
            continue
        if second.value < first.value:
            if is_stated:
                continue
            return None
        growth.append((before.step, after.step, first.value, second.value))
        count = after.step - before.step
        times.append((after.step, count, (second.value - first.value) / count))
        rounding = max(rounding, second.rounding)
    times = _undamaged(times)
    if len(times) < 2:
        return None
    first_step, last_step = growth[0][0], growth[-1][1]
    first_value, last_value = growth[0][2], growth[-1][3]
    if series.segment == 0 and not is_stated:
        expected = (last_step - first_step) / max(last_step, 1)
        if last_value <= 0 or (last_value - first_value) / last_value < 0.5 * expected:
            return None
    elapsed = sum(count * each for _, count, each in times)
    if elapsed <= 0 or statistics.median(each for *_, each in times) <= 0:
        return None
    has_unit = all(
        one.fields[label].kind is not FieldKind.PLAIN
        for one in series.records
        if label in one.fields
    )
    certain = (series.counts_steps and has_unit) or is_stated
    source = f"{label or 'clock'} (elapsed)"
    estimate = StepEstimate(source, tuple(times), 2 * rounding / elapsed, certain)
    return estimate if is_stated or _is_steady(estimate) else None


def _duration_estimates(series: Series, label: str) -> list[StepEstimate | None]:
    """A duration per line: of one step, or of the steps since the last line."""
    is_step = _STEP_DURATION.search(label) and not _ALWAYS_PART.search(label)
    if _PART_OF_STEP.search(label) and not is_step:
        return []
    strides = [after.step - before.step for before, after in series.intervals()]
    stride = statistics.median(strides) if strides else 1
    own = [one for one in series.records if label in one.fields and one.fields[label].value > 0]
    if len(own) < 2:
        return []
    each = [(one.segment, one.step, one.fields[label].value) for one in own]
    certain = bool(_STEP_DURATION.search(label)) or (stride == 1 and series.counts_steps)
    has_unit = all(one.fields[label].kind is not FieldKind.PLAIN for one in own)
    certain = certain and (has_unit or statistics.median(x for *_, x in each) < UNCLEAR_SECONDS)
    rounding = _rounding(series, label)
    of_step = _per_record(series, label or "duration", each, rounding, certain)
    if stride == 1:
        return [of_step]
    shared = [(segment, step, seconds / stride) for segment, step, seconds in each]
    name = f"{label or 'duration'} over {stride:g} steps"
    return [of_step, _per_record(series, name, shared, rounding, is_certain=False)]


def _per_record(
    series: Series,
    source: str,
    each: list[tuple[int, int, float]],
    rounding: float,
    is_certain: bool,
) -> StepEstimate | None:
    if any(not SHORTEST_SECONDS <= seconds <= LONGEST_SECONDS for *_, seconds in each):
        return None
    covered = series.covered()
    times = tuple((step, covered.get((segment, step), 1), one) for segment, step, one in each)
    if _is_running_mean([seconds for *_, seconds in each]):
        return None
    estimate = StepEstimate(source, times, rounding, is_certain)
    return estimate if _is_steady(estimate) else None


def _is_running_mean(values: list[float]) -> bool:
    """Whether times only fall, by a lot: means since a start that includes compilation."""
    falls = sum(after <= before for before, after in pairwise(values))
    mostly = falls >= FALLING * (len(values) - 1)  # a resumed run begins anew
    return len(values) > FEW and mostly and values[0] > FALLEN * values[-1]


def time_left(series: Series) -> float | None:
    """Seconds per step by the printed time to the end; None where epochs make it ambiguous."""
    found = []
    for record in series.records:
        left = [one for one in record.fields.values() if one.kind is FieldKind.REMAINING]
        if any("epoch" in label for label in record.fields):
            return None
        if len(left) == 1 and record.total and record.total > record.step:
            found.append(left[0].value / (record.total - record.step))
    return statistics.median(found) if len(found) >= SHARE * len(series.records) else None


def _rounding(series: Series, label: str) -> float:
    values = [one.fields[label] for one in series.records if label in one.fields]
    return statistics.median(one.rounding / one.value if one.value > 0 else 1.0 for one in values)
