"""Latent attention, shared and routed experts of DeepSeek-V3 by hand count.

DeepSeek-V3 report, section 4.2: width 7,168, 128 heads of 128 + 64 (keys) and 128 (values), latents
of 1,536 (queries) and 512 (keys and values), 256 experts of width 2,048 of which a token uses 8,
and one shared expert.
"""

import pytest

from paceline.workload import zoo

WIDTH, HEADS, PLAIN, ROTARY, VALUE, QUERY, LATENT = 7168, 128, 128, 64, 128, 1536, 512
EXPERTS, CHOSEN, INNER, TOKENS = 256, 8, 2048, 4096
ATTENTION = (
    WIDTH * QUERY
    + QUERY * HEADS * (PLAIN + ROTARY)
    + WIDTH * (LATENT + ROTARY)
    + LATENT * HEADS * (PLAIN + VALUE)
    + HEADS * VALUE * WIDTH
)
EXPERT = 3 * WIDTH * INNER
NORMS = 2 * WIDTH + QUERY + LATENT


@pytest.fixture(scope="module")
def block():
    profile = zoo.build("deepseek_v3").profile(TOKENS, "bf16")
    return [layer for layer in profile.layers if layer.name.startswith("blocks.30.")]


def test_parameters_of_a_block(block):
    routed = EXPERTS * (EXPERT + WIDTH)
    assert sum(layer.parameters for layer in block) == ATTENTION + NORMS + EXPERT + routed


def test_work_of_a_block(block):
    """A token uses its experts and the shared one; causal scores read half of the other tokens."""
    matrices = 2 * (ATTENTION + EXPERT * (CHOSEN + 1) + EXPERTS * WIDTH)
    scores = 2 * HEADS * (PLAIN + ROTARY + VALUE) * TOKENS
    flops = sum(float(layer.forward_flops.per_sample) for layer in block) / TOKENS
    assert matrices + scores / 2 <= flops <= 1.02 * (matrices + scores)
