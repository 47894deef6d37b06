"""Group the lines of a log into series of records that a step counter orders."""

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, islice, pairwise

from paceline.importers.logs.inference.line_fields import (
    FieldKind,
    LogField,
    fields_of,
    line_stamp,
)
from paceline.importers.logs.inference.table_rows import TableRows
from paceline.importers.logs.inference.vocabulary import Vocabulary
from paceline.importers.logs.parsing.log_lines import LogLine

MOST_RECORDS = 50_000
MOST_SERIES = 200
MOST_JOINED_LINES = 60
LOOKED_AT = 4000
"""Lines in which fields that never change are recognised."""
MOST_LABELS = 10_000
MOST_VALUES = 20
"""Values of a label that are told apart."""
LONGEST_TEMPLATE = 80
FIRST_FIELDS = 4
"""Numbers at the begin of a line that may be a counter without a name."""
FEWEST_ADVANCES = 3
EVENLY = 0.8
"""Least share of lines in which a counter without a name advances by the same amount."""
UNNAMED = "unnamed"

_COUNTER = re.compile(
    r"(?:^|[\s_/.(])(?:global[_ ])?"
    r"(?:steps?|iterations?|iters?|it|batch|minibatch|updates?|up\.|num_updates|num_steps"
    r"|batches)"
    r"(?:[_ ](?:idx|num|number|id))?(?: ?\(train\))?$"
)
_EPOCH = re.compile(r"(?:^|[\s_/])(?:epochs?|ep|pass|train)(?: ?\(train\))?\+?$")
_EPOCH_COUNTER = re.compile(r"(?:^|\s)epochs?$")
_NOT_A_COUNTER = re.compile(
    r"batch[_ ]size|warm|\bper\b|every|max|total|accum|log|save|eval|\bnum[_ ]steps|begin|start"
    r"|from|resum|until|ckpt|checkpoint|skipped|nan\b|bsz"
)
_OTHER_PHASE = re.compile(
    r"\bval\b|(?:^|[\s_/\[(])(?:val|dev|test)[\s_/:\])]|valid|\beval|evaluat|\btest(?:ing)?\b|inference"
    r"|infer\b|sanity|predict|generat|download|\bload(?:ing|ed)\b|tokeniz|preprocess|\bmap:"
    r"|saving|saved|checkpoint|resum|filter|extract|\bwarm(?:ing)?[ -]?up|profil|autotun|calibrat",
    re.I,
)
_TRAINING_TIME = re.compile(r"\btrain(?:ing)?[_ ]?time", re.I)
_UNNAMED = re.compile(r"\+?|[a-z]")
_DIGITS = re.compile(r"[\d.,:]*\d[\d.,:]*|\bnan\b")
_INDENTS = (" ", "\t")
_SOURCE = re.compile(r"[\w-]+(?:[./][\w<>-]+)+:\d+(?=:\w|[\])]| [-|])")
"""Module and line of a logger (``examples/test:325:train_step``), which name no phase."""
_TRAINING = re.compile(r"train|loss|\blr\b|learning.rate|grad|perplexity|\bppl\b|\bmfu\b", re.I)
_BRACKETS = re.compile(r"(?:^|\] )\[(\d{1,12})\] \S")
_RANGE = re.compile(r"\b\d+-(\d+)(?=(batch|iter|step)(?:es|s)?\b)")
"""First and last batch of an interval (ESPnet)."""
_ABSENT = re.compile(r"\bval\w*: (?:n/a|None)\b")
"""A result that a training line does not have (LitGPT)."""
_BEGINS = re.compile(
    r"(?:start|resum|continu)\w* training from (?:\w+ ){0,3}?(?:step|iteration|iter) (\d{1,12})\b",
    re.I,
)
_BAR = re.compile(r"\d%\|[^|]*\||\[\d+:\d\d<|[━╸]{3}|\[[=>.\s]{8,}\]")


@dataclass(frozen=True, slots=True)
class StepLineRecord:
    """One printed step: its counter, the fields of its line and the stamp of the line.

    ``segment`` counts restarts of the counter (epochs, resumed runs): steps of different segments
    are not compared. ``total`` is the last step, where the line states it.
    """

    step: int
    segment: int
    fields: dict[str, LogField]
    stamp: float | None
    resolution: float
    total: float | None = None


