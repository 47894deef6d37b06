"""Hostile values in every field of every launcher: refused, or passed on as one word.

The scripts that are written run in a sandbox, where ``ssh``, ``srun`` and the like only note their
arguments. A command that a value smuggles in would create a file.
"""

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from attack.nasty import HANG_SECONDS
from paceline.errors import PacelineError
from paceline.launch import LaunchRequest, LaunchSettings
from paceline.launch.launch_script import PreparedLaunch, launch_name
from paceline.launch.launcher_registry import our_launchers
from paceline.launch.slurm_commands import SCRIPT

MADE = "made-by-a-value"
CONTROLS = ["\n", "\r", "\x00", "\x1b", "\x85", "\u2028", "\u2029", "\x0b", "\x7f"]
PRINTABLE = [
    f"; touch {MADE}; $(touch {MADE}) `touch {MADE}` & touch {MADE} #",
    f"' ; touch {MADE} ; ' \" ; touch {MADE} ; \" > {MADE}",
    f"; touch {MADE};",
    f"$(touch {MADE})",
    f"`touch {MADE}`",
    f"' ; touch {MADE} ; '",
    f'" ; touch {MADE} ; "',
    f"x & touch {MADE} &",
    f"x | touch {MADE}",
    f"\\'; touch {MADE} #",
    f"x # touch {MADE}",
    f"x > {MADE}",
    "{}",
    "%j %x",
    "*",
    "- a: b",
    "&x",
    "!!python/object/apply:os.system [touch x]",
]
"""Texts that a shell, a batch system or YAML may interpret."""
SPLIT_AS_IN_A_SHELL = {"sbatch", "srun", "arguments"}
"""Options that are documented to be several arguments of a program."""
FIELDS = [
    (name, option)
    for name, launcher in our_launchers().items()
    for option in [*launcher.options, "(hosts)", "(directory)", "(variable)"]
]
STUBS = ("ssh", "srun", "sbatch", "scancel", "mpiexec", "mpirun", "env", "python3")


@pytest.fixture
def sandbox(tmp_path, monkeypatch):
    """A directory, and a PATH with programs that do nothing but note their arguments.

    ``ssh`` runs the command of the remote host in a shell, as sshd does.
    """
    programs = tmp_path / "programs"
    programs.mkdir()
    for name in STUBS:
        runs = 'shift; while [ "$1" != -- ] && [ $# -gt 0 ]; do shift; done; shift 2; sh -c "$*"'
        last = runs if name == "ssh" else ""
        (programs / name).write_text(
            f'#!/bin/sh\nprintf "%s\\n" "$@" >> "$NOTED"\n{last}\nexit 0\n'
        )
        (programs / name).chmod(0o755)
    monkeypatch.setenv("NOTED", str(tmp_path / "noted"))
    monkeypatch.setenv("PATH", f"{programs}:/usr/bin:/bin")
    for name in ("SLURM_JOB_ID", "SLURM_JOB_NODELIST"):
        monkeypatch.delenv(name, raising=False)
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    return work


def request_in(directory, value="x"):
    """A launch whose ranks do nothing: ``true`` with a hostile argument and variable."""
    directory.mkdir(parents=True, exist_ok=True)
    return LaunchRequest(
        lambda rank: ("/bin/true", value),
        directory,
        60.0,
        variables=lambda rank: {"SETTING": value},
    )


def configured(name, field, value):
    """The launcher with ``value`` in one field, if it is a field of its settings."""
    starter = our_launchers()[name]
    hosts = (value,) if field == "(hosts)" else ("localhost",) if starter.takes_hosts else ()
    options = {} if field.startswith("(") else {field: value}
    return starter.configured(LaunchSettings(hosts, options))


def scripts_of(name, field, value, folder):
    """Every script and command that the launcher makes with ``value`` in one field."""
    starter = configured(name, field, value)
    study = folder / (value.replace("/", "") if field == "(directory)" else "study")
    request = request_in(study / launch_name(0), value if field == "(variable)" else "x")
    commands = starter.prepare(request)
    prepared = PreparedLaunch(0, request, tuple(tuple(one) for one in commands))
    return starter.write_study(study, [prepared]), commands


