"""Forty small models of Hugging Face's library with random weights and example inputs."""

from typing import Any

import torch

DECODER: dict[str, Any] = {
    "vocab_size": 320,
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 64,
    "pad_token_id": 0,
}
ENCODER: dict[str, Any] = {
    key: value for key, value in DECODER.items() if key != "num_key_value_heads"
}
GPT2: dict[str, Any] = {
    "vocab_size": 320,
    "n_embd": 64,
    "n_layer": 2,
    "n_head": 4,
    "n_positions": 64,
}
EXPERTS: dict[str, Any] = {"num_experts_per_tok": 2, "moe_intermediate_size": 48}
LATENT: dict[str, Any] = {
    "num_key_value_heads": 4,
    "kv_lora_rank": 16,
    "q_lora_rank": 24,
    "qk_rope_head_dim": 8,
    "qk_nope_head_dim": 16,
    "v_head_dim": 16,
    "n_routed_experts": 4,
    "n_group": 1,
    "topk_group": 1,
    "first_k_dense_replace": 1,
}
IMAGES: dict[str, Any] = {**ENCODER, "image_size": 32, "patch_size": 8}
SEQ2SEQ: dict[str, Any] = {
    "vocab_size": 320,
    "d_model": 64,
    "encoder_layers": 2,
    "decoder_layers": 2,
} | {
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 96,
    "decoder_ffn_dim": 96,
    "max_position_embeddings": 64,
}
OPT: dict[str, Any] = {"ffn_dim": 96, "word_embed_proj_dim": 64}

