"""The function that converts each ``model_type``."""

from collections.abc import Callable, Mapping
from typing import TypeAlias

from paceline.naming import look_up
from paceline.workload.capture.hugging_face import (
    decoders,
    early_decoders,
    encoders,
    sparse,
    state_spaces,
)
from paceline.workload.capture.hugging_face.fields import Config
from paceline.workload.graph import Graph
from paceline.workload.zoo.transformers import TransformerShape

Architecture: TypeAlias = Callable[[Config], TransformerShape | Callable[[str], Graph]]

ARCHITECTURES: Mapping[str, Architecture] = {
    "bert": encoders.bert,
    "bloom": early_decoders.bloom,
    "clip": encoders.clip,
    "cohere": decoders.cohere,
    "cohere2": decoders.cohere2,
    "deepseek_v2": sparse.deepseek,
    "deepseek_v3": sparse.deepseek,
    "distilbert": encoders.distilbert,
    "dots1": sparse.dots1,
    "falcon": early_decoders.falcon,
    "falcon_h1": state_spaces.falcon_h1,
    "gemma": decoders.gemma,
    "gemma2": decoders.gemma2,
    "gemma3": decoders.gemma3_with_images,
    "gemma3_text": decoders.gemma3,
    "glm": decoders.glm,
    "glm4": decoders.glm4,
    "glm4_moe": sparse.glm4_moe,
    "gpt2": early_decoders.gpt2,
    "gpt_bigcode": early_decoders.gpt_bigcode,
    "gpt_neo": early_decoders.gpt_neo,
    "gpt_neox": early_decoders.gpt_neox,
    "gpt_oss": sparse.gpt_oss,
    "gptj": early_decoders.gptj,
    "granite": decoders.llama,
    "granitemoe": sparse.mixtral,
    "granitemoehybrid": state_spaces.granitemoehybrid,
    "jamba": state_spaces.jamba,
    "kimi_k2": sparse.deepseek,
    "llama": decoders.llama,
    "llama4": sparse.llama4_with_images,
    "llama4_text": sparse.llama4,
    "llava": lambda config: text_of_llava(config),  # defined below, by this table
    "mamba": state_spaces.mamba,
    "mamba2": state_spaces.mamba2,
    "minimax": state_spaces.minimax,
    "ministral": decoders.mistral,
    "mistral": decoders.mistral,
    "mixtral": sparse.mixtral,
    "modernbert": encoders.modernbert,
    "mpt": early_decoders.mpt,
    "mt5": encoders.t5,
    "nemotron": decoders.nemotron,
    "nemotron_h": state_spaces.nemotron_h,
    "olmo2": decoders.olmo2,
    "olmo3": decoders.olmo3,
    "olmoe": sparse.olmoe,
    "opt": early_decoders.opt,
    "phi": early_decoders.phi,
    "phi3": decoders.mistral,
    "phimoe": sparse.phimoe,
    "qwen2": decoders.qwen2,
    "qwen2_moe": sparse.qwen2_moe,
    "qwen3": decoders.qwen3,
    "qwen3_moe": sparse.qwen3_moe,
    "qwen3_next": state_spaces.qwen3_next,
    "roberta": encoders.roberta,
    "seed_oss": decoders.seed_oss,
    "siglip": encoders.siglip,
    "smollm3": decoders.smollm3,
    "starcoder2": decoders.starcoder2,
    "t5": encoders.t5,
    "vit": encoders.vit,
    "whisper": encoders.whisper,
    "xlm-roberta": encoders.roberta,
}
"""Converter of each ``model_type``."""

_DEFAULT_LLAMA = {
    "model_type": "llama",
    "hidden_size": 4096,
    "intermediate_size": 11008,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "vocab_size": 32000,
    "max_position_embeddings": 2048,
}
"""Fields that the configuration of LLaVA's text model leaves out, as `LlamaConfig` fills them."""


def text_of_llava(config: Config) -> TransformerShape | Callable[[str], Graph]:
    """The text model of LLaVA, of any supported type."""
    config.notes.append(decoders.WITHOUT_IMAGES)
    text = config.part("text_config", _DEFAULT_LLAMA)
    known = f"supported: {', '.join(sorted(ARCHITECTURES))}"
    return look_up("model_type", text.text("model_type", "llama"), ARCHITECTURES, known)(text)
