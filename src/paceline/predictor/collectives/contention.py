"""What happens to a collective when others use its link at the same time."""

import dataclasses

from paceline.predictor.collectives.cost import Choice, CollectiveCost, VariantCost
from paceline.predictor.collectives.group import Numbers


def contended(cost: CollectiveCost, jobs: Numbers, penalty: float = 0.0) -> CollectiveCost:
    """``cost`` while ``jobs`` equal collectives, its own included, share the same link.

    Each gets an equal part of the bandwidth; latencies do not add up. ``penalty`` is what each
    further job costs on top, as a fraction of the transfer alone. Up to 16 concurrent
    all-reduces of 10 MiB on one link took what equal parts say within 10 %
    (HKBU-HPML/dl-scheduling), so it is zero unless measured. Groups of one job that share the
    cards of a node are said by `Group.concurrent_groups` instead.
    """
    stretch = jobs + penalty * (jobs - 1)

    def slowed(variant: VariantCost) -> VariantCost:
        return dataclasses.replace(variant, seconds_per_byte=variant.seconds_per_byte * stretch)

    choices = tuple(
        Choice(tuple(slowed(variant) for variant in choice.variants), choice.limits, choice.applies)
        for choice in cost.choices
    )
    return dataclasses.replace(cost, choices=choices)
