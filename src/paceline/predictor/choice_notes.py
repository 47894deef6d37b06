"""What a prediction assumed about options that its plan leaves open."""

from collections.abc import Iterator

from paceline.constants import number
from paceline.plan.choices import ContextForm
from paceline.predictor.replica import Replica


def choice_notes(replica: Replica) -> Iterator[str]:
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
