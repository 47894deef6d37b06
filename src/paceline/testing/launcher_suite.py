"""The contract of a launcher, as checks for launchers of any package.

    from paceline.testing.launcher_suite import run_suite
    for result in run_suite(MyLauncher()):
        print(result)

Each check starts real ranks, small Python scripts, and checks the result. All hosts must see the
directory of the checks.
"""

import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from paceline.errors import InputError
from paceline.launch import Launcher, LaunchExit, LaunchRequest, RankEvent
from paceline.testing.contract import ContractError, Result, run_check
from paceline.testing.leftovers import check_nothing_left

RANKS = 2
LAUNCH_SECONDS = 60.0
GRACE_SECONDS = 1.0
TIMEOUT_SECONDS = (2.0, 10.0, 40.0)
"""Tried in turn, because ranks start slowly on a busy machine."""

HANGS = """
import json, os, signal, subprocess, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
command = [sys.executable, "-c", "import time; time.sleep(600)", sys.argv[1]]
child = subprocess.Popen(command)
print(json.dumps([os.getpid(), child.pid]), flush=True)
time.sleep(600)
"""
"""A rank that ignores SIGTERM, with a child that outlives it."""


@dataclass(frozen=True)
class LauncherBench:
    """The launcher under test and the directory of its checks."""

    launcher: Launcher
    directory: Path

    def launch(self, script: str, **options: Any) -> LaunchExit:
        """Run a Python script on `RANKS` ranks in a new directory; no process may be left."""
        directory = Path(tempfile.mkdtemp(dir=self.directory))
        fields: dict[str, Any] = {
            "timeout_seconds": LAUNCH_SECONDS,
            "processes": RANKS,
            "peer_grace_seconds": GRACE_SECONDS,
        }
        command = (sys.executable, "-c", script, str(directory))
        exited = self.launcher.launch(
            LaunchRequest(lambda rank: command, directory, **{**fields, **options})
        )
        check_nothing_left(directory)
        _require([one.rank for one in exited.ranks] == list(range(RANKS)), f"{exited.ranks}")
        return exited


def _require(kept: bool, message: str) -> None:
    if not kept:
        raise ContractError(message)


def _printed(exited: LaunchExit) -> list[str]:
    """Return the output of each rank, empty where it did not start."""
    logs = [rank.log for rank in exited.ranks]
    return [log.read_text(encoding="utf-8").strip() if log.exists() else "" for log in logs]


def check_detection(bench: LauncherBench) -> str:
    """The launcher works or names a remedy, and has a host."""
    found = bench.launcher.detect()
    _require(found.works or bool(found.remedy), "detect() reports neither success nor a remedy")
    _require(bool(bench.launcher.hosts()), "hosts() is empty")
    return found.found or found.remedy


def check_validation(bench: LauncherBench) -> str:
    """The launcher accepts `RANKS` ranks and rejects more nodes than hosts."""
    bench.launcher.validate(1, RANKS)
    try:
        bench.launcher.validate(len(bench.launcher.hosts()) + 1, 1)
    except InputError as error:
        _require(bool(error.hint), "the error of validate() has no hint")
        return error.message
    raise ContractError("validate() accepts more nodes than hosts")


def check_identity(bench: LauncherBench) -> str:
    """Each rank has its rank, its own variables and its own log."""
    names = ["RANK", "WORLD_SIZE", "OWN", "MASTER_ADDR", "MASTER_PORT", "LOCAL_RANK"]
    script = f"import json, os; print(json.dumps([os.environ.get(name) for name in {names}]))"
    exited = bench.launch(script, variables=lambda rank: {"OWN": f"of {rank}"})
    _require(not exited.reason, f"ranks that succeed are reported as failed: {exited.reason}")
    for rank, text in enumerate(_printed(exited)):
        _require(text.startswith("["), f"unexpected log of rank {rank}: {text!r}")
        values = json.loads(text)
        wanted = [str(rank), str(RANKS), f"of {rank}"]
        _require(values[:3] == wanted, f"rank {rank} has {values[:3]}, expected {wanted}")
        _require(all(values[3:]), f"rank {rank} lacks one of {names[3:]}")
    return f"{RANKS} ranks"


