"""A training step as timed tasks on resources, measured or predicted."""

from paceline.step.breakdown import Breakdown, breakdown
from paceline.step.step_profile import (
    MessageProfile,
    RankProfile,
    StepProfile,
    mean_profile,
    profile_steps,
)
from paceline.step.task import Origin, Phase, Step, Task

__all__ = [
    "Breakdown",
    "MessageProfile",
    "Origin",
    "Phase",
    "RankProfile",
    "Step",
    "StepProfile",
    "Task",
    "breakdown",
    "mean_profile",
    "profile_steps",
]
