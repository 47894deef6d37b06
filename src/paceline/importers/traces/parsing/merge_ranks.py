"""Merge the traces of several ranks, step by step."""

from collections.abc import Sequence

from paceline.importers.traces.parsing.parsed_trace import ParsedTrace
from paceline.step import Origin, Step


def merge_ranks(traces: Sequence[ParsedTrace]) -> ParsedTrace:
    """One trace with every rank in each step.

    Steps are matched by label, and each rank's step starts at zero, since clocks of different
    hosts cannot be compared. Steps that some ranks lack are dropped with a warning.
    """
    if len(traces) == 1:
        return traces[0]
    by_label = [{step.label: step for step in trace.steps} for trace in traces]
    common = [step.label for step in traces[0].steps if all(step.label in own for own in by_label)]
    steps = [_joined([own[label] for own in by_label]) for label in common]
    warnings = [warning for trace in traces for warning in trace.warnings]
    lost = max(len(trace.steps) for trace in traces) - len(steps)
    if lost > 0:
        warnings.append(f"dropped steps that are not in the trace of every rank: {lost}")
    ranks = [trace.ranks for trace in traces if trace.ranks is not None]
    return ParsedTrace(
        traces[0].program,
        tuple(steps),
        max([*ranks, len(traces)]),
        sum(trace.unread for trace in traces),
        tuple(dict.fromkeys(warnings)),
        traces[0].facts,
    )


def _joined(steps: Sequence[Step]) -> Step:
    return Step(
        tuple(task for step in steps for task in step.tasks),
        tuple(start for step in steps for start in step.starts),
        Origin.MEASURED,
        steps[0].label,
        dict(steps[0].metadata),
    )
