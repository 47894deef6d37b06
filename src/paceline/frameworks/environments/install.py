"""Installs the environment of a framework in resumable steps, with a stamp at the end."""

import fcntl
import json
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from paceline.errors import EnvironmentUnusableError, InputError
from paceline.frameworks.environments.environment_state import (
    State,
    directory_bytes,
    environment_directory,
    environment_state,
    environments_root,
    log_path,
    python_in,
    read_stamp,
    write_stamp,
)
from paceline.frameworks.environments.install_commands import Report, explained_failures, run_logged
from paceline.frameworks.environments.spec import EnvironmentSpec, PipStep

JOURNAL = "paceline-steps.json"


def install(spec: EnvironmentSpec, report: Report, python: str | None = None) -> None:
    """Install the environment, or resume an interrupted installation.

    Finished steps of an interrupted installation are kept unless the manifest changed. An
    environment without a stamp is never used. ``python`` is the base interpreter.
    """
    if environment_state(spec).state is State.INSTALLED:
        return
    base = base_python(spec, python)
    check_tools(spec)
    log = log_path(spec.name)
    with locked(spec.name), explained_failures(spec.name, log):
        check_resources(spec)
        log.write_text("", encoding="utf-8")
        directory = environment_directory(spec.name)
        done = _journal(directory, spec.digest, base)
        if not done:
            report("creating a virtual environment")
            _make_empty(spec, base, directory, log, report)
            done = ["venv"]
            _remember(directory, spec.digest, base, done)
        for number, step in enumerate(spec.steps):
            label = f"{number}:{step.requirements.stem}"
            if label not in done:
                report(f"{step.requirements.stem}: resolving packages")
                _pip(spec, step, directory, log, report)
                done = [*done, label]
                _remember(directory, spec.digest, base, done)
        report("testing the import")
        try:
            _python(spec, directory, ["-c", f"import {spec.module}"], log, report)
        except EnvironmentUnusableError:
            _remember(
                directory, spec.digest, base, done[:-1]
            )  # repeat the last step: its result does not work
            raise
        _finish(spec, directory)


def remove(spec: EnvironmentSpec) -> bool:
    """Delete the environment; return whether there was one."""
    directory = environment_directory(spec.name)
    if not directory.exists():
        return False
    with locked(spec.name):
        (directory / "paceline.json").unlink(missing_ok=True)
        shutil.rmtree(directory)
        log_path(spec.name).unlink(missing_ok=True)
    return True


def base_python(spec: EnvironmentSpec, python: str | None) -> str:
    """Return the base interpreter: the given one, Paceline's, or one on PATH."""
    lowest, highest = spec.oldest_python, spec.newest_python
    span = (
        f"{_format_version(lowest)} to {_format_version(highest)}"
        if lowest != highest
        else _format_version(lowest)
    )
    if python is not None:
        path = shutil.which(python)
        version = _version_of(path) if path else None
        if path is None or version is None:
            raise InputError(
                f"cannot run '{python}' as Python", "set --python to the path of an interpreter"
            )
        if not lowest <= version <= highest:
            raise EnvironmentUnusableError(
                f"wrong Python: {spec.name} needs Python {span}, but '{python}' is "
                f"{_format_version(version)}",
                "choose another interpreter with --python",
            )
        return path
    if lowest <= sys.version_info[:2] <= highest:
        return str(getattr(sys, "_base_executable", sys.executable))
    for minor in range(highest[1], lowest[1] - 1, -1):
        found = shutil.which(f"python3.{minor}")
        if found and _version_of(found) == (3, minor):
            return found
    raise EnvironmentUnusableError(
        f"wrong Python: {spec.name} needs Python {span}, but this is {platform.python_version()}",
        "install one of these versions and set --python",
    )


def check_tools(spec: EnvironmentSpec) -> None:
    for group in spec.tools:
        if not any(shutil.which(name) for name in group.split("|")):
            raise EnvironmentUnusableError(
                f"{spec.name} is built from source and needs {group.replace('|', ' or ')}, "
                "which is not installed",
                "install a C++ compiler and CMake (Debian: apt install build-essential cmake)",
            )


