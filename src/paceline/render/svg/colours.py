"""Colour classes of series and phases; distinguishable with common colour-vision deficiencies."""

from collections.abc import Iterable

from paceline.step import Phase

SERIES_COLOURS = 8
PHASES = tuple(map(str, Phase))


def series_colour(index: int) -> str:
    """Colour class of series ``index``; colours repeat after eight, marker shapes after five."""
    return f"c{index % SERIES_COLOURS + 1}"


def phase_colour(phase: str) -> str:
    """Colour class of a phase of training: computing is cool, communication is warm."""
    return f"phase-{phase}" if phase in PHASES else "phase-other"


def in_phase_order(phases: Iterable[str]) -> list[str]:
    """Each of ``phases`` once, in the order of a step; unknown names last."""
    return sorted(dict.fromkeys(phases), key=lambda p: PHASES.index(p) if p in PHASES else 99)
