"""Find the reader of a trace, and merge the files of several ranks."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from paceline.errors import InputError
from paceline.importers.logs.parsing.log_lines import read_chunks
from paceline.importers.logs.parsing.log_registry import read_log, sniff_log
from paceline.importers.traces.chakra import looks_like_chakra, read_chakra
from paceline.importers.traces.chrome_trace import read_chrome_trace
from paceline.importers.traces.cntk_profile import read_cntk_profile
from paceline.importers.traces.horovod_timeline import read_horovod_timeline
from paceline.importers.traces.kineto import read_kineto
from paceline.importers.traces.layer_csv import looks_like_layer_csv, read_layer_csv
from paceline.importers.traces.lbann_timeline import lbann_rank, read_lbann_timeline
from paceline.importers.traces.mxnet_profile import read_mxnet_profile
from paceline.importers.traces.operation_table import looks_like_operations, read_operations
from paceline.importers.traces.otf2_archive import read_otf2
from paceline.importers.traces.parsing.merge_ranks import merge_ranks
from paceline.importers.traces.parsing.parsed_trace import ParsedTrace
from paceline.importers.traces.parsing.spans import measured_step
from paceline.importers.traces.pydtnn_trace import HEADER as PYDTNN_HEADER
from paceline.importers.traces.pydtnn_trace import pydtnn_layers, read_pydtnn_trace
from paceline.naming import look_up
from paceline.step.layer_trace import LayerTrace

HEAD_BYTES = 1 << 16

_RANK_IN_NAME = re.compile(
    r"(?:rank|worker)[-_.]?(\d{1,6})|[._-](\d{1,6})(?:\.pt\.trace)?\.(?:json|et)"
)


@dataclass(frozen=True)
class TraceFormat:
    """A trace format: ``matches`` checks the first bytes, ``read`` reads the file of one rank."""

    name: str
    title: str
    matches: Callable[[str, Path], bool]
    read: Callable[[Path, int], ParsedTrace]


def _read_kineto_rank(path: Path, rank: int) -> ParsedTrace:
    timeline = read_kineto(path)
    own = rank if timeline.rank is None else timeline.rank
    steps = tuple(
        measured_step({own: spans}, f"step {number}", begins={own: begin})
        for number, begin, spans in timeline.steps
        if spans
    )
    facts: dict[str, str | float] = {"backend": timeline.backend} if timeline.backend else {}
    return ParsedTrace(
        "kineto", steps, timeline.world_size, timeline.unread, tuple(timeline.warnings), facts
    )


FORMATS = (
    TraceFormat(
        "chakra",
        "Chakra execution trace",
        lambda _, path: path.suffix == ".et" and path.is_file() and looks_like_chakra(_start(path)),
        read_chakra,
    ),
    TraceFormat(
        "operations",
        "operation table, one row per operation",
        lambda head, _: looks_like_operations(head),
        lambda path, _: read_operations(path),
    ),
    TraceFormat(
        "pydtnn",
        "PyDTNN trace CSV",
        lambda head, _: head.startswith(PYDTNN_HEADER),
        read_pydtnn_trace,
    ),
    TraceFormat(
        "lbann",
        "LBANN timeline",
        lambda head, path: (
            lbann_rank(path) is not None or re.match(r"(?:fp|bp|opt)-\S+:[\d.]+:", head) is not None
        ),
        read_lbann_timeline,
    ),
    TraceFormat(
        "otf2",
        "OTF2 archive",
        lambda _, path: path.suffix == ".otf2" or (path / "traces.otf2").is_file(),
        read_otf2,
    ),
    TraceFormat(
        "horovod",
        "Horovod timeline",
        lambda head, _: (
            head.lstrip().startswith("[")
            and ("NEGOTIATE_" in head or "start_time_since_epoch_in_micros" in head)
        ),
        lambda path, _: read_horovod_timeline(path),
    ),
    TraceFormat(
        "cntk",
        "CNTK profiler, detailed",
        lambda head, _: head.startswith("EventDescription,ThreadId") or "Get Minibatch" in head,
        read_cntk_profile,
    ),
    TraceFormat(
        "kineto",
        "PyTorch profiler (Kineto)",
        lambda head, _: '"schemaVersion"' in head and '"deviceProperties"' in head,
        _read_kineto_rank,
    ),
    TraceFormat(
        "mxnet",
        "MXNet profiler",
        lambda head, _: (
            '"traceEvents"' in head and ('"cat": "operator"' in head or '"cat":"operator"' in head)
        ),
        read_mxnet_profile,
    ),
    TraceFormat(
        "chrome",
        "other Chrome traces whose names contain a phase",
        lambda head, _: (
            '"traceEvents"' in head or re.match(r"\s*\[\s*\{[^{}]*\"ph\"", head) is not None
        ),
        read_chrome_trace,
    ),
)


def trace_formats() -> dict[str, TraceFormat]:
    return {trace_format.name: trace_format for trace_format in FORMATS}


def _names() -> str:
    return ", ".join(sorted(trace_formats()))


def trace_format(path: Path, program: str | None = None) -> TraceFormat | None:
    """The format of a file; None if it is not a known trace."""
    if program is not None:
        return look_up("trace format", program, trace_formats(), f"known: {_names()}")
    head = "" if path.is_dir() else _head(path)
    return next(
        (trace_format for trace_format in FORMATS if trace_format.matches(head, path)), None
    )


def read_trace(paths: Sequence[Path], program: str | None = None) -> ParsedTrace:
    """Read one trace, stored in one file or in one file per rank.

    A directory stands for the LBANN timelines, Kineto files or OTF2 archive in it.
    """
    files = [file for path in paths for file in _expanded(path)]
    if not files:
        raise InputError("no trace file found", "pass a trace file or a directory of trace files")
    chosen = trace_format(files[0], program)
    if chosen is None:
        known = _names()
        raise InputError(
            f"{files[0]}: trace format not recognised", f"set --program to one of: {known}"
        )
    return merge_ranks(
        [chosen.read(file, _rank(file, position)) for position, file in enumerate(files)]
    )


def read_layer_trace(path: Path) -> LayerTrace:
    """Read layer times from a table, a PyDTNN trace, or the log of ``caffe time``."""
    head = _head(path)
    if head.startswith(PYDTNN_HEADER):
        return pydtnn_layers(path)
    if not looks_like_layer_csv(head):
        reader = sniff_log(path)
        log = read_log(path, reader.name) if reader is not None else None
        if log is not None and log.layers:
            return LayerTrace(
                log.layers,
                log.model,
                batch_per_worker=log.batch_per_rank,
                warnings=log.warnings,
            )
    return read_layer_csv(path)


def is_layer_trace(path: Path) -> bool:
    """Whether a file is a table of layers with their times."""
    return looks_like_layer_csv(_head(path))


def _expanded(path: Path) -> list[Path]:
    if not path.is_dir() or (path / "traces.otf2").is_file():
        return [path]
    return sorted(
        (file for file in path.iterdir() if file.suffix in (".txt", ".json", ".csv", ".gz", ".et")),
        key=lambda file: (_rank(file, 0), file.name),
    )


def _rank(path: Path, position: int) -> int:
    """The rank in the file name, else the position among the files."""
    known = lbann_rank(path)
    if known is not None:
        return known
    match = _RANK_IN_NAME.search(path.name)
    return int(match[1] or match[2]) if match else position


def _head(path: Path) -> str:
    return _start(path).decode("utf-8", errors="replace")


def _start(path: Path) -> bytes:
    return next(read_chunks(path), b"")[:HEAD_BYTES]
