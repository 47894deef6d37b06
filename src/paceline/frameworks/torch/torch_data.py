"""Initial weights and batches of a PyTorch job.

Numbers are those of `synthetic`, bit for bit, or samples read by `datasets`. NumPy is not needed.
"""

import math
from collections.abc import Mapping
from typing import Any

import datasets
import synthetic
import torch
from epochs import Epochs
from torch import Tensor

CHUNK = 2**20
"""Numbers generated at a time, which bounds the additional memory of large weights."""

Batch = tuple[list[Tensor], list[Tensor]]
"""Inputs of the network and targets of the loss, each in the order of its names."""


def initialise(network: Any, graph: Mapping[str, Any], seed: int) -> None:
    """Set every parameter to its initial value of `synthetic`."""
    done: set[int] = set()
    for node in graph["nodes"]:
        for name, parameter in network.node_parameters(node["name"]):
            if id(parameter) not in done:
                done.add(id(parameter))
                _fill(parameter.data, f"{node['name']}.{name}", node["op"], seed)


def batches(
    job: Mapping[str, Any],
    rank: int,
    world: int,
    input_names: list[str],
    target_names: list[str],
) -> list[Batch]:
    """Return the distinct batches of this rank, in training order."""
    if job["data"]["kind"] != "synthetic":
        real = TensorEpochs(job, rank, world)
        shares = real.shares(0, job["distinct_batches"])
        return [real.batch_of("train", indices) for indices in shares]
    size, specs = job["batch_per_rank"], job["graph"]["inputs"]
    length = job.get("sequence") or job["graph"].get("sequence")
    made = []
    for number in range(job["distinct_batches"]):
        first = (number * world + rank) * size
        inputs, targets = (
            [synthetic_input(name, specs[name], job["seed"], first, size, length) for name in names]
            for names in (input_names, target_names)
        )
        made.append((inputs, targets))
    return made


def synthetic_input(
    name: str, spec: Mapping[str, Any], seed: int, first: int, count: int, sequence: "int | None"
) -> Tensor:
    shape: list[Any] = [sequence if size == "sequence" else size for size in spec["shape"]]
    elements: int = math.prod(shape)
    indices = torch.arange(first * elements, (first + count) * elements)
    words = synthetic.array_words(synthetic.stream_key(seed, f"input/{name}"), indices)
    if spec["dtype"] == "float":
        return _reals(words).reshape(count, *shape)
    return synthetic.integers_from_words(words, spec["limit"]).reshape(count, *shape)


class TensorEpochs(Epochs):
    """Epochs whose batches are tensors; the data is converted once."""

    def __init__(self, job: Mapping[str, Any], rank: int, world: int) -> None:
        super().__init__(job, rank, world)
        self.tensors = {"train": _tensors(self.train), "test": _tensors(self.test)}

    def batch_of(self, split: str, indices: list[int]) -> Batch:
        samples, labels = self.tensors[split]
        chosen = torch.tensor(indices, dtype=torch.int64)
        return [samples[chosen]], [labels[chosen]]


def _tensors(dataset: datasets.Dataset) -> tuple[Tensor, Tensor]:
    labels = torch.frombuffer(dataset.labels, dtype=torch.int64)
    if isinstance(dataset.samples, bytes):
        pixels = torch.frombuffer(bytearray(dataset.samples), dtype=torch.uint8)
        table = torch.frombuffer(datasets.FLOAT_OF_BYTE, dtype=torch.float32)
        values = torch.cat([table[part.int()] for part in pixels.split(CHUNK)])
    else:
        values = torch.frombuffer(dataset.samples, dtype=torch.float32)
    return values.reshape(-1, *dataset.shape), labels


def _fill(values: Tensor, name: str, kind: str, seed: int) -> None:
    if synthetic.starts_at_one(name, kind):
        values.fill_(1.0)
        return
    scale = synthetic.initial_scale(name, tuple(values.shape), kind)
    if scale == 0.0:
        values.zero_()
        return
    key = synthetic.stream_key(seed, f"weight/{name}")
    flat = values.view(-1)
    for start in range(0, flat.numel(), CHUNK):
        stop = min(start + CHUNK, flat.numel())
        words = synthetic.array_words(key, torch.arange(start, stop))
        flat[start:stop] = _reals(words) * scale


def _reals(words: Tensor) -> Tensor:
    return synthetic.reals_from_words(words).to(torch.float32) * synthetic.REAL_STEP
