import contextlib
import fcntl
import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace

import psutil
import pytest

from paceline.errors import EnvironmentUnusableError, InputError
from paceline.frameworks.environments.environment_state import (
    State,
    environment_directory,
    environment_state,
    installed_python,
    python_in,
    record_verification,
)
from paceline.frameworks.environments.install import install, remove
from paceline.frameworks.environments.install_commands import diagnose
from paceline.frameworks.environments.spec import EnvironmentSpec, PipStep
from paceline.frameworks.framework_registry import environment, environments


@pytest.fixture
def plain(tmp_path, monkeypatch):
    """An environment that needs nothing but the standard library."""
    monkeypatch.setenv("PACELINE_ENVIRONMENTS", str(tmp_path / "environments"))
    requirements = tmp_path / "plain.txt"
    requirements.write_text("# nothing\n")
    return EnvironmentSpec("plain", "json", (PipStep(requirements),), disk_bytes=1e6)


def quietly(message):
    pass


@pytest.mark.slow
def test_an_environment_is_used_once_it_is_whole(plain):
    assert environment_state(plain).state is State.ABSENT
    install(plain, quietly)
    made = environment_state(plain)
    assert made.state is State.INSTALLED
    assert made.size_bytes > 0
    assert installed_python(plain).startswith(str(made.directory))
    record_verification("plain", "quick", passed=True)
    record_verification("plain", "slow", passed=False)
    known = environment_state(plain)
    assert [known.state_of(name) for name in ("quick", "slow", "other")] == [
        State.VERIFIED,
        State.FAILED,
        State.INSTALLED,
    ]
    assert environment_state(replace(plain, disk_bytes=2e6)).state is State.OUTDATED
    assert remove(plain)
    assert environment_state(plain).state is State.ABSENT
    assert not remove(plain)


@pytest.mark.slow
def test_half_made_is_never_used_and_is_finished_later(plain, tmp_path):
    """Interrupted before its second step, it goes on there and makes nothing twice."""
    more = tmp_path / "more.txt"
    more.write_text("# nothing more\n")
    two = replace(plain, steps=(*plain.steps, PipStep(more)))

    def interrupted(message):
        if message.startswith("more"):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        install(two, interrupted)
    assert environment_state(two).state is State.UNFINISHED
    assert installed_python(two) is None
    said = []
    install(two, said.append)
    assert environment_state(two).state is State.INSTALLED
    assert said == ["more: resolving packages", "testing the import"]


@pytest.fixture
def commands(plain, monkeypatch):
    """Commands of an installation, recorded instead of run; importing can be made to fail."""
    called = []

    def run(command, name, log, report, variables):
        called.append(command)
        if "venv" in command:
            python = python_in(environment_directory(name))
            python.parent.mkdir(parents=True)
            python.touch()
        if "-c" in command:
            raise EnvironmentUnusableError("no such module", "")

    monkeypatch.setattr("paceline.frameworks.environments.install.run_logged", run)
    return called


def test_builds_with_variables_do_not_use_cached_wheels(plain, commands):
    """A wheel that pip kept may be one that was built for another framework."""
    built = PipStep(plain.steps[0].requirements, variables={"WITH_TENSORFLOW": "1"})
    with pytest.raises(EnvironmentUnusableError):
        install(replace(plain, steps=(*plain.steps, built)), quietly)
    pip = [command for command in commands if "install" in command]
    assert ["--no-cache-dir" in command for command in pip] == [False, True]


def test_failed_import_repeats_the_last_step(plain, commands):
    for _ in range(2):
        with pytest.raises(EnvironmentUnusableError, match="no such module"):
            install(plain, quietly)
    assert sum("install" in command for command in commands) == 2
    assert sum("venv" in command for command in commands) == 1


@pytest.mark.slow
def test_an_index_that_cannot_be_reached_is_named(plain, tmp_path, monkeypatch):
    for name in ("PIP_FIND_LINKS", "PIP_EXTRA_INDEX_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    monkeypatch.setenv("PIP_RETRIES", "1")
    (tmp_path / "plain.txt").write_text("a-package-nobody-has==1.0\n")
    with pytest.raises(EnvironmentUnusableError, match="cannot reach the package index"):
        install(plain, quietly)
    assert installed_python(plain) is None


def test_a_full_disk_is_named_before_anything_is_made(plain):
    with pytest.raises(EnvironmentUnusableError, match="disk full: plain needs"):
        install(replace(plain, disk_bytes=1e18), quietly)
    assert environment_state(plain).state is State.ABSENT


INSTALL = """
import sys
from pathlib import Path
from paceline.errors import PacelineError
from paceline.frameworks.environments.install import install
from paceline.frameworks.environments.spec import EnvironmentSpec, PipStep
step = PipStep(Path(sys.argv[1]) / "plain.txt", ("--no-index",))
try:
    install(EnvironmentSpec("plain", "json", (step,), disk_bytes=1e5), print)
except PacelineError as error:
    sys.exit(str(error))
"""
"""Installs the plain environment and ends with the error's one line, if there is one."""


@pytest.mark.slow
def test_a_disk_that_fills_up_on_the_way_is_named(plain, tmp_path):
    disk = tmp_path / "environments"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", disk], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("a small disk cannot be mounted here")
    try:
        with pytest.raises(EnvironmentUnusableError, match=r"the disk is full \(log: .*plain.log"):
            install(plain, quietly)
        assert installed_python(plain) is None
    finally:
        subprocess.run(["umount", disk], check=True)


@pytest.mark.slow
def test_files_that_may_not_grow_are_a_full_disk(plain, tmp_path):
    limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))  # noqa: E731
    ended = subprocess.run(
        [sys.executable, "-c", INSTALL, tmp_path],
        capture_output=True,
        text=True,
        preexec_fn=limit,
        check=False,
    )
    assert "the disk is full (log: " in ended.stderr
    assert ended.stderr.count("\n") == 1


