"""Which steps are set side by side: that of a configuration, and the one it is compared with."""

from collections.abc import Sequence

from paceline.analyse.groups import job_key
from paceline.analyse.measured_job import measured_job
from paceline.errors import InputError
from paceline.hardware.profile import MachineProfile
from paceline.step import Step
from paceline.store import Launch, Status

PREDICTED = "predicted"
"""What a measured step is compared with where nothing else is named."""


def kept_step(launches: Sequence[Launch], processes: int | None = None) -> tuple[Launch, Step]:
    """The launch of the most processes, or of so many, that kept a step with its tasks."""
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
            "no launch kept a step to compare",
            "those of 'run', of imported traces and of 'measure --instrument phases' do",
        )
    return max(kept, key=lambda pair: (pair[0].world_size, pair[0].instrument != "layers"))


def predicted_step(
    launches: Sequence[Launch], like: Launch, profile: MachineProfile | None
) -> Step:
    """The step that is predicted for a launch from those of its job on one process."""
    own = [one for one in launches if job_key(one) == job_key(like)]
    return measured_job(own).on_processes(like.world_size, profile).step
