"""Any log with a step counter or progress bars: step times inferred from everything it prints.

The registry uses this reader when no reader of a program recognises a log or finds times in it. The
result names the fields that were used. A log whose fields allow several readings is refused with a
question.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

from paceline.importers.logs.inference.job_settings import JobSettings
from paceline.importers.logs.inference.line_fields import FieldKind
from paceline.importers.logs.inference.quantities import (
    add_input_wait,
    add_losses,
    add_rates,
    set_batch,
)
from paceline.importers.logs.inference.step_time import (
    COARSE,
    PAUSE,
    STAMPS,
    StepEstimate,
    agrees,
    step_estimates,
    time_left,
)
from paceline.importers.logs.inference.training_series import Series, training_series
from paceline.importers.logs.inference.vocabulary import Vocabulary
from paceline.importers.logs.parsing.agreement import agree
from paceline.importers.logs.parsing.log_builder import LogBuilder
from paceline.importers.logs.parsing.log_lines import LogLine
from paceline.importers.logs.parsing.parsed_log import ParsedLog
from paceline.importers.logs.parsing.progress_bars import Bars

CLEAR = 3
"""Least number of records of a series that is read."""
CLEAR_OF_PROGRAM = 2
"""Least number of records of a series of a known program."""
CLEAR_STAMPS = 6
"""Least number of records of a series that only time stamps measure."""
FIRST_RECORDS = 4
"""Records of a series that may be far too short."""
LEFT_WITHIN = 0.15
"""Relative difference of a step time and of the printed time to the end, which is a mean too."""
PAUSES = 1.3
"""Ratio of time stamps to printed step times above which the log is refused."""


@dataclass(frozen=True)
class InferringReader:
    """Reads the log of an unknown program, or of one whose table states a ``vocabulary``.

    ``series`` selects the training series by a part of its line or counter where a log has several.
    """

    name: str = "inferred"
    title: str = "any log with a step counter or progress bars, by inference"
    marks: tuple[tuple[str, float], ...] = ()
    vocabulary: Vocabulary = field(default_factory=Vocabulary)
    series: str = ""

    def sniff(self, head: str) -> float:
        """Confidence by marks; without a table 0, since the registry asks this reader last."""
        return min(1.0, sum(weight for mark, weight in self.marks if mark in head))

    def read(self, lines: Iterable[LogLine]) -> ParsedLog:
        """Infer step times; the log is empty, with a warning, if that is not possible."""
        log = LogBuilder(self.name)
        shown = LogBuilder(self.name if self.marks else "tqdm")
        bars, settings = Bars(), JobSettings(self.vocabulary)
        lines = _observed(lines, bars, settings, (log, shown))
        found, number = training_series(lines, self.vocabulary)
        log.lines = shown.lines = number
        bars.add_to(shown)
        settings.add_to(log)
        least = CLEAR if not self.marks else CLEAR_OF_PROGRAM
        candidates = [one for one in found if len(one.records) >= least]
        if self.series:
            named = self.series.lower()
            candidates = [one for one in candidates if one.is_named(named)]
        if self.marks or (log.ranks or 1) == 1:  # else the rates may be those of one rank
            _state_amounts(candidates, log)
        if self.marks:
            for one in candidates:
                one.counts_steps = not self.vocabulary.counts_samples
        chosen = _main_series(candidates, log)
        for series in chosen:
            _add_series(series, log)
        if chosen:
            self._add_quantities(chosen, log)
        if shown.steps and not log.contradictions:
            log = _joined(log, shown)
            settings.add_to(log)
        read = log.build()
        if read.steps and not read.ranks:
            log.warn("the log does not state the number of processes: set -j if it is not 1")
        return replace(read, warnings=tuple(log.warnings))

    def _add_quantities(self, ranks: list[Series], log: LogBuilder) -> None:
        """Add what the lines of the first rank state beside the step time."""
        series, workers = ranks[0], len(ranks) if self.vocabulary.own_rates else 1
        if self.vocabulary.counts_samples:
            _count_steps(log, series)
        set_batch(series, log)
        add_rates(series, log, workers, is_known=bool(self.marks))
        add_input_wait(series, log)
        add_losses(series, log)


def _state_amounts(found: list[Series], log: LogBuilder) -> None:
    """State samples and tokens per step, where the settings of a known program have them."""
    batch = log.global_batch
    tokens = batch * log.sequence_length if batch and log.sequence_length else None
    stated = log.facts.get("tokens_per_step")
    if tokens is None and isinstance(stated, float):
        tokens = stated
        if log.sequence_length and batch is None:
            log.global_batch = stated / log.sequence_length
    for series in found:
        for kind, amount in (
            (FieldKind.SAMPLE_RATE, batch),
            (FieldKind.TOKEN_RATE, tokens),
            (FieldKind.DEVICE_TOKEN_RATE, tokens / log.ranks if tokens and log.ranks else None),
        ):
            if amount:
                series.amounts[kind] = amount


def _count_steps(log: LogBuilder, series: Series) -> None:
    """Convert counts of samples to counts of steps: the first line of an epoch is one step."""
    batch = series.records[0].step
    log.steps = [
        replace(one, index=round(one.index / batch), count=max(1, round(one.count / batch)))
        for one in log.steps
    ]
    log.global_batch = log.global_batch or float(batch)
    if any(one.step % batch for one in series.records):
        log.contradict(
            f"samples are not multiples of the {batch:,} in the first line: the log starts in the "
            "middle of an epoch"
        )


def _observed(
    lines: Iterable[LogLine], bars: Bars, settings: JobSettings, logs: tuple[LogBuilder, LogBuilder]
) -> Iterator[LogLine]:
    """The lines, after bars, settings and prefixes of ranks were taken from them."""
    rules = bars.rules()
    for line in lines:
        for log in logs:
            log.count_prefix(line)
        for rule in rules:
            if rule.needle in line.text:
                match = rule.pattern.search(line.text)
                if match is not None:
                    rule.apply(match, line)
                    break
        else:
            settings.take(line.text)
        yield line


def _joined(log: LogBuilder, shown: LogBuilder) -> LogBuilder:
    """Step lines confirmed by the progress bar, or the bar alone if no line has a time."""
    if not log.steps:
        shown.warnings = [*shown.warnings, *log.warnings]
        return shown
    lines, bar = log.mean_step_seconds(), shown.mean_step_seconds()
    if lines and bar and not agree(lines, bar):
        log.contradict(
            f"'{log.facts['inferred_from']}' gives {lines:.4g} s per step, "
            f"the progress bar {bar:.4g} s"
        )
    return log


def _main_series(found: list[Series], log: LogBuilder) -> list[Series]:
    """The training series of each rank: lines with a loss, else the only series.

    Several series are one if the step times of all of them agree.
    """
    with_loss = [one for one in found if one.has_loss] or found
    timed = {
        one.counter: (one.counts_epochs, estimates[0])
        for one in reversed(with_loss)
        if (estimates := [each for each in step_estimates(one) if each.is_certain])
    }
    if not all(is_epoch for is_epoch, _ in timed.values()):
        timed = {name: one for name, one in timed.items() if not one[0]}
    counters = list(reversed(timed)) or [one.counter for one in with_loss if not one.counts_epochs]
    estimates = [one for _, one in timed.values()]
    if len(set(counters)) > 1 and not (
        estimates and all(agrees(one, estimates[0]) for one in estimates)
    ):
        names = ", ".join(f"'{one.name}'" for one in with_loss[:3])
        log.warn(f"several series may be training, choose one with --series: {names}")
        return []
    return [one for one in with_loss if one.counter == next(iter(counters), None)]


def _add_series(series: Series, log: LogBuilder) -> None:
    estimate = _agreed(series, log)
    if estimate is None:
        return
    usual, base, last = estimate.usual, 0, 0
    for index, (step, count, seconds) in enumerate(estimate.times):
        # Counters restart with each epoch: steps are numbered through.
        base, last = base + (last if step <= last else 0), step
        # The first record includes compilation and allocation.
        slow = index == 0 and len(estimate.times) > 1 and seconds > usual
        # Asynchronous programs (JAX) print the time of their launch for the next ones.
        quick = index < FIRST_RECORDS and seconds < usual / PAUSE
        log.step(base + step, seconds, count, series.rank, warm_up=slow or quick)
    log.drop_pauses()
    log.facts["inferred_from"] = estimate.source
    agreeing = [
        one.source
        for one in step_estimates(series)
        if one.source != estimate.source and agrees(one, estimate)
    ]
    if agreeing:
        log.facts["confirmed_by"] = ", ".join(agreeing[:3])


def _agreed(series: Series, log: LogBuilder) -> StepEstimate | None:
    """The estimate to use; None, with a warning, if estimates disagree or none is certain."""
    if (counter := series.other_counter) is not None:
        log.warn(f"'{series.counter}' and '{counter}' advance differently: unclear which are steps")
        return None
    estimates = step_estimates(series)
    printed = [one for one in estimates if one.is_certain and one.source != STAMPS]
    stamps = next((one for one in estimates if one.source == STAMPS), None)
    for one in printed:
        for other in printed:
            if not agrees(one, other):
                log.contradict(
                    f"'{one.source}' gives {one.seconds:.4g} s per step, "
                    f"'{other.source}' {other.seconds:.4g} s"
                )
                return None
    if printed:
        estimate = min(printed, key=lambda one: one.rounding)
        if stamps is not None and stamps.is_certain and not _fits(estimate, stamps, log):
            return None
        return _fine(estimate, log)
    unclear = [one for one in estimates if not one.is_certain and one is not stamps]
    if stamps is not None:
        confirmed = next((one for one in unclear if agrees(one, stamps)), None)
        if confirmed is not None:
            return confirmed
        if stamps.is_certain and len(series.records) >= CLEAR_STAMPS:
            return _fine(stamps, log)
    if unclear:
        left = time_left(series)
        near = [one for one in unclear if left and agree(one.seconds, left, LEFT_WITHIN * left)]
        if len(near) == 1:
            return near[0]
        log.warn(
            f"unclear whether '{unclear[0].source}' is the time of one step or of all steps since "
            "the last line, and its unit: the log has neither time stamps nor rates that decide it"
        )
    return None


def _fits(estimate: StepEstimate, stamps: StepEstimate, log: LogBuilder) -> bool:
    """Whether printed step times fit the time between lines, which may include pauses."""
    if agrees(estimate, stamps):
        return True
    shorter = stamps.seconds * (1 + stamps.rounding) < estimate.seconds * (1 - estimate.rounding)
    if shorter or stamps.seconds > PAUSES * estimate.seconds:
        log.contradict(
            f"'{estimate.source}' gives {estimate.seconds:.4g} s per step, but lines are "
            f"{stamps.seconds:.4g} s per step apart"
            + ("" if shorter else ": it may not cover the whole step")
        )
        return False
    return True


def _fine(estimate: StepEstimate, log: LogBuilder) -> StepEstimate | None:
    """The estimate itself; None, with a warning, if it is printed with too few digits."""
    if estimate.rounding <= COARSE:
        return estimate
    log.warn(
        f"'{estimate.source}' has too few digits: rounding error {100 * estimate.rounding:.0f} %"
    )
    return None


READER = InferringReader()
"""Infer step times from the log of any program, without a reader written for it."""
