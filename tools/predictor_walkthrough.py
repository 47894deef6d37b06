# ruff: noqa: E501 (the lines of the page are longer)
"""The walk through one prediction in docs/explanation/predictor.md, from the values of the stages.

``python tools/predictor_walkthrough.py`` writes the section again; a test compares it with the page
and recomputes the step from the printed numbers.
"""

import math
from pathlib import Path

import numpy as np

from paceline.hardware import catalogue
from paceline.predictor.comm.replica_comm import cost_among
from paceline.predictor.kernels.efficiency import load_efficiency
from paceline.predictor.kernels.gemm_arrays import FORWARD
from paceline.predictor.kernels.roofline import layer_work
from paceline.predictor.plan.plan import Plan
from paceline.predictor.predict import model_step, predict_step, prepare
from paceline.predictor.prediction_inputs import ModelledStep
from paceline.predictor.schedule.coalesce_layers import coalesced_step
from paceline.predictor.schedule.timeline import Timeline
from paceline.predictor.uncertainty.correction_model import COLD
from paceline.predictor.uncertainty.intervals import correction_variance
from paceline.workload.cost import GraphProfile
from paceline.workload.workload import Workload

PAGE = Path(__file__).resolve().parent.parent / "docs" / "explanation" / "predictor.md"
BEGIN, END = "## One prediction, stage by stage\n", "## Gradient synchronisation"
_LAYER = "fc7"


def walkthrough() -> str:
    """The section as Markdown."""
    cluster = catalogue.cluster("dgx-1").with_nodes(2)
    step = model_step(prepare(Workload.of("alexnet", 64), cluster, Plan(dp=16)))
    prediction = predict_step(step)
    timeline = prediction.timeline
    memory = prediction.memory
    low, high = (1e3 * bound for bound in prediction.step_interval_seconds)
    fitted = step.job.fitted
    assert fitted is not None
    rule, variance = fitted.rule(COLD), correction_variance(timeline, fitted, None)
    deviation = math.sqrt(rule.noise**2 + variance)
    parts = ", ".join(f"{name} {float(size) / 1e6:.1f}" for name, size in memory.parts().items())
    return f"""{BEGIN}
`predictor/predict.py` runs six stages in this order. Each is a function from frozen values to a frozen
value, so that a stage can be run and printed alone:

```python
from paceline.hardware import catalogue
from paceline.predictor.plan.plan import Plan
from paceline.predictor.predict import model_step, predict_step, prepare
from paceline.workload.workload import Workload

job = prepare(Workload.of("alexnet", 64), catalogue.cluster("dgx-1").with_nodes(2), Plan(dp=16))
step = model_step(job)            # stages 1 to 3: step.parts, step.layers, step.communication
found = predict_step(step)        # stages 4 to 6: found.timeline, found.stage_memories, found.interval
```

The numbers below are those of this job: AlexNet with 64 samples per GPU in fp32, PyTorch DDP on 16 V100 in
two DGX-1. `tools/predictor_walkthrough.py` writes them.

**1. Partition** (`partition`). Without tensor, expert or context parallelism each device holds all
{len(step.parts.classes.of_layer)} layers; equal layers are evaluated once ({len(step.parts.kinds)} kinds).
Each device sums {step.parts.total(step.parts.gradient_bytes) / 1e6:.3f} MB of gradients with the others.

**2. Layer times** (`layer_times`). {_roofline(step)}

**3. Communication** (`communication`). DDP fills buckets of 1 MiB, then 25 MiB, from the last layer to the
first; a bucket closes with the tensor that fills it. {_messages(step, timeline)}

**4. Corrections** (`apply_corrections`). {_corrections(timeline)}

**5. Schedule** (`schedule`). {_schedule(step, timeline)}

**6. Memory and interval** (`stage_memories`, `interval`). A device holds {float(memory.total_bytes) / 1e6:.1f} MB:
{parts}.
The logarithm of the step has a residual standard deviation of {rule.noise:.4f} and a variance of {variance:.5f}
from the fitted quantities, together a standard deviation of {deviation:.4f}. The measured throughput is in
exp({rule.low:.4f} x {deviation:.4f}) to exp({rule.high:.4f} x {deviation:.4f}) times the predicted one with
90 % probability: a step of {low:.2f} to {high:.2f} ms.

"""


