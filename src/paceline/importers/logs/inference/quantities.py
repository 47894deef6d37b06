"""Rates, batch, ranks, input wait and losses that the lines of a series state beside step times."""

import re
import statistics
from collections.abc import Iterable

from paceline.importers.logs.inference.line_fields import FieldKind, LogField
from paceline.importers.logs.inference.step_time import UNEVEN
from paceline.importers.logs.inference.training_series import Series, StepLineRecord
from paceline.importers.logs.parsing.agreement import agree, devices, mean_rate
from paceline.importers.logs.parsing.log_builder import LogBuilder
from paceline.importers.logs.parsing.parsed_log import RateScope, RateUnit

_LOSS = re.compile(r"(?:^|[\s_/])(?:(?:total|train|lm|reduced_train|ce)[_ ])?loss$|^loss train$")
_INPUT = re.compile(r"^(?:\w+_)?(?:data|reader)[_ ](?:time|cost)$|^data(?: \(t\))?$")
_RATES = {
    FieldKind.SAMPLE_RATE: ("rate", RateUnit.SAMPLES, RateScope.GLOBAL),
    FieldKind.DEVICE_SAMPLE_RATE: ("rate_each", RateUnit.SAMPLES, RateScope.PER_DEVICE),
    FieldKind.TOKEN_RATE: ("tokens", RateUnit.TOKENS, RateScope.GLOBAL),
    FieldKind.DEVICE_TOKEN_RATE: ("tokens_each", RateUnit.TOKENS, RateScope.PER_DEVICE),
}


def add_losses(series: Series, log: LogBuilder) -> None:
    """Add the training loss of each record."""
    label = next((one for one in _labels(series.records) if _LOSS.search(one)), None)
    for record in series.records:
        if label in record.fields:
            log.loss(record.step, record.fields[label].value)


def add_input_wait(series: Series, log: LogBuilder) -> None:
    """Set the mean seconds per step that wait for input, without the first record."""
    for label in _labels(series.records):
        stated = _values(series.records, label)[0].kind is FieldKind.INPUT_SECONDS
        if not stated and not _INPUT.search(label):
            continue
        mean = f"{label}+"
        own = [one for one in series.records if mean in one.fields and one.segment == 0]
        if own and len(own) > 1 and label in own[0].fields:
            offset = 1 if own[0].step == 0 else 0
            done, before = own[-1].step + offset, own[0].step + offset
            spent = own[-1].fields[mean].value * done - own[0].fields[mean].value * before
            log.phases["input"] = max(0.0, spent / (done - before))
            return
        waits = [one.value for one in _values(series.records, label)]
        kept = waits[1:] or waits
        log.phases["input"] = sum(kept) / len(kept)
        return


def set_batch(series: Series, log: LogBuilder) -> None:
    """Set the batch to the mean samples per step that the lines state or count."""
    sizes = _of_kind(series, FieldKind.SAMPLES)
    if not sizes and log.ranks:
        sizes = [log.ranks * one for one in _of_kind(series, FieldKind.DEVICE_SAMPLES)]
    counted = [
        (seen[1].value - seen[0].value) / (after.step - before.step)
        for before, after in series.intervals()
        if len(seen := _fields((before, after), FieldKind.SAMPLES_SEEN)) == 2
    ]
    if counted and min(counted) > 0:
        middle = sum(counted) / len(counted)
        stated = sum(sizes[1:]) / len(sizes[1:]) if len(sizes) > 1 else None
        if stated is None or not agree(stated, middle):
            sizes = counted
    if not sizes or log.global_batch:
        return
    sizes = sizes[1:] or sizes
    log.global_batch = sum(sizes) / len(sizes)
    if max(sizes) > 1.01 * min(sizes):
        log.warn(
            f"samples per step vary from {min(sizes):,.4g} to {max(sizes):,.4g}; "
            f"using the mean, {log.global_batch:,.4g}"
        )


