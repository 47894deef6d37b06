"""Finding the reader: by name, by looking, from other packages."""

from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from paceline.errors import InputError, PacelineError, UnknownNameError
from paceline.measurement.readers import (
    LogReader,
    ParsedLog,
    read_log,
    reader_named,
    readers,
    registry,
)
from paceline.measurement.readers.reader import LineParser, ProgramReader


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
    assert log.is_empty
    assert log.unread_lines == 2


def test_a_log_that_begins_late_is_recognised(tmp_path: Path):
    path = tmp_path / "job.out"
    path.write_text("Collecting packages ...\n" * 9000 + "Iter #0: 8.0 img/sec per CPU\n")
    assert read_log(path).program == "horovod"


class _ForeignParser(LineParser):
    program = "other"


FOREIGN = ProgramReader("other", "Another program", (("OTHER", 1.0),), _ForeignParser)


@pytest.fixture
def _fresh_registry():
    registry.readers.cache_clear()
    yield
    registry.readers.cache_clear()


@pytest.mark.usefixtures("_fresh_registry")
def test_installed_packages_add_readers(monkeypatch: pytest.MonkeyPatch):
    point = EntryPoint("other", f"{__name__}:FOREIGN", registry.ENTRY_POINT_GROUP)
    monkeypatch.setattr(EntryPoint, "load", lambda _: FOREIGN)
    monkeypatch.setattr(registry, "entry_points", lambda group: [point])
    assert registry.reader_named("other") is FOREIGN


@pytest.mark.usefixtures("_fresh_registry")
def test_a_duplicate_reader_is_refused(monkeypatch: pytest.MonkeyPatch):
    point = EntryPoint("again", "somewhere:caffe", registry.ENTRY_POINT_GROUP)
    duplicate = ProgramReader("caffe", "Again", (), _ForeignParser)
    monkeypatch.setattr(EntryPoint, "load", lambda _: duplicate)
    monkeypatch.setattr(registry, "entry_points", lambda group: [point])
    with pytest.raises(PacelineError, match="again"):
        registry.readers()
