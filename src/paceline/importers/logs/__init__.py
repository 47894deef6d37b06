"""Readers of other programs' logs, chosen by name or by content."""

from paceline.importers.logs.parsing.log_lines import LogLine
from paceline.importers.logs.parsing.log_reader import (
    LineParser,
    LineRule,
    LogReader,
    ProgramReader,
)
from paceline.importers.logs.parsing.log_registry import read_log, reader_named, readers, sniff_log
from paceline.importers.logs.parsing.parsed_log import (
    OperationTime,
    ParsedLog,
    Rate,
    RateScope,
    RateUnit,
    StepRecord,
    TimedCollective,
)

__all__ = [
    "LineParser",
    "LineRule",
    "LogLine",
    "LogReader",
    "OperationTime",
    "ParsedLog",
    "ProgramReader",
    "Rate",
    "RateScope",
    "RateUnit",
    "StepRecord",
    "TimedCollective",
    "read_log",
    "reader_named",
    "readers",
    "sniff_log",
]
