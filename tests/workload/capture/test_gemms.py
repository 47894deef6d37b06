"""Products of single operations against PyTorch's own counter, and where that one is wrong."""

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402
from torch.utils.flop_counter import FlopCounterMode  # noqa: E402

import paceline  # noqa: E402
from paceline.workload.capture.gemms import CapturedGemm, products_of  # noqa: E402

pytestmark = pytest.mark.torch


class Attention(nn.Module):
    def __init__(self, kv_heads=4):
        super().__init__()
        self.query = nn.Linear(16, 32)
        self.rest = nn.Linear(16, 2 * 8 * kv_heads)
        self.kv_heads = kv_heads

    def forward(self, x):
        query = self.query(x).unflatten(-1, (4, 8)).transpose(1, 2)
        key, value = (
            part.unflatten(-1, (self.kv_heads, 8)).transpose(1, 2)
            for part in self.rest(x).chunk(2, dim=-1)
        )
        return nn.functional.scaled_dot_product_attention(
            query, key, value, is_causal=True, enable_gqa=self.kv_heads != 4
        )


MODULES = {
    "linear": (nn.Linear(7, 5), (3, 7)),
    "linear over tokens": (nn.Linear(7, 5), (3, 4, 7)),
    "bilinear upsampling": (
        nn.Sequential(nn.Conv2d(2, 2, 1), nn.Upsample(scale_factor=2)),
        (2, 2, 4, 4),
    ),
    "strided": (nn.Conv2d(3, 6, 5, stride=2, padding=1), (2, 3, 17, 15)),
    "dilated": (nn.Sequential(nn.Conv2d(3, 4, 1), nn.Conv2d(4, 6, 3, dilation=2)), (2, 3, 12, 12)),
    "transposed": (
        nn.Sequential(nn.Conv1d(3, 4, 1), nn.ConvTranspose1d(4, 6, 5, stride=3)),
        (2, 3, 9),
    ),
    "three dimensions": (nn.Conv3d(2, 3, 2), (2, 2, 4, 5, 6)),
    "recurrent": (nn.RNN(4, 6, batch_first=True), (3, 5, 4)),
    "multi-head": (
        nn.TransformerEncoderLayer(16, 4, 32, dropout=0.1, batch_first=True),
        (2, 6, 16),
    ),
}


@pytest.mark.parametrize("name", MODULES)
def test_forward_and_backward_are_those_of_torch(name):
    module, shape = MODULES[name]
    cost = paceline.capture(module, torch.randn(shape)).cost(shape[0])
    with FlopCounterMode(display=False) as counter:
        output = module(torch.randn(shape))
        forward = counter.get_total_flops()
        (output[0] if isinstance(output, tuple) else output).sum().backward()
    assert cost.forward_flops == forward
    assert cost.training_flops == counter.get_total_flops()


@pytest.mark.parametrize("kv_heads", [4, 2, 1])
def test_fused_attention_is_counted_which_torch_drops_on_a_cpu(kv_heads):
    module, x = Attention(kv_heads), torch.randn(2, 10, 16)
    cost = paceline.capture(module, x).cost(2)
    with FlopCounterMode(display=False) as counter:
        module(x).sum().backward()
    dropped = 3 * 2 * 2 * (2 * 4) * 10 * 10 * 8  # two products forward, four backward
    assert cost.training_flops == counter.get_total_flops() + dropped
    written_out = module.to("meta")
    with FlopCounterMode(display=False) as counter:
        written_out(x.to("meta")).sum().backward()
    assert cost.training_flops == counter.get_total_flops()


def test_the_weight_gradient_of_a_grouped_convolution_is_not_multiplied_by_its_groups():
    module, x = nn.Conv2d(8, 8, 3, groups=4, padding=1), torch.randn(2, 8, 6, 6)
    cost = paceline.capture(module, x).cost(2)
    one_way = 2 * 2 * 8 * 2 * 9 * 36
    assert cost.forward_flops == one_way
    assert cost.backward_flops == one_way
    with FlopCounterMode(display=False) as counter:
        module(x).sum().backward()
    assert counter.get_total_flops() == one_way + 4 * one_way


def test_an_operation_without_products_has_none():
    assert products_of("aten::relu", (torch.randn(3),), torch.randn(3)) is None


def test_a_product_counts_two_for_each_multiplication():
    assert CapturedGemm(2, 3, 5, 7).flops == 2 * 2 * 3 * 5 * 7
