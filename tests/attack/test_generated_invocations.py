"""Wrong values for every option of every command, generated from the command line itself.

Each ends with exit code 2, a message of one line and a hint, within `SECONDS`: nothing that is
clearly wrong is accepted. 'pytest -s --all' prints the table of docs/explanation/reliability.md.
"""

import os
import random
import signal
import socket
import sys
import time

import click
import pytest
from builders import a_launch, an_outcome

from attack.test_fuzzed_inputs import limited, peak_megabytes
from paceline.cli.knob_options import KnobType
from paceline.cli.main import cli, main
from paceline.store import Store

MEGABYTES = 1000
INTEGERS = ("1e400", "-1e400", "1_000", "\u0663", "x", "nan", "1.5", "0x10", "9" * 5000, "9" * 25)
NUMBERS = ("1e400", "1_0", "\u0662", "nan", "-inf", "x", "0x1p3", "1,5e", "9" * 5000)
QUANTITIES = ("nan", "1e400GB", "\u0663GB", "1_0GB", "\x1b[31m", "-", "--x", "a\nb", "9" * 5000)
CHOICES = ("nope", "X" * 3000, "\x1b[31m", "a\nb")
INPUTS = ("fifo", "socket", "/dev/zero", "A" * 5000, "a\nb", "private/x", "text.txt/x", "loop")
OUTPUTS = ("A" * 5000, "/proc/x/y", "text.txt/x", "loop/x")
NAMES = ("A" * 5000, "\x1b]0;x\x07", "a\nb", "../../etc/passwd", "%s", "'", "\u202ex")
"""Free text: accepted or not, it is neither an internal error nor obeyed by the terminal."""

BASES = {
    "advise": "--model gpt2 --cluster dgx-a100 --nodes 1 --global-batch 64",
    "predict": "--model gpt2 --cluster dgx-a100",
    "whatif": "--model gpt2 --cluster dgx-a100",
    "sweep": "--model alexnet --cluster dgx-1 --axis nodes=1..2",
    "explain": "s",
    "report": "s --out r.html",
    "study list": "",
    "study show": "s",
    "study export": "e.csv",
    "study package": "s --out package",
    "study merge": "other.db",
    "study annotate": "s note",
    "study rename": "s s",
    "study check": "study.toml",
    "study rerun": "s",
    "compare": "s s",
    "calibrate": "--no-probe",
    "import": "text.txt",
    "trace": "text.txt",
    "explore": "--export site",
    "catalog clusters": "",
    "catalog publications": "",
    "catalog models": "gpt2",
    "inspect": "gpt2",
    "measure": "--model fcn5 --batch 2 --dry-run prepared",
}
"""Arguments of commands that are run with free text; the others train or write elsewhere."""
OUTPUT_OPTIONS = {"--out", "--figures", "--figure", "--timeline", "--chrome-trace", "--export",
                  "--markdown", "--predictions", "--scoreboard", "--site", "--dry-run", "--logs",
                  "--heatmap", "--otf2", "path"}  # fmt: skip


def commands(group=cli, path=()):
    """Every command with its path, in alphabetical order."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if isinstance(command, click.Group):
            yield from commands(command, (*path, name))
        else:
            yield " ".join((*path, name)), command


def wrong_values(option):
    """Values that no option of this type can mean."""
    kind = option.type
    if isinstance(kind, KnobType):
        knob = kind.knob
        if knob.kind is int:
            return INTEGERS
        if knob.kind is float:
            return NUMBERS
        return QUANTITIES if knob.knob.parse is not None else CHOICES if knob.knob.choices else ()
    if isinstance(kind, click.IntRange | click.types.IntParamType):
        return INTEGERS
    if isinstance(kind, click.Choice):
        return CHOICES
    if option.opts[0] == "--store":
        return tuple(value for value in INPUTS if value not in ("a\nb", "private/x"))
    if isinstance(kind, click.Path):
        return OUTPUTS if option.opts[0] in OUTPUT_OPTIONS else INPUTS
    return ()


def invocations():
    """All generated lines: words, and whether they must be refused."""
    for name, command in commands():
        base = BASES.get(name, "").split()
        for option in command.params:
            if not isinstance(option, click.Option) or option.is_flag:
                continue
            words = [*name.split(), *base]
            yield from (([*words, option.opts[0], v], True) for v in wrong_values(option))
            if name in BASES and not wrong_values(option):
                yield from (([*words, option.opts[0], v], False) for v in NAMES)


@pytest.fixture
def folder(tmp_path):
    """Files that are none, and a store with a study."""
    (tmp_path / "text.txt").write_text("hello\n")
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "private").mkdir()
    listener = socket.socket(socket.AF_UNIX)
    listener.bind("socket")
    with Store(tmp_path / ".paceline" / "paceline.db") as store:
        store.complete(a_launch("a1", study="s", outcome=an_outcome()))
    yield tmp_path
    listener.close()


@pytest.fixture
def called(monkeypatch, capsys):
    """Exit code, output and seconds of a command line, in this process."""
    handlers = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)}

    def call(words):
        monkeypatch.setattr(sys, "argv", ["paceline", *words])
        capsys.readouterr()
        begun = time.monotonic()
        try:
            with limited():
                code = main() or 0
        except SystemExit as ended:
            code = ended.code
        output = capsys.readouterr()
        return code, output.out, output.err, time.monotonic() - begun

    yield call
    for number, handler in handlers.items():
        signal.signal(number, handler)
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.mark.thorough
def test_wrong_values_of_every_option_are_refused(folder, called, size):
    lines = list(invocations())
    assert len(lines) >= 600
    random.Random(0).shuffle(lines)
    before, slowest, wrong = peak_megabytes(), 0.0, []
    for words, refused in lines[: size(600, len(lines))]:
        shown = " ".join(words)[:120]
        try:
            code, out, err, seconds = called(words)
        except Exception as error:  # a traceback
            wrong.append(f"{shown!r}: {error!r}"[:300])
            continue
        slowest = max(slowest, seconds)
        problems = [line for line in err.splitlines() if line.startswith("error: ")]
        if code == 2 and (len(problems) < 1 or "hint: " not in err):
            wrong.append(f"{shown!r}: no message or hint: {err[:200]!r}")
        elif code not in ((2,) if refused else (0, 2)):
            wrong.append(f"{shown!r}: exit code {code}: {err[:200]!r}")
        elif "\x1b]" in out + err or "\u202e" in out + err:
            wrong.append(f"{shown!r}: control characters on the terminal")
    print(f"{len(lines)} invocations, slowest {slowest:.1f} s, {peak_megabytes() - before} MB more")
    assert not wrong, f"{len(wrong)} of them:\n" + "\n".join(wrong)
    assert peak_megabytes() - before < MEGABYTES
