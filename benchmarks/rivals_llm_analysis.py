"""Answers of llm-analysis for the rows of rivals.py."""

import time
from typing import Any

from llm_analysis.analysis import ActivationRecomputation, DSZeRO, LLMAnalysis  # type: ignore[import-not-found]
from llm_analysis.config import (  # type: ignore[import-not-found]
    ModelConfig,
    ParallelismConfig,
    get_gpu_config_by_name,
)

from rivals_worker import serve

RECOMPUTATIONS = {"selective": "SELECTIVE", "full": "FULL"}
PARTS = ("weight", "gradient", "optimizer_state", "activation")


def answer(job: dict[str, Any], settings: dict[str, Any]) -> dict[str, Any]:
    """Seconds and bytes of one row."""
    model = ModelConfig(
        name="row",
        num_layers=job["layers"],
        n_head=job["heads"],
        hidden_dim=job["hidden"],
        vocab_size=job["vocabulary"],
        max_seq_len=job["sequence"],
        num_key_value_heads=job["kv_heads"],
        ffn_embed_dim=job["ffn"],
        expansion_ratio=job["ffn"] / job["hidden"],
    )
    started = time.process_time()
    found = LLMAnalysis(
        model,
        get_gpu_config_by_name(job["gpu"]),
        parallelism_config=ParallelismConfig(job["tp"], job["pp"], job["dp"]),
        flops_efficiency=settings["efficiency"],
    ).training(
        batch_size_per_gpu=job["micro_batch"],
        gradient_accumulation_steps=job["micro_batches"],
        seq_len=job["sequence"],
        total_num_tokens=10**9,
        activation_recomputation=ActivationRecomputation[
            RECOMPUTATIONS.get(job["recompute"], "NONE")
        ],
        ds_zero=DSZeRO(job["zero"]),
        mlp_gated_linear_units=job["gated"],
    )
    spent = 1e3 * (time.process_time() - started)
    memory = sum(found[f"{part}_memory_per_gpu"] for part in PARTS)
    return {"seconds": found["latency_per_iter"], "memory": memory, "milliseconds": spent}


if __name__ == "__main__":
    serve(answer)