@pytest.mark.parametrize(("name", "field"), FIELDS)
def test_control_characters_are_refused_in_every_field(name, field, tmp_path):
    for control in CONTROLS:
        value = f"x{control}touch {MADE}{control}#"
        with pytest.raises(PacelineError, match="control character"):
            if field == "(directory)":
                LaunchRequest(lambda rank: ("true",), tmp_path / value, 60.0)
            elif field == "(variable)":
                request_in(tmp_path, value)
            else:
                configured(name, field, value)


@pytest.mark.process
@pytest.mark.parametrize(("name", "field"), FIELDS)
def test_scripts_run_nothing_but_their_programs(name, field, sandbox, size):
    for number, value in enumerate(PRINTABLE[: size(2, len(PRINTABLE))]):
        folder = sandbox / str(number)
        try:
            scripts, commands = scripts_of(name, field, value, folder)
        except PacelineError:
            continue  # refused
        lines = [shlex.join(command) for command in commands]
        if name == "slurm":  # its command submits the script and polls the job
            lines = [f"sh {shlex.quote(str(folder / 'study' / launch_name(0) / SCRIPT))}"]
        for script in scripts:
            lines += [f"sh {shlex.quote(str(script))}"]
            if script.suffix in (".yaml", ".yml"):
                lines[-1:] = shell_lines(yaml.safe_load(script.read_text()), folder)
        for line in lines:
            with_id = {**os.environ, "SLURM_ARRAY_TASK_ID": "0"}
            subprocess.run(
                ["sh", "-c", line], env=with_id, capture_output=True, timeout=HANG_SECONDS
            )
        assert not list(sandbox.rglob(MADE)), f"{name}, {field}: {value!r} ran a command"


def shell_lines(document, folder):
    """The scripts in a manifest, run with the variables of the manifest."""
    texts = [text for text in strings(document) if "launch-*" in text]
    assert texts, "a manifest runs the launches"
    variables = {str(key): str(value) for key, value in document.get("envs", {}).items()}
    variables |= dict(text.split("=", 1) for text in document.get("env", ()))
    for one in document.get("spec", {}).get("trainer", {}).get("env", ()):
        variables[one["name"]] = one["value"]
    variables["STUDY"] = str(folder / "study")
    exports = "".join(f"export {key}={shlex.quote(value)}\n" for key, value in variables.items())
    return [exports + text for text in texts]


def strings(value):
    """All texts of a document."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        return [text for one in value for text in strings(one)]
    return [value] if isinstance(value, str) else []


@pytest.mark.parametrize("value", PRINTABLE)
def test_values_of_directives_are_one_word_for_sbatch(value, tmp_path):
    """sbatch reads a directive up to a blank outside quotes; see `paceline.launch.slurm`."""
    starter = configured("slurm", "account", value)
    text = starter.script(request_in(tmp_path / "l"), "true")
    (line,) = [one for one in text.splitlines() if one.startswith("#SBATCH --account=")]
    assert shlex.split(line.removeprefix("#SBATCH "), comments=True) == [f"--account={value}"]


@pytest.mark.parametrize("name", ["slurm", "mpiexec"])
@pytest.mark.parametrize("text", ['"', "'", "a 'b", "\\"])
def test_unbalanced_quotes_are_one_line(name, text, sandbox):
    for option in SPLIT_AS_IN_A_SHELL & set(our_launchers()[name].options):
        with pytest.raises(PacelineError, match=r"quot|escaped"):
            configured(name, option, text).prepare(request_in(sandbox / "l"))


@pytest.mark.process
def test_launch_files_hold_arguments_as_they_are(tmp_path, size):
    """The agent starts ranks without a shell, from JSON."""
    for number, value in enumerate(PRINTABLE[: size(2, len(PRINTABLE))]):
        folder = tmp_path / str(number)
        our_launchers()["local"].prepare(request_in(folder, value))
        (rank,) = json.loads((folder / "launch.json").read_text())["ranks"]
        assert rank["command"] == ["/bin/true", value]
        code = [sys.executable, "-I", "-S", str(Path(folder, "agent")), str(folder)]
        subprocess.run(
            code,
            cwd=tmp_path,
            env={**os.environ, "RANK": "0", "WORLD_SIZE": "1"},
            capture_output=True,
            timeout=HANG_SECONDS,
        )
        assert json.loads((folder / "rank-0.exit").read_text())["code"] == 0
    assert not list(tmp_path.rglob(MADE))
