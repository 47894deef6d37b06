"""Notes of a prediction: assumptions and unknowns."""

from collections.abc import Iterator

from paceline.constants import number
from paceline.predictor.partition.replica import Replica
from paceline.predictor.plan.plan_choices import ContextForm
from paceline.predictor.step_model import StepModel
from paceline.predictor.uncertainty.correction_table import shipped_corrections
from paceline.workload.capture_notes import capture_notes


def prediction_notes(prepared: StepModel) -> tuple[str, ...]:
    """Sources, unknowns and limits of a prediction."""
    notes = []
    if prepared.evidence.source:
        notes.append(prepared.evidence.source)
    if prepared.cluster.bandwidth_spread:
        notes.append(prepared.cluster.notes or "assumes default links (not stated)")
    if prepared.input_seconds == 0 and prepared.evidence.input_seconds is None:
        notes.append("assumes the input pipeline keeps up")
    if prepared.variation is None and prepared.colocated is None and prepared.plan.devices > 1:
        notes.append("assumes equally fast workers (no measured jitter)")
    if prepared.workload.cost.training_flops == 0:
        notes.append("FLOP and activations of the layers are unknown: memory is a lower bound")
    if prepared.plan.tp > 1 and not prepared.replica.sharding.divides:
        notes.append("tp divides no layer of this model: every device computes all of them")
    notes += _choices(prepared.replica)
    notes += [*prepared.applied.notes, *capture_notes(prepared.workload.graph)]
    if prepared.evidence.launches == 0:
        notes += _outside_domain(prepared)
    return tuple(notes)


def _choices(replica: Replica) -> Iterator[str]:
    """One note per default that was chosen for the user."""
    plan = replica.plan
    if plan.cp > 1 and plan.context_form is None:
        form, title = replica.context_form, replica.framework.title
        yield f"assumes {form} context parallelism, the default of {title} (--cp-form)"
    if plan.cp > 1 and replica.context_form is not ContextForm.ULYSSES:
        yield (
            f"assumes that attention in {plan.cp} parts takes "
            f"{number('parallelism.context.in_parts') - 1:.0%} longer than in one piece (a prior, "
            "included in the interval)"
        )
    if plan.ep > 1 and plan.expert_imbalance is None:
        yield (
            f"assumes {replica.expert_imbalance:g} times the mean load on the busiest of {plan.ep} "
            f"expert-parallel devices, ± {number('parallelism.experts.spread'):.0%} "
            "(--expert-imbalance)"
        )


def _outside_domain(prepared: StepModel) -> Iterator[str]:
    """Properties outside the validated domain."""
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
        missing = ", ".join(outside)
        yield f"outside the validated domain: published measurements have {missing}"
