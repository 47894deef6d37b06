"""The contract of a launcher, as checks that anyone can run on a launcher of their own.

    from paceline.testing.launcher_suite import run_suite
    for result in run_suite(MyLauncher()):
        print(result)

Each check starts real ranks, small Python scripts, and compares what comes back with what a
launcher owes. The directory it gives must be one that all hosts see.
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
"""Tried in turn, since ranks start slowly where much else runs."""

HANGS = """
import json, os, signal, subprocess, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
words = [sys.executable, "-c", "import time; time.sleep(600)", sys.argv[1]]
child = subprocess.Popen(words)
print(json.dumps([os.getpid(), child.pid]), flush=True)
time.sleep(600)
"""
"""A rank that ignores being asked to end, with a child that outlives it."""


@dataclass(frozen=True)
class Stand:
    """Where the checks of one launcher run."""

    launcher: Launcher
    directory: Path

    def launch(self, script: str, **options: Any) -> LaunchExit:
        """Run a Python script on `RANKS` ranks, in a fresh directory; nothing may be left of it."""
        directory = Path(tempfile.mkdtemp(dir=self.directory))
        fields: dict[str, Any] = {
            "timeout_seconds": LAUNCH_SECONDS,
            "processes": RANKS,
            "peer_grace_seconds": GRACE_SECONDS,
        }
        words = (sys.executable, "-c", script, str(directory))
        exited = self.launcher.launch(
            LaunchRequest(lambda rank: words, directory, **{**fields, **options})
        )
        check_nothing_left(directory)
        _owe([one.rank for one in exited.ranks] == list(range(RANKS)), f"{exited.ranks}")
        return exited


def _owe(kept: bool, otherwise: str) -> None:
    if not kept:
        raise ContractError(otherwise)


def _printed(exited: LaunchExit) -> list[str]:
    """What each rank printed, nothing where it did not begin."""
    logs = [rank.log for rank in exited.ranks]
    return [log.read_text(encoding="utf-8").strip() if log.exists() else "" for log in logs]


def check_detection(stand: Stand) -> str:
    """It can launch here, or says what to do; it knows a host."""
    found = stand.launcher.detect()
    _owe(found.works or bool(found.remedy), "it does not work here and names no remedy")
    _owe(bool(stand.launcher.hosts()), "it knows no host")
    return found.found or found.remedy


def check_validation(stand: Stand) -> str:
    """It takes the ranks that it will be asked for, and refuses more nodes than it has."""
    stand.launcher.validate(1, RANKS)
    try:
        stand.launcher.validate(len(stand.launcher.hosts()) + 1, 1)
    except InputError as error:
        _owe(bool(error.hint), "it refuses without a hint")
        return error.message
    raise ContractError("it takes more nodes than it knows hosts")


def check_identity(stand: Stand) -> str:
    """Each rank knows who it is, has its own variables, and prints to its own log."""
    names = ["RANK", "WORLD_SIZE", "OWN", "MASTER_ADDR", "MASTER_PORT", "LOCAL_RANK"]
    script = f"import json, os; print(json.dumps([os.environ.get(name) for name in {names}]))"
    exited = stand.launch(script, variables=lambda rank: {"OWN": f"of {rank}"})
    _owe(not exited.reason, f"ranks that end well: {exited.reason}")
    for rank, text in enumerate(_printed(exited)):
        _owe(text.startswith("["), f"the log of rank {rank} has {text!r}")
        told = json.loads(text)
        wanted = [str(rank), str(RANKS), f"of {rank}"]
        _owe(told[:3] == wanted, f"rank {rank} has {told[:3]}, not {wanted}")
        _owe(all(told[3:]), f"rank {rank} lacks one of {names[3:]}")
    return f"{RANKS} ranks"


def check_nodes(stand: Stand) -> str:
    """Ranks of two nodes meet at one place, and each knows its number on its node."""
    if len(stand.launcher.hosts()) < 2:
        return "it knows one host"
    script = (
        "import json, os; print(json.dumps([os.environ[name] for name in "
        "('RANK', 'LOCAL_RANK', 'WORLD_SIZE', 'MASTER_ADDR', 'MASTER_PORT')]))"
    )
    exited = stand.launch(script, nodes=2, processes=RANKS // 2)
    _owe(not exited.reason, f"ranks that end well: {exited.reason}")
    told = [json.loads(text) for text in _printed(exited)]
    for rank, one in enumerate(told):
        wanted = [str(rank), str(rank % (RANKS // 2)), str(RANKS)]
        _owe(one[:3] == wanted, f"rank {rank} has {one[:3]}, not {wanted}")
        _owe(
            one[3:] == told[0][3:], f"rank {rank} is to meet at {one[3:]}, rank 0 at {told[0][3:]}"
        )
    return ", ".join(sorted({rank.host for rank in exited.ranks if rank.host})) or "two nodes"


def check_commands(stand: Stand) -> str:
    """Each rank runs the command that was asked for it."""
    directory = Path(tempfile.mkdtemp(dir=stand.directory))
    exited = stand.launcher.launch(
        LaunchRequest(
            lambda rank: (sys.executable, "-c", f"print('I am {rank}')"),
            directory,
            LAUNCH_SECONDS,
            processes=RANKS,
        )
    )
    expected = [f"I am {rank}" for rank in range(RANKS)]
    _owe(_printed(exited) == expected, f"printed: {_printed(exited)}")
    return "one command a rank"


def check_exit_codes(stand: Stand) -> str:
    """Codes and signals come back, each with its rank, and the first failure is named."""
    script = "import os, sys; sys.exit(3 if os.environ['RANK'] == '1' else 0)"
    exited = stand.launch(script)
    codes = [rank.code for rank in exited.ranks]
    _owe(codes == [0, 3], f"ranks that end with 0 and 3 come back as {codes}")
    _owe(exited.first_failed == 1, f"rank 1 failed, not {exited.first_failed}")
    _owe("rank 1" in exited.reason, f"the reason names no rank: '{exited.reason}'")
    killed = stand.launch("import os, signal; os.kill(os.getpid(), signal.SIGKILL)")
    codes = [rank.code for rank in killed.ranks]
    _owe(-9 in codes, f"ranks killed by signal 9 come back as {codes}")
    return exited.reason


def check_peers(stand: Stand) -> str:
    """When one rank dies, the others are ended soon after."""
    script = "import os, time; os._exit(7) if os.environ['RANK'] == '0' else time.sleep(600)"
    exited = stand.launch(script)
    _owe(exited.seconds < LAUNCH_SECONDS / 2, f"the others ran on for {exited.seconds:.0f} s")
    _owe(exited.first_failed == 0, f"rank 0 failed, not {exited.first_failed}")
    _owe(exited.ranks[0].code == 7, f"rank 0 ended with 7, not {exited.ranks[0].code}")
    return exited.reason


def check_timeout(stand: Stand) -> str:
    """When the time is up everything is ended: ranks that ignore SIGTERM and their children."""
    for seconds in TIMEOUT_SECONDS:
        exited = stand.launch(HANGS, timeout_seconds=seconds)
        _owe("timed out" in exited.reason, f"the reason is '{exited.reason}'")
        if all(printed := _printed(exited)):
            break
    _owe(all(printed), f"not all ranks had begun after {seconds:.0f} s")
    for pid in (pid for text in printed for pid in json.loads(text)):
        _owe(not _runs_here(pid), f"process {pid} still runs")
    return exited.reason


def _runs_here(pid: int) -> bool:
    return psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE


def check_events(stand: Stand) -> str:
    """It tells when ranks start and end, while that happens."""
    events: list[RankEvent] = []
    begun = time.monotonic()
    exited = stand.launch("pass", on_event=events.append)
    _owe(time.monotonic() - begun >= exited.seconds, "it took less time than it says")
    started = sorted(event.rank for event in events if event.code is None)
    ended = sorted((event.rank, event.code) for event in events if event.code is not None)
    _owe(started == list(range(RANKS)), f"started: {started}")
    _owe(ended == [(rank, 0) for rank in range(RANKS)], f"ended: {ended}")
    return f"{len(events)} events"


def check_output(stand: Stand) -> str:
    """Much output, to both streams, is kept whole and stops nobody."""
    lines = 20_000
    script = (
        f"import sys\nfor line in range({lines}): print('out', line)\n"
        "sys.stdout.flush(); print('last', file=sys.stderr)"
    )
    for rank, text in enumerate(_printed(stand.launch(script))):
        kept = text.splitlines()
        _owe(len(kept) == lines + 1, f"the log of rank {rank} has {len(kept)} of {lines + 1} lines")
        _owe(kept[-1] == "last", f"rank {rank} printed 'last' last, its log ends in {kept[-1]!r}")
    return f"{lines} lines a rank"


CHECKS: dict[str, Callable[[Stand], str]] = {
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
    """Run every check on a launcher, one result at a time.

    Logs are kept below ``directory``, or dropped when there is none.
    """
    with tempfile.TemporaryDirectory() as temporary:
        stand = Stand(launcher, directory or Path(temporary))
        for name, check in CHECKS.items():
            yield run_check(name, check, stand)
