"""Find the reader of a log by name or by content."""

from collections.abc import Iterator
from functools import cache
from importlib import import_module
from itertools import islice
from pathlib import Path
from typing import Any

from paceline.errors import InputError
from paceline.importers.logs.inferred import InferringReader
from paceline.importers.logs.parsing.log_lines import read_lines
from paceline.importers.logs.parsing.log_reader import LogReader
from paceline.importers.logs.parsing.parsed_log import ParsedLog
from paceline.importers.logs.parsing.program_tables import program_tables, reader_of_table
from paceline.importers.logs.tensorboard import is_event_file, read_event_file
from paceline.naming import look_up
from paceline.plugins import PluginKind, with_plugins

SNIFFED_LINES = 4000
SNIFFED_WINDOWS = 50
SURE_ENOUGH = 0.5

MODULES = (
    *("caffe", "caffe_mpi", "cntk", "cntk_profiler", "deepspeed", "dllogger_text", "hf_trainer"),
    *("horovod", "lbann", "mlperf", "nccl_tests", "osu", "pydtnn", "singa", "tarantella"),
    *("tf_cnn_benchmarks", "torchtitan", "megatron", "nanotron", "nemo", "nemo_automodel"),
    *(
        "fairseq_2019",
        "fairseq",
        "nanogpt",
        "mxnet",
        "tensorflow",
        "timm",
        "pytorch_imagenet",
        "mmengine",
        "mmcv",
    ),
    *("detectron2", "semseg", "maskrcnn_benchmark", "paddle", "maxtext", "litgpt", "llm_c"),
    *(
        "modded_nanogpt",
        "paddle_trainer",
        "openlm",
        "open_clip",
        "metric_logger",
        "swin",
        "hf_trainer_json",
    ),
    *("metrics_csv", "metrics_json", "dllogger", "composer", "mlflow"),
    *("olmo", "olmo_core", "mlx", "opennmt", "build_nanogpt", "nanochat", "internevo", "aws_fsdp"),
    *("openvla", "lerobot", "verl", "torchtune", "lingua", "yolox", "ultralytics", "dsfd"),
    *("rsl_rl", "espnet", "cerebras"),
    *("tqdm", "inferred"),
)
"""Modules of `paceline.importers.logs` and tables of ``data/logs``, named after their programs.

The first of two equally confident readers wins, so the order matters. Bars come last, since
programs with a log of their own show them too.
"""


@cache
def readers() -> dict[str, LogReader]:
    """Every reader by name: ours, then those that installed packages register."""
    ours = {reader.name: reader for name in MODULES for reader in readers_of(name)}
    return with_plugins(PluginKind.READER, ours, LogReader)


def readers_of(module_name: str) -> tuple[LogReader, ...]:
    """The readers of one table or module: its ``READERS``, or its only ``READER``."""
    if module_name in program_tables():
        return (reader_of_table(module_name),)
    module: Any = import_module(f"paceline.importers.logs.{module_name}")
    return getattr(module, "READERS", None) or (module.READER,)


def reader_named(name: str) -> LogReader:
    """The reader called ``name``; an unknown name suggests the nearest ones."""
    return look_up("log reader", name, readers(), "known: " + ", ".join(sorted(readers())))


def sniff_log(path: Path) -> LogReader | None:
    """The reader with the highest confidence; None if all are below `SURE_ENOUGH`.

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


def read_log(path: Path, program: str | None = None, series: str = "") -> ParsedLog:
    """Read a log; the program is recognised by content unless ``program`` names it.

    ``series`` names the training series of a log of an unknown program that has several.
    """
    if program is None and is_event_file(path):
        return read_event_file(path)
    reader = reader_named(program) if program else None if series else sniff_log(path)
    read = None if reader is None else reader.read(read_lines(path))
    if read is not None and (program or _has_times(read)):
        return read
    # Programs change their lines: a log without a time that its reader knows is read by inference.
    inferred = InferringReader(series=series).read(read_lines(path))
    if _has_times(inferred):
        return inferred
    if read is not None:
        return read
    reason = f": {inferred.warnings[0]}" if inferred.warnings else ""
    raise InputError(
        f"{path}: log format not recognised{reason}",
        "set --program to one of: " + ", ".join(sorted(readers())),
    )


def _has_times(log: ParsedLog) -> bool:
    """Whether a reader found anything to import: times, rates, collectives or a contradiction."""
    figures = (log.steps, log.throughput, log.collectives, log.operations, log.layers)
    return any(figures) or bool(log.contradictions)


def _windows(path: Path) -> Iterator[str]:
    lines = (line.text for line in read_lines(path))
    for _ in range(SNIFFED_WINDOWS):
        window = list(islice(lines, SNIFFED_LINES))
        if not window:
            return
        yield "\n".join(window)
