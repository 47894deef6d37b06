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
_BANNER = r"Total train batch size \(w\. parallel"
_HF_ROW = re.compile(r"(?:^|>> )\s*(\{'[\w/]+': .*\})\s*$")


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
            self.keep("", rf"{_BANNER}.*\) = ([\d,]+)", "global_batch", count),
            self.keep("", r"size per device = ([\d,]+)", "micro_batch", count),
            self.keep("", r"Total optimization steps = ([\d,]+)", "_planned", count),
            self.keep("", r"training from global step (\d+)", "_done_before", count),
            LineRule("{'", _HF_ROW, self._row),
        )

    def finish(self) -> None:
        """Use the progress bar if the final dictionary is missing (run terminated early)."""
        if self.rows.runtime is None:
            self._bars.add_to(self.log, self._planned)
        super().finish()

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
