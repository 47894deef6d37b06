"""Steps to compare: a measured step, and another measured or predicted one."""

from collections.abc import Sequence

from paceline.analysis.configurations import job_key
from paceline.calibration.measured_job import measured_job
from paceline.errors import InputError
from paceline.hardware.machine_profile import MachineProfile
from paceline.step import Step
from paceline.store import Launch, Status

PREDICTED = "predicted"
"""Name of the predicted step as a reference."""


def kept_step(launches: Sequence[Launch], processes: int | None = None) -> tuple[Launch, Step]:
    """The launch with ``processes`` (default: the most) that recorded a step with its tasks."""
    kept = [
        (launch, launch.outcome.timeline)
        for launch in launches
        if launch.outcome.timeline is not None
        and launch.status is Status.FINISHED
        and launch.synchronised
        and processes in (None, launch.world_size)
    ]
    if not kept:
        raise InputError(
            "no launch recorded a step to compare",
            "use 'paceline run', 'measure --instrument phases' or import a trace",
        )
    return max(kept, key=lambda pair: (pair[0].world_size, pair[0].instrument != "layers"))


def predicted_step(
    launches: Sequence[Launch], like: Launch, profile: MachineProfile | None
) -> Step:
    """The predicted step of a launch, from launches of its job on one process."""
    own = [one for one in launches if job_key(one) == job_key(like)]
    return measured_job(own).on_processes(like.world_size, profile).step
