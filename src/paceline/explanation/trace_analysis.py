"""Analysis of a trace: phases, stragglers, communication and gains of fixes."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from paceline.errors import InputError
from paceline.explanation.trace_remedies import RemedyAnalysis, analyse_remedies
from paceline.importers.traces import ParsedTrace, read_trace
from paceline.step import Step, StepProfile, profile_steps
from paceline.step.clocks import align_clocks


@dataclass(frozen=True)
class TraceAnalysis:
    """A trace, the mean of its steps by rank and phase, and the gains of fixes.

    ``typical`` is the recorded step of median length, with all ranks on one clock.
    """

    trace: ParsedTrace
    profile: StepProfile
    remedies: RemedyAnalysis
    typical: Step


def analyse_trace(paths: Sequence[Path], program: str | None = None) -> TraceAnalysis:
    """Read and analyse a trace of one file, or of one file per rank."""
    trace = read_trace(paths, program)
    steps = trace.training_steps
    counted = steps[1:] if len(steps) > 1 and not trace.common_clock else steps
    profile, typical = profile_steps(counted), trace.typical_step
    remedies = analyse_remedies(counted, trace.coordinates, trace.common_clock)
    if profile is None or remedies is None or typical is None:
        raise InputError(
            f"{paths[0]} has no training step"
            + (f"; {trace.unread} entries could not be read" if trace.unread else ""),
            "record at least one whole training step",
        )
    shown = typical if trace.common_clock else align_clocks(typical)
    return TraceAnalysis(trace, profile, remedies, shown)
