"""What computing takes longer because tokens and experts are shared out unequally or in parts."""

from paceline.predictor.prepared import PreparedStep


def division_seconds(prepared: PreparedStep) -> float:
    """Seconds of a step; nothing of plans that share out neither tokens nor experts."""
    replica = prepared.replica
    if replica.plan.cp == 1 and replica.plan.ep == 1:
        return 0.0
    factor = prepared.work_scale * prepared.modelled_factor
    found = replica.kinds_at(prepared.work_scale, prepared.modelled_factor)
    longer = [
        (1 + again) * (own.forward_seconds - factor * alone.forward_seconds)
        + own.backward_seconds
        - factor * alone.backward_seconds
        for own, alone, again in zip(found, replica.computed, replica.kept.again, strict=True)
    ]
    return replica.micro_batches * replica.total(longer) / replica.plan.pp
