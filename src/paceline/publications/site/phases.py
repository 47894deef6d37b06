"""Phases of a measured step by network: a row each, and a sentence."""

from collections.abc import Callable, Sequence

from paceline.explanation.explain_step import Explanation
from paceline.render.table import Cell, Column, Table
from paceline.report.study_sections.prediction_section import measured_phases
from paceline.report.study_sections.verdict import counted
from paceline.step import Phase

NAMED = 3
"""Phases that a sentence names."""


def phases_table(timed: Sequence[Explanation]) -> Table:
    """Seconds of the timed step, and the share of each phase of the slowest rank."""
    present = [phase for phase in Phase if any(str(phase) in measured_phases(one) for one in timed)]
    return Table.of(
        timed,
        (Column("configuration"), lambda one: one.measured.description),
        (Column("step", "ms", scale=1e3), lambda one: one.observed.step.mean),
        *((Column(str(phase), "%", scale=100.0, decimals=1), _share(phase)) for phase in present),
        title="Phases of a step",
        note="Slowest rank of instrumented launches; each instant belongs to one phase, so "
        "overlapped communication is not included.",
    )


def describe_phases(explanation: Explanation) -> str:
    """The largest phases in a sentence."""
    shares = _shares(explanation)
    largest = sorted(shares, key=lambda phase: -shares[phase])[:NAMED]
    parts = ", ".join(f"{phase} {shares[phase]:.0%}" for phase in largest)
    first = explanation.measured.first
    return f"{first.model} on {counted(first.world_size)}: {parts}."


def _share(phase: Phase) -> Callable[[Explanation], Cell]:
    return lambda one: _shares(one).get(str(phase), 0.0)


def _shares(explanation: Explanation) -> dict[str, float]:
    phases = measured_phases(explanation)
    total = sum(phases.values())
    return {phase: seconds / total for phase, seconds in phases.items()} if total > 0 else {}
