"""Finding the reader: by name or by looking; test_plugins.py has those of other packages."""

from pathlib import Path

import pytest

from paceline.errors import InputError, UnknownNameError
from paceline.measurement.readers import (
    LogReader,
    ParsedLog,
    read_log,
    reader_named,
    readers,
)


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


def test_a_foreign_file_is_said_to_be_foreign(tmp_path: Path):
    path = tmp_path / "poem.txt"
    path.write_text("no figure\nanywhere\n" * 10)
    with pytest.raises(InputError, match="no log that Paceline recognises") as raised:
        read_log(path)
    assert "--program" in raised.value.hint


def test_a_named_program_reads_what_it_can_of_a_foreign_file(tmp_path: Path):
    path = tmp_path / "poem.txt"
    path.write_text("no figure\nanywhere\n")
    log = read_log(path, "caffe")
    assert not log.steps and not log.throughput and not log.phases
    assert log.unread_lines == 2


def test_a_log_that_begins_late_is_recognised(tmp_path: Path):
    path = tmp_path / "job.out"
    path.write_text("Collecting packages ...\n" * 9000 + "Iter #0: 8.0 img/sec per CPU\n")
    assert read_log(path).program == "horovod"
