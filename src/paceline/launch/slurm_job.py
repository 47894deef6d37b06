"""Submits the script of a launch and polls its job: ``python -m paceline.launch.slurm_job DIR``.

Exits when the job has ended, with 0 on success, and writes ``slurm-job.json`` with all jobs and the
reason of a failure. Resubmits a job that lost a node without that node. Cancels the job on SIGTERM,
SIGINT and SIGHUP, so that no job is left when Paceline is killed.
"""

import json
import signal
import sys
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from paceline.launch.launch_files import rank_host, rank_status
from paceline.launch.slurm_commands import LIMITS, RESULT, SCRIPT, SlurmError, run_slurm

QUICK_SECONDS, SLOW_SECONDS, QUICK_POLLS = 0.5, 5.0, 120
"""Seconds between polls: for the first QUICK_POLLS, and later."""

SILENCE_SECONDS = 120.0
"""Time after which an unreachable controller is an error."""

WAITING = ("PENDING", "REQUEUED", "REQUEUE_HOLD", "SPECIAL_EXIT", "RESV_DEL_HOLD", "CONFIGURING")
GOING = ("RUNNING", "COMPLETING", "SUSPENDED", "SIGNALING", "STAGE_OUT", "STOPPED", "RESIZING")
LOST_NODE = ("NODE_FAIL", "BOOT_FAIL", "PREEMPTED")


@dataclass
class Follower:
    """One launch and its jobs."""

    directory: Path
    limits: dict[str, Any]
    asked: threading.Event
    jobs: list[str] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)
    restarts: int = 0

    def run(self) -> int:
        """Submit until a job ends for another reason than a lost node, or the limit is reached."""
        while True:
            try:
                state, reason = self._follow(self._submit())
            except SlurmError as error:
                return self._end(1, str(error))
            if state == "COMPLETED":
                return self._end(0)
            if state == "CANCELLED" and not reason:
                return self._end(1, f"Slurm job {self.jobs[-1]} was cancelled", cancelled=True)
            gone = self._lost_hosts(state)
            if not gone or len(self.jobs) > self.limits["requeues"]:
                return self._end(1, self._loss(gone) if any(gone) else reason)
            self.lost += gone
            self._remove_rank_files()

    def _loss(self, hosts: list[str]) -> str:
        times = f" ({len(self.jobs)} jobs)" if len(self.jobs) > 1 else ""
        return f"node {', '.join(hosts)} failed during Slurm job {self.jobs[-1]}{times}"

    def _submit(self) -> str:
        avoided = [f"--exclude={','.join(self.lost)}"] if any(self.lost) else []
        arguments = [*avoided, str(self.directory / SCRIPT)]
        job = run_slurm("sbatch", "--parsable", *arguments).strip().split(";")[0]
        self.jobs.append(job)
        return job

    def _follow(self, job: str) -> tuple[str, str]:
        """Return the final state of a job and the reason of a failure."""
        queued, began, heard = time.monotonic(), None, time.monotonic()
        polls = 0
        while True:
            try:
                state, why = job_state(job)
                heard = time.monotonic()
            except SlurmError as error:
                state, why = "", str(error)
                if time.monotonic() > heard + SILENCE_SECONDS:
                    raise
            moment = time.monotonic()
            if state in GOING and began is None:
                began = moment
            elif state in WAITING and began is not None:  # requeued by Slurm
                queued, began = moment, None
                self._remove_rank_files()
            elif state and state not in (*WAITING, *GOING):
                explained = state in ("FAILED", "CANCELLED")
                return state, "" if explained else f"Slurm job {job} ended in state {state}"
            late = self._late(job, queued, began, why)
            if late or self.asked.is_set():
                run_slurm("scancel", job)
                return "CANCELLED", late or "asked to end"
            polls += 1
            self.asked.wait(QUICK_SECONDS if polls < QUICK_POLLS else SLOW_SECONDS)

    def _late(self, job: str, queued: float, began: float | None, why: str) -> str:
        if began is not None and time.monotonic() > began + self.limits["timeout_seconds"]:
            return f"timed out after {self.limits['timeout_seconds']:.0f} s (Slurm job {job})"
        if began is None and time.monotonic() > queued + self.limits["queue_seconds"]:
            return (
                f"timed out after {self.limits['queue_seconds']:.0f} s in the queue: Slurm job "
                f"{job} is pending ({why or 'no reason given'})"
            )
        return ""

    def _lost_hosts(self, state: str) -> list[str]:
        """Return the hosts of started ranks without an exit file; none if the job was cancelled."""
        if self.asked.is_set() or state == "CANCELLED":
            return []
        silent = [
            rank_host(self.directory, rank).get("host", "")
            for rank in range(self.limits["world_size"])
            if rank_status(self.directory, rank) is None
        ]
        found = sorted({host for host in silent if host})
        return found or ([""] if state in LOST_NODE else [])

    def _remove_rank_files(self) -> None:
        self.restarts += 1
        for path in self.directory.glob("rank-*"):
            path.unlink(missing_ok=True)

    def _end(self, code: int, reason: str = "", cancelled: bool = False) -> int:
        document = {
            "cancelled": cancelled,
            "jobs": self.jobs,
            "lost": self.lost,
            "restarts": self.restarts,
            "reason": reason,
        }
        path = self.directory / RESULT
        path.write_text(json.dumps(document), encoding="utf-8")
        return code


def job_state(job: str) -> tuple[str, str]:
    """Return the state of a job and why it is pending, from squeue or, after its end, scontrol."""
    try:
        output = run_slurm("squeue", "-h", "-j", job, "-t", "all", "-o", "%T|%r").strip()
    except SlurmError as error:
        if "Invalid job id" not in str(error):
            raise
        output = ""
    if output:
        state, _, why = output.splitlines()[0].partition("|")
        return state, why
    try:
        output = run_slurm("scontrol", "--oneliner", "show", "job", job)
    except SlurmError as error:
        if "Invalid job id" in str(error):
            return "FORGOTTEN", ""
        raise
    return next(
        (word.partition("=")[2] for word in output.split() if word.startswith("JobState=")), ""
    ), ""


def main(directory: Path) -> int:
    asked = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda number, frame: asked.set())
    limits = json.loads((directory / LIMITS).read_text(encoding="utf-8"))
    return Follower(directory, limits, asked).run()


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
