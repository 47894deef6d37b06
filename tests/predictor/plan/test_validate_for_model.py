"""Plans that a network cannot follow."""

import pytest

from paceline.errors import InputError
from paceline.predictor.plan.plan import Plan
from paceline.predictor.plan.plan_choices import Recompute
from paceline.predictor.plan.validate_for_model import check_possible, check_recomputation
from paceline.workload import zoo


@pytest.mark.parametrize(
    ("model", "plan", "message", "hint"),
    [
        ("llama2_7b", Plan(dp=8, ep=8), "llama2_7b has none", "omit --ep"),
        ("mixtral_8x7b", Plan(dp=32, ep=32), "the 8 experts of mixtral_8x7b", "divides 8"),
        ("resnet50", Plan(cp=2), "needs a sequence, but resnet50 has none", "omit --cp"),
        ("llama2_7b", Plan(cp=3), "cp 3 does not divide 4096 tokens", "divides 4096"),
        ("llama2_7b", Plan(tp=3), "32 heads", "divides 32"),
    ],
)
def test_a_degree_with_nothing_to_divide_is_refused(model, plan, message, hint):
    with pytest.raises(InputError) as caught:
        check_possible(plan, zoo.build(model), None)
    assert message in caught.value.message
    assert hint in caught.value.hint


@pytest.mark.parametrize(
    ("model", "recompute", "fused", "message"),
    [
        ("resnet50", "selective", False, "resnet50 has none"),
        ("alexnet", "full", True, "needs blocks, but alexnet has none"),
    ],
)
def test_computing_again_for_nothing_is_refused(model, recompute, fused, message):
    plan = Plan(recompute=Recompute(recompute), fused_attention=fused)
    with pytest.raises(InputError, match=message):
        check_recomputation(plan, zoo.build(model))


def test_what_can_be_done_passes():
    check_possible(Plan(dp=8, ep=8), zoo.build("mixtral_8x7b"), None)
    check_possible(Plan(cp=4), zoo.build("llama2_7b"), 2048)
    check_recomputation(Plan(recompute=Recompute.FULL), zoo.build("llama2_7b"))
    unfused = Plan(recompute=Recompute.SELECTIVE, fused_attention=False)
    check_recomputation(unfused, zoo.build("llama2_7b"))
    check_recomputation(Plan(recompute=Recompute.SELECTIVE), zoo.build("llama2_7b"))
