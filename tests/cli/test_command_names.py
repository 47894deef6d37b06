"""Names of commands and options are an interface: tests/cli/commands.txt lists them."""

import sys

import pytest
from click.testing import CliRunner

from command_names import FILE, command_lines
from paceline.cli.main import COMMANDS, RENAMED, SECTIONS, cli, main


def test_commands_and_options_are_those_of_the_list():
    listed = FILE.read_text(encoding="utf-8").splitlines()
    assert command_lines() == listed, "intended? then run: python tools/command_names.py"


def test_every_command_has_one_section():
    names = [name for section in SECTIONS.values() for name in section]
    assert sorted(names) == sorted(COMMANDS)


@pytest.mark.parametrize("name", sorted(RENAMED))
def test_a_former_name_answers_with_the_present_one_in_one_line(name, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["paceline", name, "--json"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line == f"error: 'paceline {name}' is now: paceline {RENAMED[name]}"
    assert RENAMED[name].split()[0] in COMMANDS


def test_help_fits_80_columns_and_one_screen():
    text = CliRunner().invoke(cli, ["--help"], terminal_width=80).output
    assert max(map(len, text.splitlines())) <= 80
    assert len(text.splitlines()) <= 48
