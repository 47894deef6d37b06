"""Trainers and trackers that write rows of metrics as lines: dictionaries, JSON, CSV, tables."""

import csv
import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from paceline.measurement.readers.lines import LogLine
from paceline.measurement.readers.metrics import MetricRows, check_run_length
from paceline.measurement.readers.numbers import NUMBER, finite
from paceline.measurement.readers.reader import LineParser, LineRule, ProgramReader

LONGEST_DOCUMENT = 1 << 26


class MetricParser(LineParser):
    """Rows that lines hold; subclasses say how a line becomes rows."""

    def __init__(self) -> None:
        super().__init__()
        self.rows = MetricRows()

    def finish(self) -> None:
        """What all rows tell."""
        self.rows.tell(self.log)


class DocumentParser(MetricParser):
    """A JSON document: ``trainer_state.json``, ``train_results.json``, an export of MLflow."""

    program = "hf-trainer"

    def __init__(self) -> None:
        super().__init__()
        self._text: list[str] = []
        self._size = 0

    def take(self, line: LogLine) -> bool:
        """Keep the text; it is read when it is complete."""
        self._size += len(line.text)
        if self._size <= LONGEST_DOCUMENT:
            self._text.append(line.text)
        return True

    def finish(self) -> None:
        """Read the document, then tell."""
        if not self._text:
            return
        try:
            document = json.loads("\n".join(self._text))
        except (ValueError, RecursionError):
            self.log.unread_lines = self.log.lines
            self.log.warn("the file is no complete JSON document")
            return
        if isinstance(document, dict):
            self._use(document)
        super().finish()

    def _use(self, document: Mapping[str, Any]) -> None:
        history = document.get("log_history")
        rows = history if isinstance(history, list) else [document]
        for row in rows:
            if isinstance(row, dict):
                self.rows.add(_plain(row))
        summary = next(
            (r for r in reversed(rows) if isinstance(r, dict) and "train_runtime" in r), None
        )
        if summary is None:
            return
        self.log.finished = True
        told = _plain(summary)
        steps = told.get("step", _plain(document).get("global_step", 0.0))
        rate = told.get("train_steps_per_second", 0.0)
        if steps and rate:
            check_run_length(self.log, steps, told["train_runtime"], rate)


class CsvParser(MetricParser):
    """A table with a header: Lightning's ``metrics.csv``, exports of W&B and TensorBoard."""

    program = "metrics-csv"

    def __init__(self) -> None:
        super().__init__()
        self._header: list[str] = []

    def take(self, line: LogLine) -> bool:
        """The first line names the columns; empty cells say nothing."""
        try:
            cells = next(csv.reader([line.text]), [])
        except csv.Error:
            return False
        if not self._header:
            self._header = [_column(name) for name in cells]
            runs = sorted({name.rsplit(" - ", 1)[0] for name in cells if " - " in name})
            if len(runs) > 1 and len(set(self._header)) < len(self._header):
                self.log.contradict(
                    f"the table holds {len(runs)} runs ({', '.join(runs[:3])}): export one of them"
                )
            return True
        if len(cells) != len(self._header):
            return not cells
        values = {
            name: value
            for name, cell in zip(self._header, cells, strict=True)
            if cell and (value := finite(cell)) is not None
        }
        self.rows.add(values)
        return bool(values)


class JsonLinesParser(MetricParser):
    """A JSON object per line: history of W&B, DLLogger's ``DLLL {...}``."""

    program = "metrics-json"

    def take(self, line: LogLine) -> bool:
        """One row, or nothing that is one."""
        text = line.text.removeprefix("DLLL ").strip()
        if not text.startswith("{"):
            return not text
        try:
            row = json.loads(text)
        except (ValueError, RecursionError):
            return False
        if not isinstance(row, dict):
            return False
        data, step = row.get("data"), row.get("step")
        if isinstance(data, dict):
            last = step[-1] if isinstance(step, list) and step else step
            row = {**data, "step": last} if isinstance(last, int) else data
        if row.get("mode", "train") == "train":
            self.rows.add(_named(_plain(row)))
        return True


