"""What a prediction rests on, in sentences: what was assumed, and what nobody knows."""

from collections.abc import Iterator

from paceline.constants import number
from paceline.plan.choices import ContextForm
from paceline.predictor.corrections.table import shipped_corrections
from paceline.predictor.prepared import PreparedStep
from paceline.predictor.replica import Replica
from paceline.workload.capture_notes import capture_notes


def prediction_notes(prepared: PreparedStep) -> tuple[str, ...]:
    """Where the numbers come from, what is not known, and what the plan cannot do."""
    notes = []
    if prepared.evidence.source:
        notes.append(prepared.evidence.source)
    if prepared.cluster.bandwidth_spread:
        notes.append(prepared.cluster.notes or "links are assumed, not stated")
    if prepared.input_seconds == 0 and prepared.evidence.input_seconds is None:
        notes.append("reading and preparing the input is taken to keep up")
    if prepared.variation is None and prepared.colocated is None and prepared.plan.devices > 1:
        notes.append("workers are taken to be equally fast: nobody measured their spread here")
    if prepared.workload.cost.training_flops == 0:
        notes.append("what the layers compute and keep is not known: memory is a lower bound")
    if prepared.plan.tp > 1 and not prepared.replica.sharding.divides:
        notes.append("no layer of this model can be divided by tp: every device does it all")
    notes += _choices(prepared.replica)
    notes += [*prepared.applied.notes, *capture_notes(prepared.workload.graph)]
    if prepared.evidence.launches == 0:
        notes += _outside_domain(prepared)
    return tuple(notes)


def _choices(replica: Replica) -> Iterator[str]:
    """One sentence for each choice that was made for the user."""
    plan = replica.plan
    if plan.cp > 1 and plan.context_form is None:
        usual = replica.framework.title
        yield f"tokens are shared out as {usual} does it: {replica.context_form} (--cp-form)"
    if plan.cp > 1 and replica.context_form is not ContextForm.ULYSSES:
        yield (
            f"attention in {plan.cp} parts is taken to need "
            f"{number('parallelism.context.in_parts') - 1:.0%} more time than in one piece: a "
            "prior, whose width the interval has"
        )
    if plan.ep > 1 and plan.expert_imbalance is None:
        yield (
            f"the busiest of {plan.ep} devices with experts is taken to have "
            f"{replica.expert_imbalance:g} times the mean load, within about "
            f"{number('parallelism.experts.spread'):.0%} (--expert-imbalance)"
        )


def _outside_domain(prepared: PreparedStep) -> Iterator[str]:
    """What of a prediction lies outside the validated domain; nothing if all is inside."""
    published = shipped_corrections()
    outside = [
        f"no {what} '{name}'"
        for what, known, name in (
            ("device", published.devices, prepared.cluster.device.name),
            ("framework", published.frameworks, prepared.framework.name),
        )
        if name not in known
    ]
    if prepared.plan.devices > published.most_devices:
        outside.append(f"no job of more than {published.most_devices} devices")
    if outside:
        told = ", ".join(outside)
        yield f"outside the validated domain: among published measurements {told}"
