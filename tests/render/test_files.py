import os
import stat
from pathlib import Path

import pytest

from paceline.errors import PacelineError
from paceline.render.files import write_text


def names_in(directory):
    return sorted(path.name for path in directory.iterdir())


def test_a_file_is_written_with_its_directories(tmp_path):
    path = write_text(tmp_path / "new" / "report.html", "größer")
    assert path.read_text(encoding="utf-8") == "größer"
    assert names_in(path.parent) == ["report.html"]


def test_it_replaces_the_old_file_and_has_usual_permissions(tmp_path):
    path = tmp_path / "report.html"
    path.write_text("old")
    write_text(path, "new")
    assert path.read_text() == "new"
    plain = tmp_path / "plain"
    plain.touch()
    assert stat.S_IMODE(path.stat().st_mode) == stat.S_IMODE(plain.stat().st_mode)


@pytest.mark.parametrize("path", ["taken/report.html", "directory", "a" * 300])
def test_an_unwritable_path_is_an_error_with_a_hint(tmp_path, path):
    (tmp_path / "taken").write_text("a file, not a directory")
    (tmp_path / "directory").mkdir()
    before = names_in(tmp_path)
    with pytest.raises(PacelineError, match="cannot write") as caught:
        write_text(tmp_path / path, "text")
    assert caught.value.hint
    assert names_in(tmp_path) == before


def test_a_failed_write_leaves_only_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "report.html"
    path.write_text("old")

    def full_disk(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full_disk)
    with pytest.raises(PacelineError, match="No space left on device"):
        write_text(path, "new")
    assert path.read_text() == "old"
    assert names_in(tmp_path) == ["report.html"]


def test_an_unwritable_directory(tmp_path):
    if os.geteuid() == 0:
        target = Path("/proc/report.html")
    else:
        tmp_path.chmod(0o500)
        target = tmp_path / "report.html"
    with pytest.raises(PacelineError, match="cannot write"):
        write_text(target, "text")
