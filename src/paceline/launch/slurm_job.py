"""Submits the script of a launch and follows its job: ``python -m paceline.launch.slurm_job DIR``.

It ends when the job has, with 0 if that went well, and leaves ``slurm-job.json`` with every job and
the reason if it did not. A job that lost a node is submitted again without it. When it is asked to
end, so is the job: whoever started it may be killed, and the job does not stay.
"""

import json
import signal
import sys
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from paceline.launch.documents import rank_host, rank_word
from paceline.launch.slurm_commands import LIMITS, RESULT, SCRIPT, SlurmError, told_by

QUICK_SECONDS, SLOW_SECONDS, QUICK_POLLS = 0.5, 5.0, 120
"""Seconds between questions: at first, and after so many of them."""

SILENCE_SECONDS = 120.0
"""How long the controller may not answer."""

WAITING = ("PENDING", "REQUEUED", "REQUEUE_HOLD", "SPECIAL_EXIT", "RESV_DEL_HOLD", "CONFIGURING")
GOING = ("RUNNING", "COMPLETING", "SUSPENDED", "SIGNALING", "STAGE_OUT", "STOPPED", "RESIZING")
LOST_NODE = ("NODE_FAIL", "BOOT_FAIL", "PREEMPTED")


@dataclass
class Follower:
    """One launch and the jobs it had."""

    directory: Path
    limits: dict[str, Any]
    asked: threading.Event
    jobs: list[str] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)
    restarts: int = 0

    def run(self) -> int:
        """Submit until a job ends other than by the loss of a node, or that was too often."""
        while True:
            try:
                state, reason = self._follow(self._submit())
            except SlurmError as error:
                return self._end(1, str(error))
            if state == "COMPLETED":
                return self._end(0)
            gone = self._gone_hosts(state)
            if not gone or len(self.jobs) > self.limits["requeues"]:
                return self._end(1, self._loss(gone) if any(gone) else reason)
            self.lost += gone
            self._forget_ranks()

    def _loss(self, hosts: list[str]) -> str:
        times = f" ({len(self.jobs)} jobs)" if len(self.jobs) > 1 else ""
        return f"node {', '.join(hosts)} failed under Slurm's job {self.jobs[-1]}{times}"

    def _submit(self) -> str:
        avoided = [f"--exclude={','.join(self.lost)}"] if any(self.lost) else []
        words = [*self.limits["sbatch"], *avoided, str(self.directory / SCRIPT)]
        job = told_by("sbatch", "--parsable", *words).strip().split(";")[0]
        self.jobs.append(job)
        return job

    def _follow(self, job: str) -> tuple[str, str]:
        """The state in which a job ended, and why we or Slurm ended it."""
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
            elif state in WAITING and began is not None:  # Slurm itself queued it again
                queued, began = moment, None
                self._forget_ranks()
            elif state and state not in (*WAITING, *GOING):
                return state, f"Slurm's job {job} ended as {state}" if state != "FAILED" else ""
            late = self._late(job, queued, began, why)
            if late or self.asked.is_set():
                told_by("scancel", job)
                return "CANCELLED", late or "asked to end"
            polls += 1
            self.asked.wait(QUICK_SECONDS if polls < QUICK_POLLS else SLOW_SECONDS)

    def _late(self, job: str, queued: float, began: float | None, why: str) -> str:
        if began is not None and time.monotonic() > began + self.limits["timeout_seconds"]:
            return f"timed out after {self.limits['timeout_seconds']:.0f} s (Slurm's job {job})"
        if began is None and time.monotonic() > queued + self.limits["queue_seconds"]:
            return (
                f"timed out after {self.limits['queue_seconds']:.0f} s in the queue: Slurm's job "
                f"{job} waits for {why or 'its turn'}"
            )
        return ""

    def _gone_hosts(self, state: str) -> list[str]:
        """Hosts of ranks that began and left no word, though nobody asked them to end."""
        if self.asked.is_set() or state == "CANCELLED":
            return []
        silent = [
            rank_host(self.directory, rank).get("host", "")
            for rank in range(self.limits["world_size"])
            if rank_word(self.directory, rank) is None
        ]
        found = sorted({host for host in silent if host})
        return found or ([""] if state in LOST_NODE else [])

    def _forget_ranks(self) -> None:
        """Begin again: remove what ranks of a job left that did not count."""
        self.restarts += 1
        for path in self.directory.glob("rank-*"):
            path.unlink(missing_ok=True)

    def _end(self, code: int, reason: str = "") -> int:
        document = {
            "jobs": self.jobs,
            "lost": self.lost,
            "restarts": self.restarts,
            "reason": reason,
        }
        path = self.directory / RESULT
        path.write_text(json.dumps(document), encoding="utf-8")
        return code


def job_state(job: str) -> tuple[str, str]:
    """State of a job and why it waits: by squeue, after its end by scontrol."""
    try:
        told = told_by("squeue", "-h", "-j", job, "-t", "all", "-o", "%T|%r").strip()
    except SlurmError as error:
        if "Invalid job id" not in str(error):
            raise
        told = ""
    if told:
        state, _, why = told.splitlines()[0].partition("|")
        return state, why
    try:
        told = told_by("scontrol", "--oneliner", "show", "job", job)
    except SlurmError as error:
        if "Invalid job id" in str(error):
            return "FORGOTTEN", ""
        raise
    return next(
        (word.partition("=")[2] for word in told.split() if word.startswith("JobState=")), ""
    ), ""


def main(directory: Path) -> int:
    """Follow the launch of a directory."""
    asked = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda number, frame: asked.set())
    limits = json.loads((directory / LIMITS).read_text(encoding="utf-8"))
    return Follower(directory, limits, asked).run()


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
