"""Families of configurations against the library itself, as hugging_face_families.json has it.

Counted with transformers 5.22: parameters with `num_parameters`, FLOP of a forward pass of two
samples of 32 tokens with PyTorch's counter, attention and experts in plain PyTorch. Parameters of
T5 1.1 are those of its weights: the library ties its head, they do not.
"""

import json
from pathlib import Path

import pytest

from paceline.errors import InputError
from paceline.spec.resolve_model import graph_of
from paceline.workload import zoo
from paceline.workload.capture import load_user_model

LLAMA2_7B = {
    "model_type": "llama",
    "hidden_size": 4096,
    "intermediate_size": 11008,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "vocab_size": 32000,
}
LLAMA3_8B = LLAMA2_7B | {
    "intermediate_size": 14336,
    "num_key_value_heads": 8,
    "vocab_size": 128256,
    "max_position_embeddings": 8192,
    "torch_dtype": "bfloat16",
}
FAMILIES = json.loads((Path(__file__).parent / "hugging_face_families.json").read_text())

COUNTED_OTHERWISE = {
    "llama4_text": 0.5,
    "mamba2": 0.03,
    "falcon_h1": 0.02,
    "nemotron_h": 0.02,
    "granitemoehybrid": 0.03,
    "qwen3_next": 0.3,
}
"""Share by which the library computes more.

Its Llama 4 sends every token through every expert; without its kernels, Mamba-2 computes what
groups share for each head. Its Qwen3-Next fills chunks up to 64 tokens.
"""
SCALARS = {"qwen3_next": 12, "minimax": 24, "clip": -1, "siglip": -2}
"""Parameters more than the library's: a number per head of the scan, less the scale of a loss."""
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
    scalars = SCALARS.get(case["config"]["model_type"], 0)
    assert cost.parameters == case["parameters"] + scalars
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


def test_a_known_configuration_is_the_network_of_the_zoo(tmp_path):
    """Corrections belong to networks by name: the same network must get the same ones."""
    graph = load(tmp_path, LLAMA3_8B)
    assert graph.name == "llama3_8b"
    assert graph.nodes == zoo.build("llama3_8b").nodes
    assert graph.dtype == "bfloat16"
    other = load(tmp_path, LLAMA3_8B | {"num_hidden_layers": 31})
    assert other.name == "llama"


def test_a_name_of_the_hub_is_read_from_the_cache(tmp_path, monkeypatch):
    snapshot = tmp_path / "hub" / "models--meta-llama--Llama-3-8B" / "snapshots" / "0a1b"
    snapshot.mkdir(parents=True)
    (snapshot / "config.json").write_text(json.dumps(LLAMA3_8B))
    monkeypatch.setenv("HF_HOME", str(tmp_path))
    monkeypatch.delenv("HF_HUB_CACHE", raising=False)
    assert graph_of("meta-llama/Llama-3-8B").name == "llama3_8b"
    with pytest.raises(InputError, match="not in the hub cache"):
        graph_of("meta-llama/Llama-9")


def test_llava_is_its_text_model(tmp_path):
    graph = load(tmp_path, {"model_type": "llava", "text_config": {"vocab_size": 32064}})
    llama = load(tmp_path, LLAMA2_7B | {"vocab_size": 32064, "max_position_embeddings": 2048})
    assert graph.cost(1, sequence=64) == llama.cost(1, sequence=64)
    assert any("image encoder is left out" in note for note in graph.notes)


@pytest.mark.parametrize(
    ("kind", "language_model"), [("bert", "BertLMHeadModel"), ("roberta", "RobertaForCausalLM")]
)
def test_an_encoder_as_a_decoder_keeps_its_masked_head(tmp_path, kind, language_model):
    sizes = {
        "model_type": kind,
        "vocab_size": 1000,
        "hidden_size": 64,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "intermediate_size": 256,
        "max_position_embeddings": 66,
    }
    masked = load(tmp_path, sizes | {"architectures": ["BertForMaskedLM"]})
    decoder = load(tmp_path, sizes | {"architectures": [language_model]})
    assert decoder.cost(1).parameters == masked.cost(1).parameters
