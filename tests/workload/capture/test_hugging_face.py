"""Configurations of published weights against the published parameter counts."""

import json

import pytest

from paceline.errors import InputError, UnknownNameError
from paceline.workload.capture import load_user_model

BERT = {
    "model_type": "bert",
    "hidden_size": 768,
    "num_hidden_layers": 12,
    "num_attention_heads": 12,
    "intermediate_size": 3072,
    "vocab_size": 30522,
    "max_position_embeddings": 512,
    "type_vocab_size": 2,
}
LLAMA = {
    "model_type": "llama",
    "hidden_size": 4096,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 32,
    "intermediate_size": 11008,
    "vocab_size": 32000,
    "max_position_embeddings": 4096,
    "tie_word_embeddings": False,
}
MISTRAL = LLAMA | {
    "model_type": "mistral",
    "num_key_value_heads": 8,
    "intermediate_size": 14336,
    "max_position_embeddings": 32768,
}
PYTHIA = {
    "model_type": "gpt_neox",
    "hidden_size": 512,
    "num_hidden_layers": 6,
    "num_attention_heads": 8,
    "intermediate_size": 2048,
    "vocab_size": 50304,
    "max_position_embeddings": 2048,
}

SMALL_LLAMA4 = LLAMA | {
    "model_type": "llama4_text",
    "intermediate_size_mlp": 112,
    "num_local_experts": 4,
    "num_experts_per_tok": 1,
}
T5 = {
    "model_type": "t5",
    "d_model": 64,
    "d_kv": 16,
    "d_ff": 96,
    "num_layers": 2,
    "num_heads": 4,
    "vocab_size": 320,
}

PUBLISHED = {
    "gpt2": (
        {
            "model_type": "gpt2",
            "n_embd": 768,
            "n_layer": 12,
            "n_head": 12,
            "vocab_size": 50257,
            "n_positions": 1024,
        },
        124_439_808,
    ),
    "llama-2-7b": (LLAMA, 6_738_415_616),
    "mistral-7b": (MISTRAL, 7_241_732_096),
    "mixtral-8x7b": (
        MISTRAL | {"model_type": "mixtral", "num_local_experts": 8, "num_experts_per_tok": 2},
        46_702_792_704,
    ),
    "opt-125m": (
        {
            "model_type": "opt",
            "hidden_size": 768,
            "num_hidden_layers": 12,
            "num_attention_heads": 12,
            "ffn_dim": 3072,
            "vocab_size": 50272,
            "max_position_embeddings": 2048,
        },
        125_239_296,
    ),
    "pythia-70m": (PYTHIA, 70_426_624),
    "qwen2-0.5b": (
        {
            "model_type": "qwen2",
            "hidden_size": 896,
            "num_hidden_layers": 24,
            "num_attention_heads": 14,
            "num_key_value_heads": 2,
            "intermediate_size": 4864,
            "vocab_size": 151936,
            "tie_word_embeddings": True,
        },
        494_032_768,
    ),
    "qwen3-0.6b": (
        {
            "model_type": "qwen3",
            "hidden_size": 1024,
            "num_hidden_layers": 28,
            "num_attention_heads": 16,
            "num_key_value_heads": 8,
            "head_dim": 128,
            "intermediate_size": 3072,
            "vocab_size": 151936,
            "tie_word_embeddings": True,
        },
        596_049_920,
    ),
    "phi-2": (
        {
            "model_type": "phi",
            "hidden_size": 2560,
            "num_hidden_layers": 32,
            "num_attention_heads": 32,
            "intermediate_size": 10240,
            "vocab_size": 51200,
        },
        2_779_683_840,
    ),
    "gemma-2b": (
        {
            "model_type": "gemma",
            "hidden_size": 2048,
            "num_hidden_layers": 18,
            "num_attention_heads": 8,
            "num_key_value_heads": 1,
            "head_dim": 256,
            "intermediate_size": 16384,
            "vocab_size": 256000,
        },
        2_506_172_416,
    ),
    "falcon-7b": (
        {
            "model_type": "falcon",
            "hidden_size": 4544,
            "num_hidden_layers": 32,
            "num_attention_heads": 71,
            "vocab_size": 65024,
            "multi_query": True,
            "parallel_attn": True,
            "bias": False,
        },
        6_921_720_704,
    ),
    "bloom-560m": (
        {
            "model_type": "bloom",
            "hidden_size": 1024,
            "n_layer": 24,
            "n_head": 16,
            "vocab_size": 250880,
        },
        559_214_592,
    ),
    "gpt-j-6b": (
        {
            "model_type": "gptj",
            "n_embd": 4096,
            "n_layer": 28,
            "n_head": 16,
            "vocab_size": 50400,
            "n_positions": 2048,
        },
        6_050_882_784,
    ),
    "gpt-neo-125m": (
        {
            "model_type": "gpt_neo",
            "hidden_size": 768,
            "num_layers": 12,
            "num_heads": 12,
            "vocab_size": 50257,
            "max_position_embeddings": 2048,
        },
        125_198_592,
    ),
    "mpt-7b": (
        {
            "model_type": "mpt",
            "d_model": 4096,
            "n_layers": 32,
            "n_heads": 32,
            "vocab_size": 50432,
            "max_seq_len": 2048,
            "no_bias": True,
        },
        6_649_286_656,
    ),
    "starcoder": (
        {
            "model_type": "gpt_bigcode",
            "n_embd": 6144,
            "n_layer": 40,
            "n_head": 48,
            "n_inner": 24576,
            "vocab_size": 49152,
            "n_positions": 8192,
            "multi_query": True,
        },
        15_517_456_384,
    ),
    "bert for masked words": (BERT | {"architectures": ["BertForMaskedLM"]}, 109_514_298),
    "bert for pre-training": (BERT | {"architectures": ["BertForPreTraining"]}, 110_106_428),
    "bert as a classifier": (
        BERT | {"architectures": ["BertForSequenceClassification"]},
        109_483_778,
    ),
    "roberta-base": (
        BERT
        | {
            "model_type": "roberta",
            "vocab_size": 50265,
            "max_position_embeddings": 514,
            "type_vocab_size": 1,
            "architectures": ["RobertaForMaskedLM"],
        },
        124_697_433,
    ),
    "distilbert": (
        {
            "model_type": "distilbert",
            "dim": 768,
            "n_layers": 6,
            "n_heads": 12,
            "hidden_dim": 3072,
            "vocab_size": 30522,
            "max_position_embeddings": 512,
            "architectures": ["DistilBertForMaskedLM"],
        },
        66_985_530,
    ),
}