@dataclass
class Series:
    """Records of one kind of line on one rank.

    ``counts_steps`` is False for a counter without a label (``[640/60000]``), which may count
    samples. With ``counts_epochs`` there is a line per epoch only. ``begun`` is the step at which
    each segment started, where the log states it.
    ``amounts`` are samples or tokens per step by the kind of rate that counts them.
    """

    name: str
    counter: str
    rank: int | None
    records: list[StepLineRecord] = field(default_factory=list)
    has_loss: bool = False
    segment: int = 0
    counts_steps: bool = True
    counts_epochs: bool = False
    begun: dict[int, int] = field(default_factory=dict)
    amounts: dict[FieldKind, float] = field(default_factory=dict)

    def is_named(self, name: str) -> bool:
        """Whether the counter or the first line of the series contains ``name``."""
        return name in self.counter or name in self.name.lower()

    def covered(self) -> dict[tuple[int, int], int]:
        """Steps since the line before, by segment and step; a segment that begins late has a gap.

        The first line of an epoch covers the steps up to it, at most as many as the others.
        """
        strides = [after.step - before.step for before, after in self.intervals()]
        usual = sorted(strides)[len(strides) // 2] if strides else 1
        found, last = {}, (-1, 0)
        for one in self.records:
            steps = one.step - last[1] if one.segment == last[0] else min(max(one.step, 1), usual)
            if self.counts_epochs:
                steps = max(
                    (int(f.value) for n, f in one.fields.items() if _counts(n, f)), default=1
                )
            found[one.segment, one.step] = max(1, steps)
            last = (one.segment, one.step)
        return found

    @property
    def other_counter(self) -> str | None:
        """Label of another counter that advances differently (micro-steps of LitGPT)."""
        spans = [
            (after.step - before.step, label, after.fields[label].value - one.value)
            for before, after in self.intervals()
            for label, one in before.fields.items()
            # A batch of the epoch restarts below a global step.
            if label in after.fields
            and _counts(label, one)
            and after.fields[label].value >= one.value
        ]
        for label in {label for _, label, _ in spans}:
            steps = sum(own for own, name, _ in spans if name == label)
            others = sum(own for _, name, own in spans if name == label)
            if 0 < others < 0.9 * steps or others > 1.1 * steps:
                return label
        return None

    def intervals(self) -> list[tuple[StepLineRecord, StepLineRecord]]:
        """Consecutive records of the same segment."""
        return [
            (before, after)
            for before, after in zip(self.records, self.records[1:], strict=False)
            if before.segment == after.segment
        ]


def training_series(lines: Iterable[LogLine], vocabulary: Vocabulary) -> tuple[list[Series], int]:
    """Series of a log that may be training, and the number of lines."""
    labels = vocabulary.labels
    known: dict[tuple[str, int | None], Series] = {}
    latest: dict[int | None, tuple[Series, int]] = {}
    number = begun = 0
    rest = iter(lines)
    begin = list(islice(rest, LOOKED_AT))
    constant, epochs_of = _constant_labels(begin)
    unnamed = _unnamed_counters(begin, constant)
    rows = TableRows(_is_counter)
    for number, line in enumerate(chain(begin, rest), 1):
        text = rows.labelled(_RANGE.sub(r"\2 \1 ", _ABSENT.sub("", line.text)))
        begins = _BEGINS.search(text)
        if begins is not None:
            begun = int(begins[1])
            _begin_all(known.values(), begun)
        is_other = _is_other_phase(text)
        if not text.strip() or is_other or _is_bar(text, labels):
            if is_other and not text.startswith(_INDENTS):
                latest.pop(line.rank, None)
            continue
        found = [_named(_turned(one, epochs_of), labels) for one in fields_of(text)]
        counter = _counter(found, constant, text)
        is_epoch = counter is None and (line.rank not in latest or not text.startswith(_INDENTS))
        if is_epoch:
            counter = _epoch_counter(found, constant)
        place = None if counter is not None and not is_epoch else unnamed.get(_template(text))
        if place is not None and place < len(found) and found[place].is_integer:
            counter, is_epoch = replace(found[place], label=UNNAMED), False
        if counter is None:
            _join(latest, line.rank, found, number, text)
            continue
        series = known.get((counter.label, line.rank))
        if series is None:
            if len(known) >= MOST_SERIES:
                continue
            series = Series(_title(text), counter.label, line.rank)
            series.counts_steps = _COUNTER.search(counter.label.rstrip("+")) is not None
            series.counts_epochs = is_epoch
            series.begun[0] = begun
            known[counter.label, line.rank] = series
        _append(series, counter, found, text)
        latest[line.rank] = (series, number)
    return [one for one in known.values() if len(one.records) >= 2], number


def _is_other_phase(text: str) -> bool:
    """Whether a line belongs to evaluation, loading or saving, unless it states a training time."""
    text = _SOURCE.sub("", text)
    return _OTHER_PHASE.search(text) is not None and _TRAINING_TIME.search(text) is None


def _template(text: str) -> str:
    """The begin of a line without its numbers, which lines of one kind have in common."""
    return _DIGITS.sub("#", text[:LONGEST_TEMPLATE])[: LONGEST_TEMPLATE // 2]


def _unnamed_counters(lines: Iterable[LogLine], constant: set[str]) -> dict[str, int]:
    """Position of the counter in lines whose counter has no label that names steps, by template.

    Such an integer advances from line to line by the same amount; where several do (samples,
    tokens), the slowest is the counter.
    """
    columns: dict[tuple[str, int], list[float]] = {}
    for line in lines:
        if _TRAINING.search(line.text) is None or _is_other_phase(line.text):
            continue
        fields = fields_of(line.text)
        if _counter(fields, constant, line.text) is not None:
            continue
        template = _template(line.text)
        for at, one in enumerate(fields[:FIRST_FIELDS]):
            is_unnamed = _UNNAMED.fullmatch(one.label) and one.label not in constant - {""}
            if one.is_integer and one.kind is FieldKind.PLAIN and not one.total and is_unnamed:
                columns.setdefault((template, at), []).append(one.value)
    found: dict[str, tuple[float, int]] = {}
    for (template, at), values in columns.items():
        advances = Counter(after - before for before, after in pairwise(values))
        if not advances:
            continue
        stride, times = advances.most_common(1)[0]
        slower = stride < found.get(template, (math.inf, 0))[0]
        if stride > 0 and times >= max(FEWEST_ADVANCES, EVENLY * len(values)) and slower:
            found[template] = (stride, at)
    return {template: at for template, (_, at) in found.items()}


def _is_counter(label: str) -> bool:
    return bool(_COUNTER.search(label)) and not _NOT_A_COUNTER.search(label)


def _counts(label: str, one: LogField) -> bool:
    return one.is_integer and one.kind is FieldKind.PLAIN and _is_counter(label)


def _epoch_counter(fields: Sequence[LogField], constant: set[str]) -> LogField | None:
    """The number of the epoch, in a line that ends one."""
    for one in fields:
        if one.is_integer and _EPOCH_COUNTER.search(one.label) and one.label not in constant:
            return one
    return None


def _constant_labels(lines: list[LogLine]) -> tuple[set[str], set[str]]:
    """Labels of integers that never change (``batch 16``), and of fractions whose total advances.

    The latter are an epoch and its batch (``Batch 0/300`` of WeNet).
    """
    values: dict[str, set[float]] = {}
    totals: dict[str, set[float]] = {}
    seen: Counter[str] = Counter()
    for line in lines:
        for one in fields_of(line.text):
            if one.is_integer and len(values) < MOST_LABELS:
                seen[one.label] += 1
                if len(known := values.setdefault(one.label, set())) < MOST_VALUES:
                    known.add(one.value)
                if len(known := totals.setdefault(one.label, set())) < MOST_VALUES:
                    known.add(one.total or 0.0)
    turned = {
        label for label, known in totals.items() if len(known) >= max(4, 2 * len(values[label]))
    }
    fixed = {label for label, known in values.items() if len(known) == 1 and seen[label] > 2}
    return fixed - turned, turned


def _turned(one: LogField, epochs_of: set[str]) -> LogField:
    """A fraction of epoch and batch as the number of the batch."""
    if one.total is None or one.label not in epochs_of:
        return one
    return replace(one, value=one.total, total=None)


def _counter(fields: Sequence[LogField], constant: set[str], text: str) -> LogField | None:
    """The step counter of a line: an integer whose label names steps, or ``10/391`` of an epoch."""
    integers = [
        one
        for one in fields
        if one.is_integer and one.kind is FieldKind.PLAIN and one.label not in constant
    ]
    for at, one in enumerate(integers):
        label = one.label.rstrip("+")
        if _is_counter(label):
            # "step: [epoch, iteration]" (DLLogger): the last number advances fastest.
            rest = [other for other in integers[at + 1 :] if other.label == f"{label}+"]
            return rest[-1] if rest and not one.total else one
    for before, one in zip([None, *fields], fields, strict=False):
        # "Epoch: [0][ 10/391]", "Epoch 1 | 10/391": the fraction after the epoch counts its steps.
        after_epoch = before is not None and _EPOCH.search(before.label)
        if one.is_integer and one.total and one.label[-1:] in ("", "+") and after_epoch:
            return one
    # "[000500/50000] loss ...": an unnamed fraction at the begin of a line.
    first = fields[0] if fields else None
    if first and first.is_integer and first.total and not first.label:
        return first
    # "train.py:48] [500] loss=2.3" (JAX): an unnamed number in brackets.
    number = _BRACKETS.search(text)
    inside = [one for one in integers if number and one.value == int(number[1])]
    return inside[0] if inside else None


def _named(one: LogField, labels: Mapping[str, FieldKind]) -> LogField:
    """The field with the quantity that the program states for its label; ``+`` is its mean."""
    kind = labels.get(one.label) or labels.get(one.label.rstrip("+"))
    return one if kind is None or one.total else replace(one, kind=kind)


def _is_bar(text: str, labels: Mapping[str, FieldKind]) -> bool:
    """Whether a line is a bar without figures that the program is known to show (NeMo)."""
    return _BAR.search(text) is not None and not any(label in text for label in labels)


def _begin_all(known: Iterable[Series], step: int) -> None:
    """Start a new segment of every series: a resumed run averages from ``step`` on."""
    for series in known:
        series.segment += 1 if series.records else 0
        series.begun[series.segment] = step


def _append(series: Series, counter: LogField, fields: Sequence[LogField], text: str) -> None:
    step = int(counter.value)
    last = series.records[-1] if series.records else None
    if last is not None and series.segment == last.segment and step <= last.step:
        if step == last.step:  # one step on several lines (Caffe)
            for label, one in _by_label(fields).items():
                last.fields.setdefault(label, one)
            return
        series.segment += 1
    if len(series.records) >= MOST_RECORDS:
        return
    series.has_loss = series.has_loss or _TRAINING.search(text) is not None
    stamp = line_stamp(text)
    series.records.append(
        StepLineRecord(
            step,
            series.segment,
            _by_label(one for one in fields if one is not counter),
            None if stamp is None else stamp[0],
            1.0 if stamp is None else stamp[1],
            counter.total,
        )
    )


def _join(
    latest: dict[int | None, tuple[Series, int]],
    rank: int | None,
    found: Sequence[LogField],
    line: int,
    text: str,
) -> None:
    """Add the fields of a line without counter to the record above it (OLMo, Composer)."""
    if rank not in latest or not found:
        return
    series, at = latest[rank]
    if line - at > MOST_JOINED_LINES:
        return
    record, own = series.records[-1], _by_label(found)
    if record.fields.keys() & own.keys():  # fields of the next step, whose line is lost
        del latest[rank]
        return
    if record.stamp is None and (stamp := line_stamp(text)) is not None:
        series.records[-1] = replace(record, stamp=stamp[0], resolution=stamp[1])
    record.fields.update(own)
    series.has_loss = series.has_loss or any(_TRAINING.search(label) for label in own)


def _by_label(fields: Iterable[LogField]) -> dict[str, LogField]:
    """Fields by label; the first of equal labels and kinds."""
    found: dict[str, LogField] = {}
    for one in fields:
        is_other = one.label in found and found[one.label].kind is not one.kind
        found.setdefault(f"{one.label} {one.kind}".strip() if is_other else one.label, one)
    return found


def _title(text: str) -> str:
    return re.sub(r"\s+", " ", text).strip()[:60]
