"""Attention in training: its backward rate, and the kernel that a program uses."""

import pytest

import paceline as pl
from paceline.constants import number
from paceline.hardware import catalogue
from paceline.predictor.kernels.efficiency import FLASH_2, load_efficiency


def factor(device):
    efficiency = load_efficiency().of_program(catalogue.device(device), FLASH_2)
    return efficiency.product_factor("attention")


def test_flash_attention_2_runs_at_the_rate_of_ampere_on_hopper():
    per_clock = 989e12 / (132 * 1980e6)
    assert factor("h100_sxm_80gb") == pytest.approx(2048 / per_clock, rel=1e-3)


@pytest.mark.parametrize("device", ["a100_sxm_80gb", "l40s", "b200_sxm", "v100_sxm2_16gb"])
def test_other_devices_lose_nothing_with_it(device):
    assert factor(device) == 1.0


def test_the_kernel_of_the_vendor_is_not_limited():
    efficiency = load_efficiency()
    own = efficiency.of_program(catalogue.device("h100_sxm_80gb"), "")
    assert own.product_factor("attention") == efficiency.product_factor("attention")


@pytest.mark.parametrize(
    ("device", "kernel", "is_vendors"),
    [
        ("h100_sxm_80gb", "", True),
        ("h100_sxm_80gb", "flash-2", False),
        ("b200_sxm", "flash-2", True),
        ("a100_sxm_80gb", "", False),
    ],
)
def test_backward_of_the_vendor_has_its_own_rate(device, kernel, is_vendors):
    efficiency = load_efficiency()
    own = efficiency.of_program(catalogue.device(device), kernel)
    shared = efficiency.product_factor("attention_input_gradient")
    wanted = number("kernels.limits.vendor_attention_gradient") if is_vendors else shared
    assert own.product_factor("attention_input_gradient") == wanted


def test_long_sequences_take_longer_under_pytorch_than_under_megatron():
    job = {"device": "h100_sxm_80gb", "seq": 32768, "batch": 1, "recompute": "full"}
    torch, megatron = (
        pl.predict("llama3_8b", framework=name, **job) for name in ("torch-fsdp", "megatron-core")
    )
    attention = [
        part.profile.name.endswith("attention.scores") for part in torch.timeline.step.parts.kinds
    ]
    slow, fast = (each.timeline.step.layers.forward[attention][0] for each in (torch, megatron))
    assert slow > 1.7 * fast


def test_backward_of_attention_is_slower_per_operation_than_forward():
    found = pl.predict("llama3_8b", device="a100_sxm_80gb", seq=16384, batch=1, recompute="full")
    step = found.timeline.step
    (kind,) = [
        number
        for number, part in enumerate(step.parts.kinds)
        if part.profile.name.endswith("attention.scores")
    ]
    # Backward has five GEMMs where forward has two.
    assert step.layers.backward[kind] > 1.2 * 2.5 * step.layers.forward[kind]
