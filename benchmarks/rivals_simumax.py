"""Answers of SimuMax for the rows of rivals.py.

SimuMax includes a machine file of the A100 (PCIe) and one of the B200. The rows are on SXM
devices, so they get the accelerator of the A100 file (for H100: its default efficiency at the peak
and bandwidth of the data sheet) and the NVLink section of the B200 file at the rate of the device.
"""

import copy
import json
import sys
import time
from pathlib import Path
from typing import Any

from rivals_worker import serve

NVLINK = {"a100": 300, "h100": 450}  # GB/s per direction
PEAKS = {"a100": 312.0, "h100": 989.0}  # TFLOP/s in bf16
MEMORY = {"a100": 2039.0, "h100": 3350.0}  # GB/s


def machine_file(checkout: Path, gpu: str) -> dict[str, Any]:
    """The machine description of a device."""
    systems = checkout / "configs" / "system"
    found: dict[str, Any] = json.loads((systems / "a100_pcie.json").read_text())
    networks: dict[str, Any] = json.loads((systems / "b200_bf16_ceperm.json").read_text())[
        "networks"
    ]
    name = gpu.split("-")[0]
    for section in ("low_intra_node", "high_intra_node"):
        networks[section]["bandwidth"]["gbps"] = NVLINK[name]
    networks["inter_node"] = found["networks"]["inter_node"]
    networks["inter_node"]["bandwidth"]["gbps"] = 25 if name == "a100" else 50
    accelerator = found["accelerator"]
    for kernel in accelerator["op"].values():
        kernel["tflops"] *= PEAKS[name] / PEAKS["a100"]
        if name != "a100":
            kernel.pop("accurate_efficient_factor", None)
    for kind in accelerator["bandwidth"].values():
        kind["gbps"] = MEMORY[name]
    return {**found, "sys_name": gpu, "networks": networks}


def answer(job: dict[str, Any], settings: dict[str, Any]) -> dict[str, Any]:
    """Seconds and bytes of one row."""
    checkout = Path(settings["checkout"])
    if str(checkout) not in sys.path:
        sys.path.insert(0, str(checkout))
    from simumax.core.config import (  # type: ignore[import-not-found]
        ModelConfig,
        StrategyConfig,
        SystemConfig,
    )
    from simumax.core.perf_llm import PerfLLM  # type: ignore[import-not-found]

    description = machine_file(checkout, job["gpu"])
    started = time.process_time()
    recompute = job["recompute"] in ("full", "selective")
    model = PerfLLM()
    model.configure(
        strategy_config=StrategyConfig(
            seq_len=job["sequence"],
            micro_batch_size=job["micro_batch"],
            micro_batch_num=job["micro_batches"],
            dtype="bf16",
            world_size=job["tp"] * job["pp"] * job["dp"],
            tp_size=job["tp"],
            pp_size=job["pp"],
            enable_sequence_parallel=job["sequence_parallel"],
            interleaving_size=job["interleave"],
            pp_comm_async=job["interleave"] == 1,
            zero_state=min(job["zero"], 1),
            enable_recompute=recompute,
            recompute_granularity={"full": "full_block", "selective": "sdp_only"}.get(
                job["recompute"]
            ),
            recompute_layer_num=job["layers"] if recompute else 0,
        ),
        model_config=ModelConfig(
            model_type="dense",
            model_name="row",
            hidden_size=job["hidden"],
            head_num=job["heads"],
            kv_head_num=job["kv_heads"],
            head_size=job["hidden"] // job["heads"],
            intermediate_size=job["ffn"],
            moe_ffn_hidden_size=job["ffn"],
            layer_num=job["layers"],
            vocab_size=job["vocabulary"],
            use_swiglu=job["gated"],
        ),
        system_config=SystemConfig.init_from_dict(copy.deepcopy(description)),
    )
    model.run_estimate()
    cost, memory = model.analysis_cost().data, model.analysis_mem().data
    stages = [memory] if "peak_mem" in memory else memory.values()
    return {
        "seconds": _number(cost["duration_time_per_iter"], {"ms": 1e-3, "s": 1.0}),
        "memory": max(
            _number(stage["peak_mem"], {"GB": 2.0**30, "MB": 2.0**20}) for stage in stages
        ),
        "milliseconds": 1e3 * (time.process_time() - started),
    }


def _number(text: Any, units: dict[str, float]) -> float:
    value, unit = str(text).split()
    return float(value) * units[unit]


if __name__ == "__main__":
    serve(answer)
