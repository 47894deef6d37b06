"""A trace as lines, tables and JSON."""

from dataclasses import asdict
from typing import Any

from paceline.explanation.trace_analysis import Remedy, TraceAnalysis
from paceline.explanation.trace_levels import top_operations, trace_levels
from paceline.render.safe_text import printable, shorten
from paceline.render.table import Column, Table
from paceline.step.exchanges import exchanges_by_group
from paceline.step.step_profile import StepProfile
from paceline.units import format_bandwidth, format_bytes, format_seconds, plural

SHOWN_REMEDIES = 4


def trace_lines(found: TraceAnalysis) -> list[str]:
    """Summary of the trace and the verdict."""
    trace, remedies, profile = found.trace, found.remedies, found.profile
    ranks = len(profile.ranks)
    head = (
        f"{trace.program} trace: {plural(len(trace.training_steps), 'step')} of "
        f"{plural(ranks, 'rank')}, {format_seconds(profile.step_seconds)} per step"
    )
    levels = trace_levels(trace.training_steps)
    lines = [head, *([levels.verdict] if levels is not None else [])]
    if ranks > 1:
        lines.append(
            f"Variation of the same operation costs {max(0.0, remedies.slowdown - 1):.1%} "
            f"(slowdown {remedies.slowdown:.3f}): "
            f"{format_seconds(remedies.replayed_seconds)} in replay, "
            f"{format_seconds(remedies.ideal_seconds)} with usual durations. Delays between "
            f"operations cost {remedies.launching - 1:.1%}."
        )
        lines.append(verdict(found))
    exposed, step = profile.exposed_seconds, profile.step_seconds
    if profile.messages or exposed > 0:
        busy = exposed + profile.hidden_seconds
        lines.append(
            f"Communication: {format_seconds(exposed)} exposed ({exposed / step:.0%} of the step), "
            f"{format_seconds(profile.hidden_seconds)} overlapped"
            + (f" ({profile.hidden_seconds / busy:.0%})." if busy > 0 else ".")
        )
    return lines


def levels_table(found: TraceAnalysis) -> Table | None:
    """Compute, exposed communication and idle time; None without a step."""
    levels = trace_levels(found.trace.training_steps)
    if levels is None:
        return None
    rows = [*levels.parts.items(), ("step", levels.step_seconds)]
    return Table(
        (
            Column("level"),
            Column("time", "ms", scale=1e3),
            Column("share", "%", scale=100, decimals=0),
        ),
        tuple((name, seconds, seconds / levels.step_seconds) for name, seconds in rows),
        title="Where a step goes",
        note="Mean over steps and ranks; each instant has one level. Host wait: the host works "
        "meanwhile. Kernel gaps: up to 20 us between two operations.",
    )


def operations_table(found: TraceAnalysis) -> Table:
    """The operations that take most of the time."""
    return Table(
        (
            Column("operation"),
            Column("phase"),
            Column("calls", decimals=1),
            Column("time", "ms", scale=1e3),
        ),
        tuple(
            (shorten(printable(name), 60), phase, calls, seconds)
            for name, phase, calls, seconds in top_operations(found.trace.training_steps)
        ),
        title="Longest operations",
        note="Per step and rank; operations may overlap.",
    )


def verdict(found: TraceAnalysis) -> str:
    """The rank or stage whose fix gains most, in one sentence."""
    cause = found.remedies.cause
    if cause is None:
        return "No straggler: no fix of a single rank or stage gains more than 1 %."
    return (
        f"{cause.what} is slow: at usual speed, the step would take "
        f"{format_seconds(cause.step_seconds)} (speed-up {cause.speed_up:.3f})."
    )


def remedies_table(found: TraceAnalysis) -> Table | None:
    """The best fixes by stage, rank and operation."""
    rows: list[tuple[str, str, float, float]] = []
    for group in dict.fromkeys(one.group for one in found.remedies.remedies):
        own = [one for one in found.remedies.remedies if one.group == group]
        rows += [(group, one.what, one.step_seconds, one.speed_up) for one in own[:SHOWN_REMEDIES]]
    if not rows:
        return None
    return Table(
        (
            Column("by"),
            Column("fixed"),
            Column("step", "ms", scale=1e3, decimals=1),
            Column("speed-up", decimals=3),
        ),
        tuple(rows),
        title="Gain from each fix",
        note="Fixed: the operation takes its mean over ranks and steps (messages: the median). "
        "The best of each kind; --json has all.",
    )


def messages_lines(profile: StepProfile) -> list[str]:
    """Number, size and bandwidth of the messages of a step, if sizes are known."""
    sizes = [message for message in profile.messages if message.size_bytes > 0]
    if not sizes:
        return []
    total, seconds = sum(m.size_bytes for m in sizes), sum(m.seconds for m in sizes)
    rate = f", {format_bandwidth(total / seconds)} once all ranks arrived" if seconds > 0 else ""
    return [
        f"Messages: {len(sizes)}, {format_bytes(total)} in total, the largest "
        f"{format_bytes(max(m.size_bytes for m in sizes))}{rate}."
    ]


def groups_table(found: TraceAnalysis) -> Table | None:
    """Messages of the typical step by process group; None if no group is named."""
    rows = exchanges_by_group(found.typical)
    if not rows:
        return None
    return Table(
        (
            Column("group"),
            Column("messages", decimals=0),
            Column("size", "MB", scale=1e-6, decimals=1),
            Column("in flight", "ms", scale=1e3, decimals=1),
            Column("exposed", "ms", scale=1e3, decimals=1),
        ),
        tuple(
            (one.group, one.messages, one.size_bytes, one.busy_seconds, one.exposed_seconds)
            for one in rows
        ),
        title="Messages by process group",
        note="Mean over the ranks of the typical step. Exposed: while the rank does not compute.",
    )


def trace_json(found: TraceAnalysis) -> dict[str, Any]:
    trace, remedies, profile = found.trace, found.remedies, found.profile
    cause, levels = remedies.cause, trace_levels(trace.training_steps)
    return {
        "program": trace.program,
        "steps": len(trace.training_steps),
        "ranks": len(profile.ranks),
        "unread": trace.unread,
        "warnings": list(trace.warnings),
        "step_seconds": profile.step_seconds,
        "exposed_communication_seconds": profile.exposed_seconds,
        "hidden_communication_seconds": profile.hidden_seconds,
        "verdict": None if levels is None else levels.verdict,
        "levels": {} if levels is None else dict(levels.parts),
        "operations": [
            {"name": name, "phase": phase, "calls": calls, "seconds": seconds}
            for name, phase, calls, seconds in top_operations(trace.training_steps)
        ],
        "replayed_seconds": remedies.replayed_seconds,
        "ideal_seconds": remedies.ideal_seconds,
        "slowdown": remedies.slowdown,
        "launching": remedies.launching,
        "cause": None if cause is None else cause.what,
        "repairs": [_remedy_json(one) for one in remedies.remedies],
        "messages": [{"size_bytes": m.size_bytes, "seconds": m.seconds} for m in profile.messages],
        "groups": [asdict(one) for one in exchanges_by_group(found.typical)],
        "ranks_phases": [
            {
                "rank": rank.rank,
                "last_share": rank.last_share,
                **{f"{phase}_seconds": seconds for phase, seconds in rank.phases.items()},
            }
            for rank in profile.ranks
        ],
    }


def _remedy_json(one: Remedy) -> dict[str, Any]:
    return {
        "by": one.group,
        "repaired": one.what,
        "step_seconds": one.step_seconds,
        "speed_up": one.speed_up,
    }
