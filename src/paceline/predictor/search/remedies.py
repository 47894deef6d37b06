"""Network losses of a plan, and changes that reduce them."""

from paceline.predictor.predict import prepare
from paceline.predictor.prediction import Prediction
from paceline.predictor.search.plan_search import PlanSearch
from paceline.predictor.whatif import WhatIf, what_if

_LEAST_LOSS = 0.05
_LEAST_GAIN = 0.01
_MOST = 4


def network_remedies(search: PlanSearch, best: Prediction) -> tuple[str, ...]:
    """Lines with the loss and the most effective changes; empty if the loss is small."""
    losses = best.losses
    lost = losses["network"] + losses["links within a replica"]
    if lost < _LEAST_LOSS * best.step_seconds:
        return ()
    job = prepare(
        best.workload,
        best.cluster,
        best.plan,
        efficiency=search.efficiency,
        program=search.program,
    )
    found = [change for change in what_if(job) if _is_about_networks(change)]
    worth = [own for own in found if own.saved_seconds > _LEAST_GAIN * own.base_seconds]
    worth = sorted(worth, key=lambda own: own.step_seconds)[:_MOST]
    changes = ", ".join(
        f"{own.change} ({own.saved_seconds / own.base_seconds:.0%})" for own in worth
    )
    return (
        f"Plan 1 loses {lost / best.step_seconds:.0%} of its step to communication.",
        f"Savings per step: {changes}." if changes else "No tested change saves 1 % of the step.",
    )


def _is_about_networks(change: WhatIf) -> bool:
    """Whether a change concerns networks, fits in memory and is realistic (not "free")."""
    if change.fits is False or change.change.endswith(" free"):
        return False
    if change.kind == "resource":
        return "links in a node" in change.change or "network" in change.change
    return not change.change.startswith("recompute")
