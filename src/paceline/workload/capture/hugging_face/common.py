"""Fields that configurations of all families have."""

from collections.abc import Mapping
from typing import Any

from paceline.workload.capture.hugging_face.fields import DEFAULT_SEQUENCE, Config


def common_sizes(config: Config) -> dict[str, Any]:
    hidden = config.size("hidden_size", "n_embd", "d_model", "dim")
    heads = config.size("num_attention_heads", "n_head", "n_heads", "num_heads")
    return {
        "hidden": hidden,
        "layers": config.size("num_hidden_layers", "n_layer", "n_layers", "num_layers"),
        "heads": heads,
        "kv_heads": config.size("num_key_value_heads", default=heads),
        "head_dim": config.size("head_dim", default=max(1, hidden // heads)),
        "vocabulary": config.size("vocab_size"),
        "sequence": sequence_of(config),
        "head": config.head("tokens"),
        "labels": config.labels(),
    }


def position_rows(config: Config, common: Mapping[str, Any]) -> int:
    """Rows of a table of learned positions: the longest sequence of the configuration."""
    return config.positions() or int(common["sequence"])


def sequence_of(config: Config) -> int:
    """Tokens per sample: 4,096 or the configuration's maximum if lower; noted if higher."""
    longest = config.positions()
    if longest is None or longest == DEFAULT_SEQUENCE:
        return DEFAULT_SEQUENCE
    if longest > DEFAULT_SEQUENCE and config.seq is None:
        config.notes.append(
            f"{DEFAULT_SEQUENCE:,} tokens per sample unless --seq is given (maximum {longest:,})"
        )
    return min(longest, DEFAULT_SEQUENCE)
