"""Readers of the logs that other programs write, found by name or by looking at the file."""

from paceline.measurement.readers.parsed_log import (
    OperationTime,
    ParsedLog,
    Rate,
    RateScope,
    RateUnit,
    StepRecord,
    TimedCollective,
)
from paceline.measurement.readers.reader import LogReader
from paceline.measurement.readers.registry import read_log, reader_named, readers, sniff_log

__all__ = [
    "LogReader",
    "OperationTime",
    "ParsedLog",
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