def load(folder, config):
    path = folder / "config.json"
    path.write_text(json.dumps(config))
    return load_user_model(str(path))


@pytest.mark.parametrize("name", PUBLISHED)
def test_parameters_are_those_of_the_published_weights(tmp_path, name):
    config, parameters = PUBLISHED[name]
    assert load(tmp_path, config).cost(1, sequence=128).parameters == parameters


def test_the_graph_takes_any_sequence_and_defaults_to_the_longest(tmp_path):
    graph = load(tmp_path, LLAMA)
    assert graph.sequence == 4096
    per_token = graph.cost(1, sequence=256).forward_flops / 256
    embedding = 32000 * 4096
    scores = 32 * 2 * 2 * 256 * 4096
    norms = (2 * 32 + 1) * 4096
    assert per_token == 2 * (6_738_415_616 - embedding - norms) + scores


def test_llama_is_the_zoos(tmp_path):
    from paceline.workload import zoo

    read, known = load(tmp_path, LLAMA).cost(2), zoo.build("llama2_7b").cost(2)
    assert read.training_flops == known.training_flops
    assert read.activation_bytes == known.activation_bytes


def test_gpt2_by_name_is_the_graph_of_its_configuration(tmp_path):
    from paceline.workload import zoo

    sizes = {"n_embd": 768, "n_layer": 12, "n_head": 12, "vocab_size": 50_257, "n_positions": 1024}
    read, known = load(tmp_path, {"model_type": "gpt2"} | sizes), zoo.build("gpt2")
    assert (read.nodes, read.inputs, read.dimensions) == (
        known.nodes,
        known.inputs,
        known.dimensions,
    )


@pytest.mark.parametrize(
    ("config", "error", "message"),
    [
        ({"model_type": "lama"}, UnknownNameError, "Did you mean llama"),
        ({"architectures": ["X"]}, InputError, "no 'model_type'"),
        ({"model_type": "llama"}, InputError, "has no hidden_size"),
        (
            LLAMA | {"hidden_size": "wide"},
            InputError,
            r"hidden_size must be an integer between 1 and \d+ \(got wide\)",
        ),
        (LLAMA | {"num_key_value_heads": 5}, InputError, "32 heads are not divisible by 5"),
        (LLAMA | {"hidden_act": "swoosh"}, UnknownNameError, "activation named 'swoosh'"),
        (
            SMALL_LLAMA4 | {"moe_layers": "all"},
            InputError,
            r"moe_layers must be a list of integers \(got all\)",
        ),
        (SMALL_LLAMA4 | {"model_type": "llama4"}, InputError, "has no text_config"),
        (
            MISTRAL | {"sliding_window": 9, "layer_types": ["x"]},
            InputError,
            "one string for each of the 32 layers",
        ),
        (MISTRAL | {"model_type": "nemotron_h"}, InputError, "needs hybrid_override_pattern"),
        (
            T5 | {"feed_forward_proj": 3},
            InputError,
            r"feed_forward_proj must be a string \(got 3\)",
        ),
        (T5 | {"feed_forward_proj": "odd-relu"}, InputError, "feed_forward_proj of T5: odd-relu"),
        (
            T5 | {"architectures": ["T5ForSequenceClassification"]},
            InputError,
            "only as ...ForCausalLM",
        ),
    ],
)
def test_an_invalid_configuration_is_explained(tmp_path, config, error, message):
    with pytest.raises(error, match=message):
        load(tmp_path, config)


