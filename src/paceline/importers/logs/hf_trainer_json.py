"""Hugging Face ``Trainer``: ``trainer_state.json`` and ``train_results.json``."""

import json
from collections.abc import Mapping
from typing import Any

from paceline.importers.logs.parsing.log_lines import LogLine
from paceline.importers.logs.parsing.log_reader import ProgramReader
from paceline.importers.logs.parsing.metric_parser import MetricParser, plain_numbers
from paceline.importers.logs.parsing.metric_rows import check_run_length

LONGEST_DOCUMENT = 1 << 26


class DocumentParser(MetricParser):
    """State of one JSON document."""

    program = "hf-trainer"

    def __init__(self) -> None:
        super().__init__()
        self._text: list[str] = []
        self._size = 0

    def take(self, line: LogLine) -> bool:
        """Collect the text; `finish` parses it."""
        self._size += len(line.text)
        if self._size <= LONGEST_DOCUMENT:
            self._text.append(line.text)
        return True

    def finish(self) -> None:
        if not self._text:
            return
        try:
            document = json.loads("\n".join(self._text))
        except (ValueError, RecursionError):
            self.log.unread_lines = self.log.lines
            self.log.warn("the file is not a complete JSON document")
            return
        if isinstance(document, dict):
            self._use(document)
        super().finish()

    def _use(self, document: Mapping[str, Any]) -> None:
        history = document.get("log_history")
        rows = history if isinstance(history, list) else [document]
        for row in rows:
            if isinstance(row, dict):
                self.rows.add(plain_numbers(row))
        summary = next(
            (r for r in reversed(rows) if isinstance(r, dict) and "train_runtime" in r), None
        )
        if summary is None:
            return
        self.log.finished = True
        row = plain_numbers(summary)
        steps = row.get("step", plain_numbers(document).get("global_step", 0.0))
        rate = row.get("train_steps_per_second", 0.0)
        if steps and rate:
            check_run_length(self.log, steps, row["train_runtime"], rate)


READER = ProgramReader(
    "hf-trainer-json",
    "Hugging Face Trainer (trainer_state.json, train_results.json)",
    (('"train_runtime": ', 0.4), ('"log_history": ', 0.5), ('"train_samples_per_second"', 0.4)),
    DocumentParser,
)
