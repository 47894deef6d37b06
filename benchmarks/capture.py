"""Describing and costing models: time and memory against stated targets.

Each subject runs in its own process, with separate memory and cold caches:
  resnet50      a torch module made and captured, forward and backward        <= 2 s
  seven_billion a module of 7 billion parameters from a file                  <= 10 s, <= 1 GB
  llama3_405b   the description of Llama-3 405B from the zoo                   <= 0.1 s
  sweep         100,000 batch sizes of ResNet-50 costed at once               <= 1 s
The reference of the first two is the same training step by PyTorch on the same fake tensors
without recording. Importing PyTorch is not counted.
"""

import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from common import arguments, finish, machine

TARGETS = {
    "resnet50": {"seconds": 2.0},
    "seven_billion": {"seconds": 10.0, "grown_bytes": 1e9},
    "llama3_405b": {"seconds": 0.1},
    "sweep": {"seconds": 1.0},
}

SEVEN_BILLION = '''
"""A decoder of Llama's shape with 6.7 billion parameters."""
import torch
import torch.nn.functional as F
from torch import nn


class Block(nn.Module):
    def __init__(self, width, heads, inner):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.RMSNorm(width), nn.RMSNorm(width)
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.out = nn.Linear(width, width, bias=False)
        self.gate, self.up = (nn.Linear(width, inner, bias=False) for _ in range(2))
        self.down = nn.Linear(inner, width, bias=False)

    def forward(self, x):
        parts = self.qkv(self.norm1(x)).unflatten(-1, (3, self.heads, -1)).unbind(2)
        query, key, value = (part.transpose(1, 2) for part in parts)
        y = F.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.out(y.transpose(1, 2).flatten(2))
        y = self.norm2(x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


class Decoder(nn.Module):
    def __init__(self, vocabulary=32_000, width=4096, layers=32, heads=32, inner=11_008):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width)
        self.blocks = nn.ModuleList(Block(width, heads, inner) for _ in range(layers))
        self.norm = nn.RMSNorm(width)
        self.head = nn.Linear(width, vocabulary, bias=False)

    def forward(self, tokens):
        x = self.embedding(tokens)
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))
'''


def main() -> None:
    parser = arguments(__doc__ or "")
    parser.add_argument("--subject", choices=list(TARGETS), help="one subject, in this process")
    options = parser.parse_args()
    if options.subject:
        print(json.dumps(SUBJECTS[options.subject]()))
        return
    repetitions = 2 if options.quick else 5
    figures: dict[str, Any] = {"machine": machine(), "repetitions": repetitions, "subjects": {}}
    print(f"load average {figures['machine']['load_average']}, {repetitions} processes each")
    for subject, target in TARGETS.items():
        runs = [_in_own_process(subject) for _ in range(repetitions)]
        figures["subjects"][subject] = {"target": target, "runs": runs}
        _print(subject, target, runs)
    finish(figures, options.json)


def _in_own_process(subject: str) -> dict[str, float]:
    command = [sys.executable, __file__, "--subject", subject]
    answer = subprocess.run(command, capture_output=True, text=True, check=True)
    result: dict[str, float] = json.loads(answer.stdout)
    return result


def _print(subject: str, target: dict[str, float], runs: list[dict[str, float]]) -> None:
    seconds = [run["seconds"] for run in runs]
    middle, limit = statistics.median(seconds), target["seconds"]
    verdict = "met" if middle <= limit else "MISSED"
    spread = f"{min(seconds):.3f} to {max(seconds):.3f}"
    line = f"{subject:14s} {middle:7.3f} s ({spread}), target {limit:g} s: {verdict}"
    cpu = statistics.median(run["cpu_seconds"] for run in runs)
    line += f"; {cpu:.3f} s of CPU"
    if "reference_seconds" in runs[0]:
        ratio = statistics.median(run["seconds"] / run["reference_seconds"] for run in runs)
        line += f"; {ratio:.2f} x the bare step"
    if "grown_bytes" in target:
        grown = max(run["grown_bytes"] for run in runs)
        met = "met" if grown <= target["grown_bytes"] else "MISSED"
        line += f"; {grown / 1e6:.0f} MB, target {target['grown_bytes'] / 1e6:.0f} MB: {met}"
    print(line, flush=True)


def _timed(run: Callable[[], Any]) -> dict[str, float]:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    cpu, start = time.process_time(), time.perf_counter()
    run()
    return {
        "seconds": time.perf_counter() - start,
        "cpu_seconds": time.process_time() - cpu,
        "grown_bytes": 1024.0 * (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before),
    }


def _capture_resnet50() -> dict[str, float]:
    import torch
    from workload_checks import example_inputs, training_module

    from paceline import capture
    from paceline.workload import zoo

    graph = zoo.build("resnet50")
    with torch.device("meta"):
        module = training_module(graph)
    inputs = example_inputs(graph, 32, "meta")
    result = _timed(lambda: capture(module, inputs))
    return result | {"reference_seconds": _bare_step(module, inputs)}


def _capture_seven_billion() -> dict[str, float]:
    import torch

    from paceline.workload.capture import load_user_model

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "decoder.py"
        path.write_text(SEVEN_BILLION, encoding="utf-8")
        result = _timed(lambda: load_user_model(f"{path}:Decoder", ["2x2048:int64"]))
        namespace: dict[str, Any] = {}
        exec(SEVEN_BILLION, namespace)
        with torch.device("meta"):
            module = namespace["Decoder"]()
    tokens = {"tokens": torch.empty(2, 2048, dtype=torch.int64, device="meta")}
    return result | {"reference_seconds": _bare_step(module, tokens)}


def _bare_step(module: Any, inputs: dict[str, Any]) -> float:
    """Seconds of one training step on fake tensors with nothing recorded, copying included."""
    from paceline.workload.capture.construction import MemorylessMode
    from paceline.workload.capture.fake import ExampleInputs, fake_copy

    start = time.perf_counter()
    mode = MemorylessMode()
    example = ExampleInputs(inputs)
    model = fake_copy(module, mode)
    with mode:
        args, kwargs = example.fake(example.batch)
        model(*args, **kwargs).sum().backward()
    return time.perf_counter() - start


def _describe_llama() -> dict[str, float]:
    from paceline.workload import zoo

    return _timed(lambda: zoo.build("llama3_405b").cost(1))


def _sweep_batches() -> dict[str, float]:
    import numpy as np

    from paceline.workload import zoo

    graph = zoo.build("resnet50")
    batches = np.arange(1, 100_001)

    def sweep() -> None:
        cost = graph.cost(batches)
        for layer in cost.layers:
            _ = (layer.forward_flops, layer.backward_flops, layer.activation_bytes)
        _ = (cost.training_flops, cost.activation_bytes)

    return _timed(sweep)


SUBJECTS: dict[str, Callable[[], dict[str, float]]] = {
    "resnet50": _capture_resnet50,
    "seven_billion": _capture_seven_billion,
    "llama3_405b": _describe_llama,
    "sweep": _sweep_batches,
}

if __name__ == "__main__":
    main()
