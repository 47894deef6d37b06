"""Families of configurations against the library itself, as hugging_face_families.json has it.

Counted with transformers 5.22: parameters with `num_parameters`, FLOP of a forward pass of two
samples of 32 tokens with PyTorch's counter, attention and experts in plain PyTorch. Parameters of
T5 1.1 are those of its weights: the library ties its head, they do not.
"""

import json
from pathlib import Path

import pytest

from paceline.workload.capture import load_user_model

FAMILIES = json.loads((Path(__file__).parent / "hugging_face_families.json").read_text())

COUNTED_OTHERWISE = {"llama4_text": 0.5, "mamba2": 0.03, "falcon_h1": 0.02, "nemotron_h": 0.02}
"""Share by which the library computes more.

Its Llama 4 sends every token through every expert; without its kernels, Mamba-2 computes what
groups share for each head.
"""
PADDED_FILTER = 0.002
"""The library filters a few tokens behind the last one too (Mamba)."""


def named(case):
    return case.get("name") or case["config"]["model_type"]


def load(folder, config):
    path = folder / "config.json"
    path.write_text(json.dumps(config))
    return load_user_model(str(path))


@pytest.mark.parametrize("case", FAMILIES["small"], ids=named)
def test_small_ones_are_those_of_the_library(tmp_path, case):
    graph = load(tmp_path, case["config"])
    cost = graph.cost(2, sequence=32) if graph.uses_sequence else graph.cost(2)
    more = COUNTED_OTHERWISE.get(case["config"]["model_type"], PADDED_FILTER)
    assert cost.parameters == case["parameters"]
    assert (1 - more) * case["flops"] <= cost.forward_flops <= case["flops"]


@pytest.mark.parametrize("case", FAMILIES["published"], ids=named)
def test_published_sizes_have_their_parameters(tmp_path, case):
    assert load(tmp_path, case["config"]).cost(1, sequence=64).parameters == case["parameters"]


@pytest.mark.parametrize(
    ("zoo_name", "name"),
    [
        ("deepseek_v3", "deepseek-v3"),
        ("kimi_k2", "kimi-k2"),
        ("qwen3_30b_a3b", "qwen3-30b-a3b"),
        ("gpt_oss_20b", "gpt-oss-20b"),
        ("llama4_scout", "llama-4-scout"),
    ],
)
def test_the_zoo_has_the_networks_that_their_configurations_describe(tmp_path, zoo_name, name):
    from paceline.workload import zoo

    (case,) = [case for case in FAMILIES["published"] if case["name"] == name]
    assert load(tmp_path, case["config"]).nodes == zoo.build(zoo_name).nodes
