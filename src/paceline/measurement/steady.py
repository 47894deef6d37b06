"""Warm-up by what the steps of a launch show, instead of by a number chosen beforehand."""

from dataclasses import replace

from paceline.statistics.warmup import Steadiness, steady_state
from paceline.store import Launch, Status


def with_found_warmup(launch: Launch) -> Launch:
    """The launch with as many steps uncounted as it took to become steady, those asked for at
    the least; its facts say what was found.

    One that never was steady, or whose last steps are too few to tell, keeps the number asked
    for; an unstable one is left out of means wherever launches are grouped.
    """
    if launch.status is not Status.FINISHED:
        return launch
    ranks = [rank.wall_seconds for rank in launch.outcome.ranks]
    found = steady_state([max(step) for step in zip(*ranks, strict=False)])
    facts = {
        **launch.outcome.facts,
        "steadiness": str(found.kind),
        "first_over_steady": found.first_over_steady if found.warmup_steps else 1.0,
    }
    steps = launch.warmup_steps
    if found.kind in (Steadiness.WARM_UP, Steadiness.SLOW_DOWN):
        steps = max(steps, found.warmup_steps)
    return replace(launch, warmup_steps=steps, outcome=replace(launch.outcome, facts=facts))