MODELS: dict[str, tuple[str, str, dict[str, Any], str]] = {
    "llama": ("LlamaConfig", "LlamaForCausalLM", DECODER, "tokens"),
    "mistral": ("MistralConfig", "MistralForCausalLM", DECODER, "tokens"),
    "qwen2": ("Qwen2Config", "Qwen2ForCausalLM", DECODER, "tokens"),
    "qwen3": ("Qwen3Config", "Qwen3ForCausalLM", {**DECODER, "head_dim": 16}, "tokens"),
    "gemma": ("GemmaConfig", "GemmaForCausalLM", {**DECODER, "head_dim": 16}, "tokens"),
    "gemma2": ("Gemma2Config", "Gemma2ForCausalLM", {**DECODER, "head_dim": 16}, "tokens"),
    "gemma3": ("Gemma3TextConfig", "Gemma3ForCausalLM", {**DECODER, "head_dim": 16}, "tokens"),
    "phi": ("PhiConfig", "PhiForCausalLM", ENCODER, "tokens"),
    "phi3": ("Phi3Config", "Phi3ForCausalLM", DECODER, "tokens"),
    "gpt_neox": ("GPTNeoXConfig", "GPTNeoXForCausalLM", ENCODER, "tokens"),
    "gptj": ("GPTJConfig", "GPTJForCausalLM", {**GPT2, "rotary_dim": 16}, "tokens"),
    "gpt2": ("GPT2Config", "GPT2LMHeadModel", GPT2, "tokens"),
    "bloom": ("BloomConfig", "BloomForCausalLM", {**GPT2, "hidden_size": 64}, "tokens"),
    "falcon": ("FalconConfig", "FalconForCausalLM", ENCODER, "tokens"),
    "gpt_bigcode": ("GPTBigCodeConfig", "GPTBigCodeForCausalLM", GPT2, "tokens"),
    "opt": ("OPTConfig", "OPTForCausalLM", {**ENCODER, **OPT}, "tokens"),
    "stablelm": ("StableLmConfig", "StableLmForCausalLM", DECODER, "tokens"),
    "olmo2": ("Olmo2Config", "Olmo2ForCausalLM", DECODER, "tokens"),
    "mixtral": (
        "MixtralConfig",
        "MixtralForCausalLM",
        {**DECODER, "num_local_experts": 4},
        "tokens",
    ),
    "qwen2_moe": (
        "Qwen2MoeConfig",
        "Qwen2MoeForCausalLM",
        {**DECODER, **EXPERTS, "num_experts": 4, "shared_expert_intermediate_size": 32},
        "tokens",
    ),
    "qwen3_moe": (
        "Qwen3MoeConfig",
        "Qwen3MoeForCausalLM",
        {**DECODER, **EXPERTS, "num_experts": 4},
        "tokens",
    ),
    "olmoe": (
        "OlmoeConfig",
        "OlmoeForCausalLM",
        {**DECODER, **EXPERTS, "num_experts": 4},
        "tokens",
    ),
    "deepseek_v2": (
        "DeepseekV2Config",
        "DeepseekV2ForCausalLM",
        {**DECODER, **EXPERTS, **LATENT},
        "tokens",
    ),
    "deepseek_v3": (
        "DeepseekV3Config",
        "DeepseekV3ForCausalLM",
        {**DECODER, **EXPERTS, **LATENT},
        "tokens",
    ),
    "gpt_oss": (
        "GptOssConfig",
        "GptOssForCausalLM",
        {**DECODER, "head_dim": 16, "num_local_experts": 4, "num_experts_per_tok": 2},
        "tokens",
    ),
    "mamba": (
        "MambaConfig",
        "MambaForCausalLM",
        {"vocab_size": 320, "hidden_size": 64, "num_hidden_layers": 2},
        "tokens",
    ),
    "mamba2": (
        "Mamba2Config",
        "Mamba2ForCausalLM",
        {
            "vocab_size": 320,
            "hidden_size": 64,
            "num_hidden_layers": 2,
            "num_heads": 8,
            "head_dim": 16,
            "n_groups": 1,
            "chunk_size": 16,
        },
        "tokens",
    ),
    "bert": ("BertConfig", "BertForMaskedLM", ENCODER, "tokens"),
    "roberta": ("RobertaConfig", "RobertaForMaskedLM", ENCODER, "tokens"),
    "distilbert": (
        "DistilBertConfig",
        "DistilBertForMaskedLM",
        {"vocab_size": 320, "dim": 64, "hidden_dim": 96, "n_layers": 2, "n_heads": 4},
        "tokens",
    ),
    "albert": ("AlbertConfig", "AlbertForMaskedLM", {**ENCODER, "embedding_size": 32}, "tokens"),
    "electra": ("ElectraConfig", "ElectraForPreTraining", ENCODER, "tokens"),
    "deberta_v2": ("DebertaV2Config", "DebertaV2ForMaskedLM", ENCODER, "tokens"),
    "modernbert": ("ModernBertConfig", "ModernBertForMaskedLM", ENCODER, "tokens"),
    "t5": (
        "T5Config",
        "T5ForConditionalGeneration",
        {
            "vocab_size": 320,
            "d_model": 64,
            "d_kv": 16,
            "d_ff": 96,
            "num_layers": 2,
            "num_heads": 4,
            "decoder_start_token_id": 0,
        },
        "pairs",
    ),
    "bart": (
        "BartConfig",
        "BartForConditionalGeneration",
        {**SEQ2SEQ, "decoder_start_token_id": 2},
        "pairs",
    ),
    "whisper": (
        "WhisperConfig",
        "WhisperForConditionalGeneration",
        {
            **SEQ2SEQ,
            "num_mel_bins": 16,
            "max_source_positions": 32,
            "decoder_start_token_id": 1,
            "pad_token_id": 0,
            "bos_token_id": 1,
            "eos_token_id": 2,
        },
        "speech",
    ),
    "vit": ("ViTConfig", "ViTForImageClassification", IMAGES, "images"),
    "dinov2": ("Dinov2Config", "Dinov2ForImageClassification", IMAGES, "images"),
    "convnextv2": (
        "ConvNextV2Config",
        "ConvNextV2ForImageClassification",
        {"hidden_sizes": [16, 32, 64, 96], "depths": [1, 1, 1, 1]},
        "images",
    ),
}
"""Configuration class, model class, sizes and inputs."""


def names() -> list[str]:
    return [f"hf_{name}" for name in MODELS]


def hugging_face_model(name: str) -> tuple[torch.nn.Module, dict[str, torch.Tensor]]:
    import transformers

    configuration, architecture, sizes, kind = MODELS[name.removeprefix("hf_")]
    config = getattr(transformers, configuration)(**sizes)
    model = getattr(transformers, architecture)(config)
    tokens = torch.randint(3, 300, (2, 16))
    inputs = {
        "tokens": {"input_ids": tokens},
        "pairs": {"input_ids": tokens, "labels": tokens.clone()},
        "speech": {"input_features": torch.rand(2, 16, 64), "labels": tokens},
        "images": {"pixel_values": torch.rand(2, 3, 32, 32)},
    }[kind]
    return model, inputs
