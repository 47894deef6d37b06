"""What a plan loses to networks, and what would remove it."""

from paceline.predictor.predict import prepare
from paceline.predictor.prediction import Prediction
from paceline.predictor.search.plans import PlanSearch
from paceline.predictor.whatif import WhatIf, what_if

_WORTH_A_WORD = 0.05
_LEAST_GAIN = 0.01
_MOST = 4


def network_remedies(search: PlanSearch, best: Prediction) -> tuple[str, ...]:
    """Lines that name the loss and the changes that gain most; none where little is lost."""
    losses = best.losses
    lost = losses["network"] + losses["links within a replica"]
    if lost < _WORTH_A_WORD * best.step_seconds:
        return ()
    prepared = prepare(best.workload, best.cluster, best.plan, efficiency=search.efficiency)
    found = [change for change in what_if(prepared) if _is_about_networks(change)]
    worth = [own for own in found if own.saved_seconds > _LEAST_GAIN * own.base_seconds]
    worth = sorted(worth, key=lambda own: own.step_seconds)[:_MOST]
    changes = ", ".join(
        f"{own.change} ({own.saved_seconds / own.base_seconds:.0%})" for own in worth
    )
    return (
        f"The first loses {lost / best.step_seconds:.0%} of its step to links and networks.",
        f"What would save of the step: {changes}." if changes else "No change of these saves 1 %.",
    )


def _is_about_networks(change: WhatIf) -> bool:
    """Twice the bandwidth, other messages; what fits. What costs nothing is no remedy."""
    if change.fits is False or change.change.endswith(" free"):
        return False
    if change.kind == "resource":
        return "links in a node" in change.change or "network" in change.change
    return not change.change.startswith("recompute")
