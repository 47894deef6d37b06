"""Files that a user names: regular ones are read, others refused without waiting."""

import os

import pytest

from paceline.errors import InputError
from paceline.importers.logs import read_log
from paceline.study.training_data import check_data
from paceline.user_files import opened
from paceline.validation.read_rows import read_tables
from paceline.workload.capture.user_model import load_user_model
from paceline.workload.zoo import zoo_registry as zoo


def test_a_pipe_is_refused_without_waiting_for_its_writer(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    os.mkfifo(tmp_path / "pipe.onnx")
    for read in (
        lambda: opened(pipe),
        lambda: read_log(pipe),
        lambda: read_tables([pipe]),
        lambda: load_user_model(f"{pipe}.onnx"),
        lambda: check_data(f"npz:{pipe}", zoo.build("fcn5")),
    ):
        with pytest.raises(InputError, match="it is a named pipe"):
            read()


def test_a_regular_file_is_read(tmp_path):
    path = tmp_path / "log"
    path.write_bytes(b"loss")
    with opened(path) as file:
        assert file.read() == b"loss"
