"""What Slurm's commands say: asked without accounting, and read where they complain."""

import re
import subprocess

ASKING_SECONDS = 30
SCRIPT, LIMITS, RESULT = "launch.sbatch", "slurm-limits.json", "slurm-job.json"
"""Files of a launch: what is submitted, what its follower keeps to, and what that found."""

_CAUSES = (
    (r"[Ii]nvalid partition (?:name )?specified: (?P<what>\S+)", "Slurm has no partition '{what}'"),
    (r"[Ii]nvalid account", "Slurm does not know the account, or it may not use the partition"),
    (r"[Ii]nvalid qos", "Slurm does not know the quality of service"),
    (r"Invalid feature specification", "no node of the partition has the constraint"),
    (r"Unable to contact slurm controller|Unable to establish c\w+ ",
     "Slurm's controller does not answer"),
    (r"Requested node configuration is not available|More processors requested",
     "the partition has no nodes with so many cores"),
    (r"Node count specification invalid|PartitionNodeLimit",
     "the partition does not give so many nodes"),
    (r"Requested time limit is invalid", "the partition does not give so much time"),
    (r"Node failure on (?P<what>\S+)", "node {what} failed"),
    (r"(?P<what>\S+): can't (?:open file|find '__main__' module)",
     "a node does not see the directory of the launch: put the store on a shared disk (--store)"),
    (r"error: (?P<what>[^\n]+)", "{what}"),
)  # fmt: skip


class SlurmError(Exception):
    """A command of Slurm failed; the words say why."""


def told_by(*words: str) -> str:
    """What a command of Slurm prints."""
    try:
        done = subprocess.run(
            words, capture_output=True, text=True, timeout=ASKING_SECONDS, check=False
        )
    except OSError as error:
        raise SlurmError(f"cannot run '{words[0]}': {error.strerror}") from error
    except subprocess.TimeoutExpired:
        raise SlurmError(f"'{words[0]}' did not answer within {ASKING_SECONDS} s") from None
    if done.returncode != 0:
        text = done.stderr.strip() or done.stdout.strip()
        raise SlurmError(slurm_trouble(text) or text or f"'{words[0]}' failed")
    return done.stdout


def slurm_trouble(log: str) -> str:
    """What Slurm complains of, in one line; empty if it does not."""
    for pattern, cause in _CAUSES:
        found = re.search(pattern, log)
        if found:
            return cause.format(what=found.groupdict().get("what") or "")
    return ""
