"""Finds the reader for a log: by name, or by looking at the file."""

from collections.abc import Iterator
from functools import cache
from importlib import import_module
from itertools import islice
from pathlib import Path
from typing import Any

from paceline.errors import InputError
from paceline.measurement.readers.event_files import is_event_file, read_event_file
from paceline.measurement.readers.lines import read_lines
from paceline.measurement.readers.parsed_log import ParsedLog
from paceline.measurement.readers.reader import LogReader
from paceline.naming import look_up
from paceline.plugins import PluginKind, with_plugins

SNIFFED_LINES = 4000
SNIFFED_WINDOWS = 50
SURE_ENOUGH = 0.5

_MODULES = (
    "caffe",
    "caffe_mpi",
    "cntk",
    "cntk_profiler",
    "deepspeed",
    "dllogger_text",
    "hf_trainer",
    "horovod_benchmark",
    "lbann",
    "mlperf",
    "nccl_tests",
    "osu",
    "pydtnn",
    "singa",
    "tarantella",
    "tf_cnn_benchmarks",
    "torchtitan",
)
"""Modules of this package with one reader each."""
_TABLES = ("step_logs", "vision_logs", "recipe_logs", "metric_logs", "progress_bars")
"""Modules with several readers; bars last, since other programs show them too."""


@cache
def readers() -> dict[str, LogReader]:
    """Every reader by name: ours, then those that installed packages register."""
    found: list[LogReader] = [_module(name).READER for name in _MODULES]
    found += [reader for name in _TABLES for reader in _module(name).READERS]
    ours = {reader.name: reader for reader in found}
    return with_plugins(PluginKind.READER, ours, LogReader)


def _module(name: str) -> Any:
    return import_module(f"{__package__}.{name}")


def reader_named(name: str) -> LogReader:
    """The reader called ``name``; an unknown name suggests the nearest ones."""
    return look_up("log reader", name, readers(), "known: " + ", ".join(sorted(readers())))


def sniff_log(path: Path) -> LogReader | None:
    """The reader that knows the file best; None when none is sure.

    Windows of the file are tried in turn, since a job script may print a lot before training.
    """
    best: tuple[float, LogReader] | None = None
    for head in _windows(path):
        for reader in readers().values():
            confidence = reader.sniff(head)
            if best is None or confidence > best[0]:
                best = (confidence, reader)
        if best is not None and best[0] >= SURE_ENOUGH:
            return best[1]
    return None


def read_log(path: Path, program: str | None = None) -> ParsedLog:
    """What a program's log tells; the program is recognised unless it is named."""
    if program is None and is_event_file(path):
        return read_event_file(path)
    reader = reader_named(program) if program else sniff_log(path)
    if reader is None:
        raise InputError(
            f"{path} is no log that Paceline recognises",
            "name the program with --program: " + ", ".join(sorted(readers())),
        )
    return reader.read(read_lines(path))


def _windows(path: Path) -> Iterator[str]:
    lines = (line.text for line in read_lines(path))
    for _ in range(SNIFFED_WINDOWS):
        window = list(islice(lines, SNIFFED_LINES))
        if not window:
            return
        yield "\n".join(window)
