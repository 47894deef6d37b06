"""Detects warm-up from the steps of a launch instead of a fixed number of steps."""

from dataclasses import replace

from paceline.stats.warmup import Steadiness, steady_state
from paceline.store import Launch, Status


def with_found_warmup(launch: Launch) -> Launch:
    """The launch with its detected warm-up, at least the configured one, recorded in its facts.

    An unstable launch, or one with too few steps, keeps the configured number of steps; means
    over launches leave unstable ones out.
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