def _roofline(step: ModelledStep) -> str:
    """One layer's time from its work and the rates of the device."""
    parts, constants, device = step.parts, load_efficiency(), step.job.cluster.device
    kinds = GraphProfile(tuple(part.profile for part in parts.kinds))
    work = layer_work(kinds, parts.share_of_batch, device, parts.precision, constants)
    kind = next(i for i, part in enumerate(parts.kinds) if part.profile.name == _LAYER)
    flops, moved = work.flops[FORWARD, kind] / 1e9, work.bytes[FORWARD, kind] / 1e6
    rate = constants.attainable_flops(device, parts.precision.compute) / 1e12
    launch = work.operations[FORWARD, kind] * constants.launch(device) * 1e6
    return (
        f"The forward of `{_LAYER}` is a GEMM of 4096 x 64 x 4096. At the efficiency of that size it\n"
        f"takes as long as {flops:.4f} GFLOP at the attainable {rate:.3f} TFLOP/s, and its memory traffic as "
        f"long as\n{moved:.3f} MB at {device.known_memory_bandwidth / 1e9:.0f} GB/s. The longer of both plus "
        f"{launch:.2f} us to launch the kernel is\n{step.layers.forward[kind] * 1e6:.2f} us. All layers "
        f"together take {1e3 * parts.total(step.layers.forward):.4f} ms forward and "
        f"{1e3 * parts.total(step.layers.backward):.4f} ms backward."
    )


def _messages(step: ModelledStep, timeline: Timeline) -> str:
    parts, gradients = step.parts, step.communication.gradients
    assert gradients is not None
    cost = cost_among(parts, "all_reduce", parts.layout.replicas)
    runs = coalesced_step(parts, timeline.times, timeline.gradients, timeline.costs).layers
    sizes = [float(layer.gradient_bytes) for layer in reversed(runs)]
    latency = step.job.framework.message_latency_seconds
    lines = [
        f"| {number} | {size / 1e6:.3f} | {cost.taken(size)} | {1e3 * gradients.message(size):.4f} |"
        for number, size in enumerate(sizes, 1)
    ]
    return "\n".join(
        [
            "An all-reduce among 16 ranks, 8 per node,",
            f"takes (with {1e6 * latency:.0f} us of the framework):",
            "",
            "| message | MB | algorithm | ms |",
            "|---:|---:|---|---:|",
            *lines,
        ]
    )


def _corrections(timeline: Timeline) -> str:
    applied, costs = timeline.corrections, timeline.costs
    return (
        "According to effects fitted to published rows, computing takes\n"
        f"{applied.modelled_factor:.5f} times the modelled time, messages are "
        f"{applied.step.bandwidth_factor:.5f} times as fast, and workers vary by\n"
        f"{applied.step.variation:.4f} of their time, so that the slowest of 16 takes "
        f"{applied.slowest_factor:.5f} times the mean. Of a second of\nhidden communication "
        f"{applied.step.unhidden_share:.5f} s lengthen the step: computing takes "
        f"{1 + costs.interference:.5f} times as long while a\nmessage is in flight."
    )


def _schedule(step: ModelledStep, timeline: Timeline) -> str:
    costs = timeline.costs
    runs = coalesced_step(step.parts, timeline.times, timeline.gradients, costs).layers
    assert timeline.gradients is not None
    clock = costs.overhead_seconds + sum(float(layer.forward_seconds) for layer in runs)
    begun, free, lines = clock, 0.0, []
    for number, layer in enumerate(reversed(runs), 1):
        work = float(layer.backward_seconds) + costs.message_overhead_seconds
        busy = max(0.0, free - clock)
        clock += work + costs.interference * min(work, busy / (1.0 + costs.interference))
        sent = float(timeline.gradients.message(layer.gradient_bytes))
        free = max(clock, free) + sent
        lines.append(
            f"| {number} | {1e3 * float(layer.backward_seconds):.4f} | {1e3 * clock:.4f} "
            f"| {1e3 * sent:.4f} | {1e3 * free:.4f} |"
        )
    seconds = max(clock, free) + costs.update_seconds
    assert np.isclose(seconds, timeline.seconds, rtol=1e-12)
    return "\n".join(
        [
            f"A step begins with {1e3 * costs.overhead_seconds:.4f} ms of the framework and the",
            f"forward pass, and reaches backward after {1e3 * begun:.4f} ms. Backward runs up to each message, and",
            f"{1e6 * costs.message_overhead_seconds:.0f} us of the device launch it. Work of w ms that begins while "
            "the network is busy for b ms takes",
            f"w + {costs.interference:.5f} x min(w, b / {1 + costs.interference:.5f}) ms. A message begins when it is "
            "ready and the network is free:",
            "",
            "| message | backward before it (ms) | ready (ms) | time (ms) | end (ms) |",
            "|---:|---:|---:|---:|---:|",
            *lines,
            "",
            f"The update of {1e3 * costs.update_seconds:.4f} ms follows the last message, so that the step takes "
            f"{1e3 * timeline.seconds:.4f} ms.",
        ]
    )


def with_section(page: str) -> str:
    """The page with the section as it is now."""
    before, _, rest = page.partition(BEGIN) if BEGIN in page else page.partition(END)
    after = rest[rest.index(END) :] if BEGIN in page else END + rest
    return before + walkthrough() + after


if __name__ == "__main__":
    PAGE.write_text(with_section(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
