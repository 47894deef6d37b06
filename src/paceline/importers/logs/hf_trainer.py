"""Hugging Face ``Trainer``'s console: banner, dictionaries, progress bar, final dictionary."""

import re
from collections.abc import Iterator

from paceline.importers.logs.parsing.line_clock import stamp
from paceline.importers.logs.parsing.log_lines import LogLine
from paceline.importers.logs.parsing.log_reader import LineRule, ProgramReader
from paceline.importers.logs.parsing.metric_parser import MetricParser
from paceline.importers.logs.parsing.metric_rows import check_run_length
from paceline.importers.logs.parsing.printed_numbers import NUMBER, count, finite
from paceline.importers.logs.parsing.progress_bars import Bars

_PAIR = re.compile(rf"['\"]([\w./| -]{{1,80}})['\"]: ['\"]?({NUMBER})['\"]?(?=[,}}])")
_BATCH = re.compile(r"Total train batch size \(w\. parallel.*\) = ([\d,]+)")
_EACH = re.compile(r"Instantaneous batch size per device = ([\d,]+)")
_STEPS = re.compile(r"Total optimization steps = ([\d,]+)")
_HF_ROW = re.compile(r"(?:^|>> )\s*(\{'[\w/]+': .*\})\s*$")
_RESUMED = re.compile(r"Continuing training from global step (\d+)")


class HuggingFaceParser(MetricParser):
    """State of one log: banner, a dictionary per logging step, a final dictionary."""

    program = "hf-trainer"
    ignored = re.compile(r".*")

    def __init__(self) -> None:
        super().__init__()
        self._planned: int | None = None
        self._done_before = 0
        self._bars = Bars()
        self.rules = (
            *self._bars.rules(),
            LineRule("", _BATCH, self._batch),
            LineRule("", _EACH, self._each),
            LineRule("", _STEPS, self._steps),
            LineRule("", _RESUMED, self._resumed),
            LineRule("{'", _HF_ROW, self._row),
        )

    def finish(self) -> None:
        """Use the progress bar if the final dictionary is missing (run terminated early)."""
        if self.rows.runtime is None:
            self._bars.add_to(self.log, self._planned)
        super().finish()

    def _batch(self, match: re.Match[str], line: LogLine) -> None:
        self.log.global_batch = float(count(match[1]) or 0) or None

    def _each(self, match: re.Match[str], line: LogLine) -> None:
        self.log.facts["micro_batch"] = float(count(match[1]) or 0)

    def _steps(self, match: re.Match[str], line: LogLine) -> None:
        self._planned = count(match[1])

    def _resumed(self, match: re.Match[str], line: LogLine) -> None:
        self._done_before = count(match[1]) or 0

    def _row(self, match: re.Match[str], line: LogLine) -> None:
        row = dict(_numbers(match[1]))
        clock = stamp(line.text) if "step" in row else None
        if "train_runtime" in row:
            self.log.finished = True
            row = self._summary(row)
        self.rows.add(row if clock is None else row | {"_timestamp": clock})

    def _summary(self, row: dict[str, float]) -> dict[str, float]:
        """The final dictionary; after a resume its rates count all steps, its time does not."""
        steps, rate = self._planned, row.get("train_steps_per_second")
        if steps and rate:
            check_run_length(self.log, steps, row["train_runtime"], rate)
        if not steps or not 0 < self._done_before < steps:
            # The planned number of steps is more exact than the printed rate.
            return row | {"step": float(steps)} if steps else row
        self.log.warn(
            f"resumed after {self._done_before:,} steps: the printed rates include them and are "
            "not used"
        )
        done = float(steps - self._done_before)
        return {"step": done, "train_runtime": row["train_runtime"]}


def _numbers(text: str) -> Iterator[tuple[str, float]]:
    for name, digits in _PAIR.findall(text):
        value = finite(digits)
        if value is not None:
            yield name, value


READER = ProgramReader(
    "hf-trainer",
    "Hugging Face Trainer (console)",
    (("'train_runtime': ", 0.7), ("***** Running training *****", 0.6)),
    HuggingFaceParser,
)