class ComposerParser(MetricParser):
    """Composer's console: a block of metrics for each ``[batch=10/4800]``."""

    program = "composer"
    ignored = re.compile(r".*")

    def __init__(self) -> None:
        super().__init__()
        self.rules = (
            LineRule("", re.compile(rf"^\s+(?:Train )?([\w./]+): ({NUMBER})\s*$"), self._metric),
        )

    def _metric(self, match: re.Match[str], line: LogLine) -> None:
        value = finite(match[2])
        if value is not None and match[1].startswith(("throughput/", "loss/train")):
            self.rows.add({match[1]: value})


class MlflowParser(MetricParser):
    """One of MLflow's metric files: time in milliseconds, value, step."""

    program = "mlflow"

    def __init__(self) -> None:
        super().__init__()
        self.rules = (LineRule("", re.compile(rf"^(\d{{12,14}}) ({NUMBER}) (\d+)$"), self._point),)

    def _point(self, match: re.Match[str], line: LogLine) -> None:
        self.rows.add({"_timestamp": int(match[1]) / 1e3, "step": float(match[3])})


def _named(row: dict[str, float]) -> dict[str, float]:
    """Rows of mmcv, mmengine and detectron2: ``time`` beside ``data_time`` is that of a step.

    Rows of evaluation have both too, but no loss and no learning rate.
    """
    if "data_time" not in row or "time" not in row:
        return row
    if not any(name == "lr" or "loss" in name for name in row):
        return {}
    return {"step_time": row["time"], **{n: v for n, v in row.items() if n != "time"}}


def _plain(row: Mapping[str, Any]) -> dict[str, float]:
    """The numbers of a row, by name; also a clock such as 1:02:03, in seconds."""
    clocks = {name: _clock(value) for name, value in row.items() if isinstance(value, str)}
    return {str(name): value for name, value in clocks.items() if value is not None} | {
        str(name): float(value)
        for name, value in row.items()
        if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e18
    }


def _clock(text: str) -> float | None:
    match = re.fullmatch(r"(?:(\d{1,4}) days?, )?(\d{1,4}):(\d\d):(\d\d)", text)
    if match is None:
        return None
    days, hours, minutes, seconds = (float(part or 0) for part in match.groups())
    return 86_400 * days + 3600 * hours + 60 * minutes + seconds


def _column(name: str) -> str:
    """The metric of a column; W&B's export puts the run's name before it."""
    return name.rsplit(" - ", 1)[-1].strip()


def _starts(pattern: str, confidence: float = 0.9) -> Callable[[str], float]:
    compiled = re.compile(pattern)

    def sniff(head: str) -> float:
        return confidence if compiled.match(head) else 0.0

    return sniff


_HEADER_CELL = r"\"?[A-Za-z_][\w|/. ()%-]{0,200}\"?"

READERS = (
    ProgramReader(
        "hf-trainer-json",
        "Hugging Face Trainer (trainer_state.json, train_results.json)",
        (('"train_runtime": ', 0.4), ('"log_history": ', 0.5), ('"train_samples_per_second"', 0.4)),
        DocumentParser,
    ),
    ProgramReader(
        "metrics-csv",
        "Lightning's CSV logger, CSV exports of W&B and TensorBoard",
        (),
        CsvParser,
        _starts(rf"(?=[^\n]*\b_?[sS]tep\b){_HEADER_CELL}(?:,{_HEADER_CELL})+\r?(?:\n|$)"),
    ),
    ProgramReader(
        "metrics-json",
        "JSON lines: W&B history, mmcv, mmengine, detectron2, LLaMA-Factory's trainer_log.jsonl",
        (),
        JsonLinesParser,
        _starts(
            r"(?:\{[^\n]*\n){0,3}\{[^\n]*\"(?:_step|_runtime|_timestamp|current_steps|data_time)\""
            r"[^\n]*\}"
        ),
    ),
    ProgramReader("dllogger", "NVIDIA DLLogger (JSON)", (("DLLL {", 1.0),), JsonLinesParser),
    ProgramReader(
        "composer",
        "MosaicML Composer",
        (("throughput/samples_per_sec", 0.6), ("[batch=", 0.3), ("time/batch", 0.2)),
        ComposerParser,
    ),
    ProgramReader(
        "mlflow", "MLflow metric file", (), MlflowParser, _starts(r"\d{12,14} \S+ \d+(?:\n|$)")
    ),
)
