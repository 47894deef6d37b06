"""A workload: a network with batch, sequence, precision; and the precisions themselves."""

import pytest

from paceline.errors import InputError, UnknownNameError
from paceline.workload import Workload, precision, zoo


def test_workload_cost_equals_graph_cost():
    workload = Workload.of("gpt2", batch=4, sequence=256, precision="amp_fp16")
    assert workload.cost.training_flops == zoo.build("gpt2").cost(4, 256).training_flops
    assert workload.cost.gradient_bytes == 4 * 124_439_808
    assert workload.tokens_per_sample == 256
    assert workload.global_batch(8) == 32
    assert workload.with_batch(8).cost.training_flops == 2 * workload.cost.training_flops


def test_the_sequence_is_the_published_one_unless_given():
    assert Workload.of("gpt2", batch=1).sequence == 1024
    assert Workload.of("resnet50", batch=1).sequence is None
    assert Workload.of("resnet50", batch=1).tokens_per_sample == 1
    assert Workload.of("mpt_7b", batch=1, sequence=8192).cost.parameters == 6_684_024_832


@pytest.mark.parametrize("batch", [0, -1, 2.0])
def test_a_batch_that_cannot_be_is_refused(batch):
    with pytest.raises(InputError, match="batch must be at least 1"):
        Workload(zoo.build("resnet20"), batch)


@pytest.mark.parametrize(
    ("spelling", "name"),
    [("float32", "fp32"), ("AMP", "amp_fp16"), ("bfloat16", "bf16"), ("amp-bf16", "amp_bf16")],
)
def test_precisions_have_several_spellings(spelling, name):
    assert precision(spelling).name == name


def test_autocast_keeps_weights_and_gradients_wide():
    autocast = precision("amp_fp16")
    assert (autocast.weight_bytes, autocast.operand_bytes) == (4, 2)
    assert (autocast.activation_bytes, autocast.gradient_bytes) == (2, 4)


def test_an_unknown_precision_suggests_the_nearest():
    with pytest.raises(UnknownNameError, match=r"no precision named 'fp7'\. Did you mean fp8"):
        Workload(zoo.build("resnet20"), 1, precision="fp7")
