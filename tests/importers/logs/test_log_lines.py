"""Lines of a log with the prefixes and control characters of launchers and terminals."""

import gzip
from pathlib import Path

import pytest

from paceline.errors import InputError
from paceline.importers.logs.parsing.log_lines import LONGEST_LINE, LogLine, read_lines, split_rank


@pytest.mark.parametrize(
    ("text", "rank", "rest"),
    [
        ("[1,3]<stdout>:Iter #0", 3, "Iter #0"),
        ("[2]<stderr>:Iter #0", 2, "Iter #0"),
        ("[rank5]:[titan] step", 5, "[titan] step"),
        ("[default1]:[rank9]:step", 9, "step"),
        ("MPI Rank 2: 12/15/2016 08:28:16: Epoch", 2, "12/15/2016 08:28:16: Epoch"),
        ("[0] Iteration 3", 0, "Iteration 3"),
        ("[4] Epoch : stats formated", None, "[4] Epoch : stats formated"),
        ("\x1b[31mstep:  1  \x1b[0m", None, "step:  1"),
        ("08:28:16: not a rank", None, "08:28:16: not a rank"),
    ],
)
def test_rank_is_parsed_from_the_prefix(text: str, rank: int | None, rest: str):
    assert split_rank(text) == LogLine(rest, rank)


def test_a_task_of_srun_is_no_rank_unless_the_line_names_one():
    assert split_rank("12: :::MLLOG {}") == LogLine(":::MLLOG {}", 12, is_task=True)
    assert split_rank("1: [rank9]:step") == LogLine("step", 9)


def texts(path: Path) -> list[str]:
    return [line.text for line in read_lines(path)]


def test_states_of_a_progress_bar_are_lines(tmp_path: Path):
    path = tmp_path / "log"
    path.write_bytes(b"10%\r20%\x08\x08\x0830%\ndone")
    assert texts(path) == ["10%", "20%", "30%", "done"]


def test_a_long_line_is_cut_and_the_next_one_whole(tmp_path: Path):
    path = tmp_path / "log"
    path.write_bytes(b"x" * 3_000_000 + b"\nafter\n")
    first, second = texts(path)
    assert (len(first), second) == (LONGEST_LINE, "after")


def test_windows_consoles_write_utf_16(tmp_path: Path):
    path = tmp_path / "log"
    path.write_text("Epoch[ 1 of 2]\nzwei", encoding="utf-16")
    assert texts(path) == ["Epoch[ 1 of 2]", "zwei"]


def test_truncated_archive_gives_its_valid_part(tmp_path: Path):
    path = tmp_path / "log.gz"
    whole = gzip.compress(b"".join(b"line %d\n" % n for n in range(20_000)))
    path.write_bytes(whole[: len(whole) // 2])
    found = texts(path)
    assert found[:2] == ["line 0", "line 1"]
    assert 1000 < len(found) < 20_000


def test_a_missing_file_is_an_error_for_the_user(tmp_path: Path):
    with pytest.raises(InputError, match="cannot read"):
        texts(tmp_path / "none")
    with pytest.raises(InputError, match="cannot read"):
        texts(tmp_path)
