"""Finding the reader: by name or by looking; test_plugins.py has those of other packages."""

import re
from pathlib import Path

import pytest

from paceline.errors import InputError, UnknownNameError
from paceline.importers import logs
from paceline.importers.logs import LogReader, ParsedLog, read_log, reader_named, readers
from paceline.importers.logs.parsing.log_registry import MODULES, readers_of
from paceline.importers.logs.parsing.program_tables import program_tables

NAMES = [
    "caffe",
    "caffe-mpi",
    "cntk",
    "cntk-profiler",
    "deepspeed",
    "dllogger-text",
    "hf-trainer",
    "horovod",
    "lbann",
    "mlperf",
    "nccl-tests",
    "osu",
    "pydtnn",
    "singa",
    "tarantella",
    "tf_cnn_benchmarks",
    "torchtitan",
    "megatron-lm",
    "nanotron",
    "nemo",
    "nemo-automodel",
    "fairseq-2019",
    "fairseq",
    "nanogpt",
    "mxnet",
    "tensorflow",
    "timm",
    "pytorch-imagenet",
    "mmengine",
    "mmcv",
    "detectron2",
    "semseg",
    "maskrcnn-benchmark",
    "paddle",
    "maxtext",
    "litgpt",
    "llm.c",
    "modded-nanogpt",
    "paddle-trainer",
    "openlm",
    "open-clip",
    "metric-logger",
    "swin",
    "hf-trainer-json",
    "metrics-csv",
    "metrics-json",
    "dllogger",
    "composer",
    "mlflow",
    *("olmo", "olmo-core", "mlx", "opennmt", "build-nanogpt", "nanochat", "internevo", "aws-fsdp"),
    *(
        "openvla",
        "lerobot",
        "verl",
        "torchtune",
        "lingua",
        "yolox",
        "ultralytics",
        "dsfd",
        "rsl-rl",
        "espnet",
        "cerebras",
    ),
    "tqdm",
    "training-bar",
    "inferred",
]


def test_names_and_order_of_readers():
    assert [reader.name for name in MODULES for reader in readers_of(name)] == NAMES


def test_modules_and_tables_are_named_after_their_programs():
    folder = {path.stem for path in Path(logs.__file__).parent.glob("*.py")}
    assert folder | program_tables() == {"__init__", "tensorboard", *MODULES}
    for module in MODULES:
        assert re.sub(r"\W", "_", readers_of(module)[0].name).removesuffix("_lm") == module


def test_readers_keep_the_contract():
    for name, reader in readers().items():
        assert isinstance(reader, LogReader)
        assert reader.name == name
        assert reader.title
        assert reader.sniff("") == 0.0
        assert reader.read(iter(())) == ParsedLog(reader.read(iter(())).program)


def test_a_misspelt_name_suggests_the_nearest():
    with pytest.raises(UnknownNameError, match="torchtitan"):
        reader_named("torchtitn")


def test_unknown_file_is_an_error(tmp_path: Path):
    path = tmp_path / "poem.txt"
    path.write_text("no figure\nanywhere\n" * 10)
    with pytest.raises(InputError, match="log format not recognised") as raised:
        read_log(path)
    assert "--program" in raised.value.hint


def test_named_program_reads_the_valid_part_of_an_unknown_file(tmp_path: Path):
    path = tmp_path / "poem.txt"
    path.write_text("no figure\nanywhere\n")
    log = read_log(path, "caffe")
    assert not log.steps and not log.throughput and not log.phases
    assert log.unread_lines == 2


def test_a_log_that_begins_late_is_recognised(tmp_path: Path):
    path = tmp_path / "job.out"
    path.write_text("Collecting packages ...\n" * 9000 + "Iter #0: 8.0 img/sec per CPU\n")
    assert read_log(path).program == "horovod"