def check_nodes(bench: LauncherBench) -> str:
    """Ranks of two nodes have the same rendezvous address, and each has its local rank."""
    if len(bench.launcher.hosts()) < 2:
        return "only one host"
    script = (
        "import json, os; print(json.dumps([os.environ[name] for name in "
        "('RANK', 'LOCAL_RANK', 'WORLD_SIZE', 'MASTER_ADDR', 'MASTER_PORT')]))"
    )
    exited = bench.launch(script, nodes=2, processes=RANKS // 2)
    _require(not exited.reason, f"ranks that succeed are reported as failed: {exited.reason}")
    values = [json.loads(text) for text in _printed(exited)]
    for rank, one in enumerate(values):
        wanted = [str(rank), str(rank % (RANKS // 2)), str(RANKS)]
        _require(one[:3] == wanted, f"rank {rank} has {one[:3]}, expected {wanted}")
        _require(
            one[3:] == values[0][3:],
            f"rank {rank} has the address {one[3:]}, rank 0 {values[0][3:]}",
        )
    return ", ".join(sorted({rank.host for rank in exited.ranks if rank.host})) or "two nodes"


def check_commands(bench: LauncherBench) -> str:
    """Each rank runs its own command."""
    directory = Path(tempfile.mkdtemp(dir=bench.directory))
    exited = bench.launcher.launch(
        LaunchRequest(
            lambda rank: (sys.executable, "-c", f"print('I am {rank}')"),
            directory,
            LAUNCH_SECONDS,
            processes=RANKS,
        )
    )
    expected = [f"I am {rank}" for rank in range(RANKS)]
    _require(_printed(exited) == expected, f"printed: {_printed(exited)}")
    return "one command per rank"


def check_exit_codes(bench: LauncherBench) -> str:
    """Codes and signals come back, each with its rank, and the first failure is named."""
    script = "import os, sys; sys.exit(3 if os.environ['RANK'] == '1' else 0)"
    exited = bench.launch(script)
    codes = [rank.code for rank in exited.ranks]
    _require(codes == [0, 3], f"ranks that end with 0 and 3 come back as {codes}")
    _require(exited.first_failed == 1, f"rank 1 failed, not {exited.first_failed}")
    _require("rank 1" in exited.reason, f"the reason names no rank: '{exited.reason}'")
    killed = bench.launch("import os, signal; os.kill(os.getpid(), signal.SIGKILL)")
    codes = [rank.code for rank in killed.ranks]
    _require(-9 in codes, f"ranks killed by signal 9 come back as {codes}")
    return exited.reason


def check_peers(bench: LauncherBench) -> str:
    """When one rank fails, the others are ended within the grace period."""
    script = "import os, time; os._exit(7) if os.environ['RANK'] == '0' else time.sleep(600)"
    exited = bench.launch(script)
    _require(
        exited.seconds < LAUNCH_SECONDS / 2, f"the others continued for {exited.seconds:.0f} s"
    )
    _require(exited.first_failed == 0, f"first_failed is {exited.first_failed}, expected 0")
    _require(exited.ranks[0].code == 7, f"the code of rank 0 is {exited.ranks[0].code}, expected 7")
    return exited.reason


def check_timeout(bench: LauncherBench) -> str:
    """At the timeout all ranks end, also those that ignore SIGTERM, with their children."""
    for seconds in TIMEOUT_SECONDS:
        exited = bench.launch(HANGS, timeout_seconds=seconds)
        _require("timed out" in exited.reason, f"the reason is '{exited.reason}'")
        if all(printed := _printed(exited)):
            break
    _require(all(printed), f"not all ranks had started after {seconds:.0f} s")
    for pid in (pid for text in printed for pid in json.loads(text)):
        _require(not _runs_here(pid), f"process {pid} still runs")
    return exited.reason


def _runs_here(pid: int) -> bool:
    return psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE


def check_events(bench: LauncherBench) -> str:
    """Events report the start and end of ranks."""
    events: list[RankEvent] = []
    begun = time.monotonic()
    exited = bench.launch("pass", on_event=events.append)
    _require(
        time.monotonic() - begun >= exited.seconds, "the reported duration exceeds the measured one"
    )
    started = sorted(event.rank for event in events if event.code is None)
    ended = sorted((event.rank, event.code) for event in events if event.code is not None)
    _require(started == list(range(RANKS)), f"started: {started}")
    _require(ended == [(rank, 0) for rank in range(RANKS)], f"ended: {ended}")
    return f"{len(events)} events"


def check_output(bench: LauncherBench) -> str:
    """Large output on both streams is kept completely and does not block."""
    lines = 20_000
    script = (
        f"import sys\nfor line in range({lines}): print('out', line)\n"
        "sys.stdout.flush(); print('last', file=sys.stderr)"
    )
    for rank, text in enumerate(_printed(bench.launch(script))):
        kept = text.splitlines()
        _require(
            len(kept) == lines + 1, f"the log of rank {rank} has {len(kept)} of {lines + 1} lines"
        )
        _require(
            kept[-1] == "last", f"the log of rank {rank} ends in {kept[-1]!r}, expected 'last'"
        )
    return f"{lines} lines per rank"


CHECKS: dict[str, Callable[[LauncherBench], str]] = {
    "detection": check_detection,
    "validation": check_validation,
    "identity": check_identity,
    "nodes": check_nodes,
    "commands": check_commands,
    "exit codes": check_exit_codes,
    "peers": check_peers,
    "timeout": check_timeout,
    "events": check_events,
    "output": check_output,
}
"""The whole contract."""


def run_suite(launcher: Launcher, directory: Path | None = None) -> Iterator[Result]:
    """Run all checks on a launcher, one result at a time.

    Logs are kept below ``directory``, or dropped without one.
    """
    with tempfile.TemporaryDirectory() as temporary:
        bench = LauncherBench(launcher, directory or Path(temporary))
        for name, check in CHECKS.items():
            yield run_check(name, check, bench)