def check_resources(spec: EnvironmentSpec) -> None:
    """Raise if the free disk space is too small."""
    free = shutil.disk_usage(environments_root()).free
    if free < spec.disk_bytes:
        raise EnvironmentUnusableError(
            f"disk full: {spec.name} needs {spec.disk_bytes / 1e9:.1f} GB, "
            f"{environments_root()} has {free / 1e9:.1f} GB",
            "free disk space, or set PACELINE_ENVIRONMENTS to another disk",
        )


@contextmanager
def locked(name: str) -> Iterator[None]:
    """Lock the environment against other processes while it changes."""
    root = environments_root()
    try:
        root.mkdir(parents=True, exist_ok=True)
        file = (root / f".{name}.lock").open("w")
    except OSError as error:
        raise InputError(
            f"cannot write to {root}: {error}", "set PACELINE_ENVIRONMENTS to another directory"
        ) from error
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise InputError(
                f"another process is changing the environment '{name}'", "wait until it ends"
            ) from None
        yield


def _make_empty(
    spec: EnvironmentSpec, base: str, directory: Path, log: Path, report: Report
) -> None:
    """Create a virtual environment, then install pip separately: venv hides pip's errors."""
    shutil.rmtree(directory, ignore_errors=True)
    make = [base, "-m", "venv", "--without-pip", str(directory)]
    run_logged(make, spec.name, log, report, {})
    _python(spec, directory, ["-m", "ensurepip", "--upgrade", "--default-pip"], log, report)


def _python(
    spec: EnvironmentSpec, directory: Path, arguments: list[str], log: Path, report: Report
) -> None:
    run_logged([str(python_in(directory)), *arguments], spec.name, log, report, {})


def _pip(spec: EnvironmentSpec, step: PipStep, directory: Path, log: Path, report: Report) -> None:
    variables = dict(step.variables)
    variables["PATH"] = f"{directory / 'bin'}{os.pathsep}{os.environ.get('PATH', '')}"
    if spec.compiler_standard and step.variables:
        variables["CMAKE_CXX_COMPILER_LAUNCHER"] = str(_compiler_launcher(spec, directory))
    command = [str(python_in(directory)), "-m", "pip", "install", "--no-input"]
    command += ["--disable-pip-version-check", "--progress-bar", "off", *step.options]
    if step.variables:  # they change the build, but not the name of a cached wheel
        command.append("--no-cache-dir")
    run_logged([*command, "-r", str(step.requirements)], spec.name, log, report, variables)


def _compiler_launcher(spec: EnvironmentSpec, directory: Path) -> Path:
    """Write a compiler launcher for CMake that appends ``-std``: the last ``-std`` counts."""
    script = directory / "bin" / "paceline-compiler"
    script.write_text(f'#!/bin/sh\nexec "$@" -std={spec.compiler_standard}\n', encoding="utf-8")
    script.chmod(0o755)
    return script


def _journal(directory: Path, digest: str, base: str) -> list[str]:
    """Return the finished steps of an earlier attempt with the same manifest and Python."""
    try:
        journal = json.loads((directory / JOURNAL).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return []
    same = journal.get("digest") == digest and journal.get("base") == base
    return list(journal["done"]) if same and python_in(directory).exists() else []


def _remember(directory: Path, digest: str, base: str, done: list[str]) -> None:
    journal = {"digest": digest, "base": base, "done": done}
    (directory / JOURNAL).write_text(json.dumps(journal), encoding="utf-8")


def _finish(spec: EnvironmentSpec, directory: Path) -> None:
    command = [str(python_in(directory)), "-m", "pip", "list", "--format", "freeze"]
    listed = subprocess.run(command, capture_output=True, text=True, check=False)
    version = _version_of(str(python_in(directory)))
    write_stamp(
        spec.name,
        {
            "digest": spec.digest,
            "python": _format_version(version) if version else "",
            "packages": [line for line in listed.stdout.split() if "==" in line],
            "size_bytes": directory_bytes(directory),
            "finished_at": datetime.now(UTC).isoformat(timespec="seconds"),
        },
    )
    assert read_stamp(spec.name) is not None


def _version_of(path: str) -> tuple[int, int] | None:
    script = "import sys; print(*sys.version_info[:2])"
    try:
        answer = subprocess.run(
            [path, "-c", script], capture_output=True, text=True, timeout=60, check=False
        )
        major, minor = map(int, answer.stdout.split())
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return None
    return major, minor


def _format_version(version: tuple[int, int]) -> str:
    return f"{version[0]}.{version[1]}"
