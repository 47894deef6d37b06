"""Runs Slurm's commands (without accounting) and explains their error messages."""

import re
import subprocess

from paceline.errors import EnvironmentUnusableError

COMMAND_SECONDS = 30
SCRIPT, LIMITS, RESULT = "launch.sbatch", "slurm-limits.json", "slurm-job.json"
"""Files of a launch: the batch script, the limits for `slurm_job` and its result."""

_CAUSES = (
    (r"[Ii]nvalid partition (?:name )?specified: (?P<what>\S+)", "Slurm has no partition '{what}'"),
    (r"[Ii]nvalid account", "the account is unknown or may not use the partition"),
    (r"[Ii]nvalid qos", "the quality of service (qos) is unknown"),
    (r"Invalid feature specification", "no node of the partition has the constraint"),
    (r"Unable to contact slurm controller|Unable to establish c\w+ ",
     "the Slurm controller does not answer"),
    (r"Requested node configuration is not available|More processors requested",
     "the partition has no nodes with enough cores"),
    (r"Node count specification invalid|PartitionNodeLimit",
     "the number of nodes exceeds the limit of the partition"),
    (r"Requested time limit is invalid", "the time limit exceeds that of the partition"),
    (r"Node failure on (?P<what>\S+)", "node {what} failed"),
    (r"(?P<what>\S+): can't (?:open file|find '__main__' module)",
     "a node does not see the directory of the launch: put the store on a shared disk (--store)"),
    (r"error: (?P<what>[^\n]+)", "{what}"),
)  # fmt: skip


REMEDY = "log in to a Slurm cluster; 'script/slurm-up' of the sources starts a private one"


class SlurmError(EnvironmentUnusableError):
    """A Slurm command failed."""

    def __init__(self, message: str) -> None:
        super().__init__(message, REMEDY)


def run_slurm(*command: str) -> str:
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=COMMAND_SECONDS,
            check=False,
        )
    except OSError as error:
        raise SlurmError(f"cannot run '{command[0]}': {error.strerror}") from error
    except subprocess.TimeoutExpired:
        raise SlurmError(f"'{command[0]}' did not answer within {COMMAND_SECONDS} s") from None
    if done.returncode != 0:
        text = done.stderr.strip() or done.stdout.strip()
        raise SlurmError(slurm_failure_cause(text) or text or f"'{command[0]}' failed")
    return done.stdout


def slurm_failure_cause(log: str) -> str:
    """Return the cause of an error message in one line; empty if there is none."""
    for pattern, cause in _CAUSES:
        found = re.search(pattern, log)
        if found:
            return cause.format(what=found.groupdict().get("what") or "")
    return ""
