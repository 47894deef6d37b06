"""Answers of Calculon for the rows of rivals.py.

Calculon describes a block by width, heads and the width of a two-matrix MLP, so a gated MLP is
given 1.5 times its width (the same parameters), and grouped key and value heads are not described.
It has no embedding and no ZeRO stage above 1. Fused attention saves no scores, as with
Calculon's recomputation of attention.
"""

import json
import logging
import sys
import time
from pathlib import Path
from typing import Any

from rivals_worker import serve

SYSTEMS = {
    "a100-sxm-80gb": "a100_80g",
    "a100-sxm-40gb": "a100_80g",
    "h100-sxm-80gb": "h100_80g_nvl8",
}
RECOMPUTATIONS = {"full": "full", "selective": "attn_only"}


def answer(job: dict[str, Any], settings: dict[str, Any]) -> dict[str, Any]:
    """Seconds and bytes of one row."""
    checkout = Path(settings["checkout"])
    if str(checkout) not in sys.path:
        sys.path.insert(0, str(checkout))
    from calculon import System  # type: ignore[import-not-found]
    from calculon.llm.llm import Llm  # type: ignore[import-not-found]

    started = time.process_time()
    system = System(json.loads((checkout / "systems" / f"{SYSTEMS[job['gpu']]}.json").read_text()))
    application = Llm.Application(
        {
            "hidden": job["hidden"],
            "feedforward": int(job["ffn"] * (1.5 if job["gated"] else 1.0)),
            "seq_size": job["sequence"],
            "attn_heads": job["heads"],
            "attn_size": job["hidden"] // job["heads"],
            "num_blocks": job["layers"],
        }
    )
    plain = "attn_only" if job["fused_attention"] else "none"
    execution = Llm.Execution(
        num_procs=job["tp"] * job["pp"] * job["dp"],
        tensor_par=job["tp"],
        pipeline_par=job["pp"],
        data_par=job["dp"],
        tensor_par_net=0 if job["tp"] <= 8 else 1,
        pipeline_par_net=0 if job["tp"] * job["pp"] * job["dp"] <= 8 else 1,
        data_par_net=0 if job["tp"] * job["dp"] <= 8 else 1,
        batch_size=job["micro_batch"] * job["micro_batches"] * job["dp"],
        microbatch_size=job["micro_batch"],
        datatype="float16",
        fused_activation=True,
        attention_type="multihead",
        activation_recompute=RECOMPUTATIONS.get(job["recompute"], plain),
        pipeline_interleaving=job["interleave"],
        optimizer_sharding=job["zero"] > 0 and job["dp"] > 1,
        tensor_par_comm_type="rs_ag" if job["sequence_parallel"] else "ar",
        tensor_par_overlap="none",
        seq_par_ag_redo=False,
        data_par_overlap=job["dp"] > 1,
        weight_offload=False,
        activations_offload=False,
        optimizer_offload=False,
        training=True,
    )
    model = Llm(application, logging.getLogger())
    model.compile(system, execution)
    model.run(system)
    found = model.get_stats_json(False)
    return {
        "seconds": found["total_time"],
        "memory": found["proc_mem_tier1_cap_req"],
        "milliseconds": 1e3 * (time.process_time() - started),
    }


if __name__ == "__main__":
    serve(answer)