def add_rates(series: Series, log: LogBuilder, workers: int, is_known: bool) -> None:
    """Record printed rates; ranks and batch follow from them in the log of a known program.

    ``workers`` ranks print a rate of their own.
    """
    pairs: dict[str, list[tuple[float, float]]] = {}
    rounding: dict[str, float] = {}
    kinds, running = {}, set()
    for label in _labels(series.records):
        values = _values(series.records, label)
        kind = values[0].kind
        if kind not in _RATES or any(one.kind is not kind for one in values):
            continue
        mean = _values(series.records, f"{label}+")  # "Speed 128 (120)": since the beginning
        kept = [one for one in (mean or values)[1:] or values if one.value > 0]
        name = _RATES[kind][0]
        if kept and name not in pairs:
            kinds[name], rounding[name] = kind, max(one.rounding for one in kept)
            pairs[name] = [(1.0, one.value) for one in kept]
            running |= {name} if mean else set()
    if is_known and log.ranks is None:
        log.ranks = devices(pairs, "tokens") or devices(pairs, "rate")
    products = _products_of_lines(series)
    for name, own in pairs.items():
        _, unit, scope = _RATES[kinds[name]]
        mean_of_all = mean_rate(own)
        if mean_of_all and name == "rate":
            mean_of_all *= workers
        source = f"mean of the printed {unit}/s"
        if is_known and name == "rate" and mean_of_all and workers == 1:
            _check_batch(log, products)
            log.infer_batch(products)
        if log.steps and name in running:
            continue
        if log.steps:
            log.printed_rate(mean_of_all, source, unit, scope, rounding[name])
        unstated = not log.steps or (
            name == "rate" and not (log.global_batch or log.batch_per_rank)
        )
        # Rates of lines that were held back mean nothing.
        middle = statistics.median(rate for _, rate in own)
        is_even = mean_of_all and abs(mean_of_all - workers * middle) <= UNEVEN * workers * middle
        if not unstated or not is_even or not (log.throughput is None or unit is RateUnit.SAMPLES):
            continue
        if is_known:
            log.rate(mean_of_all, source, unit, scope)
        elif not log.steps and scope is RateScope.GLOBAL and (log.ranks or 1) == 1:
            log.rate(mean_of_all, source, unit, scope)
            log.warn(f"the log does not state whether its {unit}/s are those of one process")


def _check_batch(log: LogBuilder, products: list[tuple[float, float]]) -> None:
    """Check the batch of the settings against rate times seconds of the lines."""
    each = log.batch_per_rank
    stated = log.global_batch or (each * (log.ranks or 1) if each else None)
    samples = statistics.median(product for product, _ in products) if products else None
    if stated and samples and not agree(stated, samples):
        log.contradict(
            f"the settings state {stated:,.4g} samples per step, but printed rates and times give "
            f"{samples:,.4g}"
        )


def _products_of_lines(series: Series) -> list[tuple[float, float]]:
    """Samples per second times seconds per step of each line, or of its means, with rounding."""
    found = []
    for record in series.records:
        rates = [n for n, one in record.fields.items() if one.kind is FieldKind.SAMPLE_RATE]
        times = [n for n, one in record.fields.items() if one.kind is FieldKind.STEP_SECONDS]
        if rates and times:
            names = [
                f"{one[0]}+" if f"{one[0]}+" in record.fields else one[0] for one in (rates, times)
            ]
            rate, seconds = (record.fields[name] for name in names)
            error = rate.rounding * seconds.value + rate.value * seconds.rounding
            found.append((rate.value * seconds.value, error))
    return found


def _labels(records: Iterable[StepLineRecord]) -> list[str]:
    """Labels of all records, in order of first appearance."""
    return list(dict.fromkeys(label for record in records for label in record.fields))


def _values(records: Iterable[StepLineRecord], label: str) -> list[LogField]:
    return [one.fields[label] for one in records if label in one.fields]


def _fields(records: Iterable[StepLineRecord], kind: FieldKind) -> list[LogField]:
    """The first field of a kind of each record that has one."""
    found = ([one for one in record.fields.values() if one.kind is kind] for record in records)
    return [own[0] for own in found if own]


def _of_kind(series: Series, kind: FieldKind) -> list[float]:
    return [one.value for one in _fields(series.records, kind)]