BUILD_THAT_HANGS = """
import os, pathlib, subprocess, sys, time
def get_requires_for_build_wheel(settings=None):
    compiler = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    pathlib.Path(os.environ["STARTED"]).write_text(f"{os.getpid()} {compiler.pid}")
    time.sleep(600)
"""


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_an_installation_that_is_ended_takes_pip_and_the_compiler_with_it(plain, tmp_path, number):
    (tmp_path / "slow").mkdir()
    (tmp_path / "slow" / "backend.py").write_text(BUILD_THAT_HANGS)
    (tmp_path / "slow" / "pyproject.toml").write_text(
        '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'
    )
    (tmp_path / "plain.txt").write_text(f"{tmp_path / 'slow'}\n")
    started = tmp_path / "started"
    ours = subprocess.Popen(
        [sys.executable, "-c", INSTALL, tmp_path],
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "STARTED": str(started)},
    )
    while not (started.exists() and started.read_text()):
        assert ours.poll() is None
        time.sleep(0.05)
    ours.send_signal(number)
    _, said = ours.communicate(timeout=20)
    assert ours.returncode != 0
    if number == signal.SIGTERM:
        assert "interrupted by SIGTERM (log: " in said
    for pid in map(int, started.read_text().split()):
        with contextlib.suppress(psutil.NoSuchProcess):
            assert psutil.Process(pid).status() == psutil.STATUS_ZOMBIE


def test_a_missing_compiler_is_named_before_anything_is_made(plain, monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(EnvironmentUnusableError, match="needs c\\+\\+ or g\\+\\+") as caught:
        install(replace(plain, tools=("c++|g++",)), quietly)
    assert "compiler" in caught.value.hint


def test_a_wrong_python_is_named(plain, monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda name: None)
    old = replace(plain, oldest_python=(3, 5), newest_python=(3, 6))
    with pytest.raises(EnvironmentUnusableError, match=r"wrong Python: plain needs .*3\.5 to 3\.6"):
        install(old, quietly)
    with pytest.raises(InputError, match="as Python"):
        install(plain, quietly, python="/nowhere/python")


def test_two_installations_do_not_meet(plain, tmp_path):
    root = tmp_path / "environments"
    root.mkdir()
    with (root / ".plain.lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(InputError, match="another process"):
            install(plain, quietly)


def test_every_environment_is_fully_pinned():
    """Every file of every pin has a hash, but PyTorch's, which depends on the machine."""
    for one in environments().values():
        for step in one.steps:
            text = step.requirements.read_text().partition("\n")[2]
            pins = text.replace("\\\n", " ").splitlines()
            assert pins, step.requirements.name
            for pin in pins:
                assert "==" in pin, step.requirements.name
                assert "--hash=sha256:" in pin or pin.startswith("torch=="), pin
        assert len(one.digest) == 16


def test_an_unknown_environment_gets_suggestions():
    with pytest.raises(Exception, match="Did you mean tensorflow"):
        environment("tensorflo")


@pytest.mark.parametrize(
    ("line", "cause"),
    [
        ("OSError: [Errno 28] No space left on device", "the disk is full"),
        ("[Errno -3] Temporary failure in name resolution", "cannot reach the package index"),
        ("ERROR: No matching distribution found for torch==9", "has no torch==9"),
        ("CMake Error: CMAKE_CXX_COMPILER not set", "a compiler or CMake is missing"),
        ("FileNotFoundError: No such file or directory: 'cmake'", "compiler or CMake"),
        ("x.h:3: fatal error: highwayhash/a.h: No such file or directory", "highwayhash/a.h"),
        ("ERROR: Package 'x' requires a different Python: 3.13", "does not support this Python"),
        ("g++: fatal error: Killed signal terminated program cc1plus", "ran out of memory"),
        ("ERROR: something else", "ERROR: something else"),
        ("ImportError: the extension has not been built", "ImportError: the extension has not"),
    ],
)
def test_causes_are_read_from_the_log(line, cause):
    assert cause in diagnose(f"Collecting x\n{line}\n")[0]
