"""A training step as timed tasks on resources, measured or predicted."""

from paceline.step.breakdown import Breakdown, breakdown
from paceline.step.task import Origin, Phase, Step, Task

__all__ = ["Breakdown", "Origin", "Phase", "Step", "Task", "breakdown"]
