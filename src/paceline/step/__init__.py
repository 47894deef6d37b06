"""The common currency: a training step as timed tasks on resources, measured or predicted."""

from paceline.step.breakdown import Breakdown, breakdown
from paceline.step.chrome_trace import chrome_trace
from paceline.step.critical_path import critical_path
from paceline.step.profile import (
    MessageProfile,
    RankProfile,
    StepProfile,
    combined,
    profile_steps,
)
from paceline.step.schedule import Timetable, schedule
from paceline.step.serialise import step_from_json, step_to_json
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
    "Timetable",
    "breakdown",
    "chrome_trace",
    "combined",
    "critical_path",
    "profile_steps",
    "schedule",
    "step_from_json",
    "step_to_json",
]
