"""Metrics as JSON lines: W&B history, mmcv, mmengine, detectron2, LLaMA-Factory."""

import json

from paceline.importers.logs.parsing.log_lines import LogLine
from paceline.importers.logs.parsing.log_reader import ProgramReader
from paceline.importers.logs.parsing.metric_parser import MetricParser, plain_numbers, starts_with


class JsonLinesParser(MetricParser):
    """State of one log with a JSON object per line (DLLogger: after ``DLLL``)."""

    program = "metrics-json"

    def take(self, line: LogLine) -> bool:
        """Read one row; False if the line is not a JSON object."""
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
            self.rows.add(_named(plain_numbers(row)))
        return True


def _named(row: dict[str, float]) -> dict[str, float]:
    """Rename ``time`` of mmcv, mmengine and detectron2 rows to ``step_time``.

    Evaluation rows have ``time`` and ``data_time`` too, but neither loss nor learning rate.
    """
    if "data_time" not in row or "time" not in row:
        return row
    if not any(name == "lr" or "loss" in name for name in row):
        return {}
    return {"step_time": row["time"], **{n: v for n, v in row.items() if n != "time"}}


READER = ProgramReader(
    "metrics-json",
    "JSON lines: W&B history, mmcv, mmengine, detectron2, LLaMA-Factory",
    (),
    JsonLinesParser,
    starts_with(
        r"(?:\{[^\n]*\n){0,3}\{[^\n]*\"(?:_step|_runtime|_timestamp|current_steps|data_time)\""
        r"[^\n]*\}"
    ),
)
