"""The common currency: a training step as timed tasks on resources, measured or predicted."""

from paceline.step.breakdown import Breakdown, breakdown
from paceline.step.chrome_trace import chrome_trace
from paceline.step.critical_path import critical_path
from paceline.step.schedule import Timetable, schedule
from paceline.step.serialise import step_from_json, step_to_json
from paceline.step.task import Origin, Phase, Step, Task

__all__ = [
    "Breakdown",
    "Origin",
    "Phase",
    "Step",
    "Task",
    "Timetable",
    "breakdown",
    "chrome_trace",
    "critical_path",
    "schedule",
    "step_from_json",
    "step_to_json",
]