def test_a_file_that_is_not_json_is_refused(tmp_path):
    (tmp_path / "config.json").write_text("{")
    with pytest.raises(InputError, match="not valid JSON"):
        load_user_model(str(tmp_path / "config.json"))


HEADED = {
    "BertModel": 87_680,
    "BertForQuestionAnswering": 83_650,
    "BertForNextSentencePrediction": 87_810,
    "BertForMaskedLM": 88_128,
}
SMALL = {
    "vocab_size": 320,
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "max_position_embeddings": 64,
}
SMALL_DECODER = SMALL | {"num_key_value_heads": 2, "head_dim": 16}
EXPERTS = {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 48}


@pytest.mark.parametrize("name", HEADED)
def test_the_head_follows_from_the_architecture(tmp_path, name):
    """Counted with the library itself (transformers 5.22)."""
    config = SMALL | {"model_type": "bert", "architectures": [name]}
    assert load(tmp_path, config).cost(1).parameters == HEADED[name]


@pytest.mark.parametrize("name", ["BertForMultipleChoice", "GPT2DoubleHeadsModel"])
def test_a_head_that_is_not_known_is_refused(tmp_path, name):
    config = SMALL | {"model_type": "bert", "architectures": [name]}
    with pytest.raises(InputError, match=f"the head of {name} is not supported") as refusal:
        load(tmp_path, config)
    assert "from_config" in refusal.value.hint


@pytest.mark.parametrize(
    ("kind", "further", "parameters"),
    [("gemma2", {}, 82_496), ("gemma3_text", {}, 82_560), ("qwen3_moe", EXPERTS, 140_160)],
)
def test_later_decoders(tmp_path, kind, further, parameters):
    """Counted with the library itself (transformers 5.22)."""
    graph = load(tmp_path, SMALL_DECODER | further | {"model_type": kind})
    assert graph.cost(1).parameters == parameters


def test_expert_layers_alternate_with_dense_layers(tmp_path):
    config = SMALL_DECODER | EXPERTS | {"model_type": "qwen3_moe", "decoder_sparse_step": 2}
    kinds = {node.name: node.op.kind for node in load(tmp_path, config).nodes}
    assert kinds["blocks.1.experts"] == "moe"
    assert "blocks.0.mlp.down" in kinds
    assert "blocks.0.experts" not in kinds


def test_a_window_computes_less_and_is_not_the_whole_sequence(tmp_path):
    config = SMALL_DECODER | {"model_type": "mistral", "max_position_embeddings": 8192}
    whole, cut = (load(tmp_path, config | {"sliding_window": w}) for w in (None, 1024))
    attention = [
        next(x for x in graph.cost(1, sequence=8192).layers if x.kind == "attention")
        for graph in (whole, cut)
    ]
    assert attention[0].forward_flops == attention[1].forward_flops
    executed = [layer.forward_gemms[0].executed for layer in attention]
    assert executed[0] == pytest.approx(0.5, abs=0.01)
    assert executed[1] == pytest.approx(1024 / 8192 - 1024**2 / 2 / 8192**2 + 128 / 8192)


def test_every_other_layer_has_the_window_of_gpt_oss(tmp_path):
    further = {"num_local_experts": 4, "num_experts_per_tok": 2, "sliding_window": 16}
    graph = load(tmp_path, SMALL_DECODER | further | {"model_type": "gpt_oss"})
    assert [node.op.window for node in graph.nodes if node.op.kind == "attention"] == [16, 0]
    types = {"layer_types": ["full_attention", "sliding_attention"]}
    graph = load(tmp_path, SMALL_DECODER | further | types | {"model_type": "gpt_oss"})
    assert [node.op.window for node in graph.nodes if node.op.kind == "attention"] == [0, 16]


def test_a_multimodal_network_is_its_text_model_with_a_note(tmp_path):
    text = SMALL_DECODER | {"num_local_experts": 4, "num_experts_per_tok": 1}
    text |= {"intermediate_size_mlp": 112, "model_type": "llama4_text"}
    whole = {"model_type": "llama4", "text_config": text, "vision_config": {}}
    whole |= {"architectures": ["Llama4ForConditionalGeneration"]}
    graph = load(tmp_path, whole)
    assert graph.cost(1).parameters == load(tmp_path, text).cost(1).parameters
    assert "the image encoder is left out" in graph.notes[0]


def test_long_contexts_are_not_the_default_and_are_noted(tmp_path):
    config = SMALL_DECODER | {"model_type": "llama", "max_position_embeddings": 131_072}
    graph = load(tmp_path, config)
    assert graph.sequence == 4096
    assert "maximum 131,072" in graph.notes[0]


def test_the_name_of_a_hub_hints_at_its_configuration():
    from paceline.spec.resolve_model import graph_of

    with pytest.raises(InputError) as refusal:
        graph_of("meta-llama/Llama-3.1-8B")
    assert "config.json" in refusal.value.hint
