"""Initial weights and batches as NumPy arrays, for frameworks that take those.

The numbers are those of `synthetic`, bit for bit equal to those of the PyTorch worker.
"""

import math
from collections.abc import Mapping
from typing import Any

import datasets
import numpy as np
import synthetic
from epochs import Epochs
from layer_graph import Shape, trained_parameters

Array = Any
Layout = Mapping[str, tuple[int, ...]]
"""Order of axes of an operation's weight, if it differs from PyTorch's."""

PYTORCH: Layout = {}
INPUTS_FIRST: Layout = {"linear": (1, 0)}
CHANNELS_LAST: Layout = {"conv": (2, 3, 1, 0), "linear": (1, 0)}


def initial_weights(
    graph: Mapping[str, Any], seed: int, layout: Layout = PYTORCH
) -> dict[str, Array]:
    """Every trained parameter by its name ``<node>.<parameter>``, as float32."""
    found = {}
    for node, short, shape in trained_parameters(graph):
        name = f"{node['name']}.{short}"
        value = _initial(name, node["op"], shape, seed)
        if short == "weight" and node["op"] in layout:
            value = np.ascontiguousarray(value.transpose(layout[node["op"]]))
        found[name] = value
    return found


def initial_statistics(graph: Mapping[str, Any]) -> dict[str, Array]:
    """Running statistics of batch normalisations by name, as float32."""
    found = {}
    for node in graph["nodes"]:
        if node["op"] == "batch_norm":
            shape = node["parameter_shapes"]["weight"]
            found[f"{node['name']}.running_mean"] = np.zeros(shape, np.float32)
            found[f"{node['name']}.running_var"] = np.ones(shape, np.float32)
    return found


def batches(job: Mapping[str, Any], rank: int, world: int) -> list[dict[str, Array]]:
    """The job's distinct batches of this rank, in training order.

    Each is a dictionary of all inputs, labels included: images channels first, integers of 32 bits.
    """
    if job["data"]["kind"] != "synthetic":
        real = ArrayEpochs(job, rank, world)
        return [real.batch_of("train", own) for own in real.shares(0, job["distinct_batches"])]
    graph, size = job["graph"], job["batch_per_rank"]
    made = []
    for number in range(job["distinct_batches"]):
        first = (number * world + rank) * size
        made.append(
            {
                name: _samples(name, spec, job["seed"], first, size)
                for name, spec in graph["inputs"].items()
            }
        )
    return made


class ArrayEpochs(Epochs):
    """Epochs whose batches are arrays by name; the data is converted once."""

    def __init__(self, job: Mapping[str, Any], rank: int, world: int) -> None:
        super().__init__(job, rank, world)
        self.arrays = {"train": _arrays(self.train), "test": _arrays(self.test)}

    def batch_of(self, split: str, indices: list[int]) -> dict[str, Array]:
        samples, labels = self.arrays[split]
        return {self.image: samples[indices], self.label: labels[indices]}


def _arrays(dataset: datasets.Dataset) -> tuple[Array, Array]:
    labels = np.frombuffer(dataset.labels, np.int64).astype(np.int32)
    if isinstance(dataset.samples, bytes):
        table = np.frombuffer(datasets.FLOAT_OF_BYTE, np.float32)
        values = table[np.frombuffer(dataset.samples, np.uint8)]
    else:
        values = np.frombuffer(dataset.samples, np.float32)
    return values.reshape(-1, *dataset.shape), labels


def loss_and_correct(scores: Array, labels: Array) -> tuple[float, int]:
    """Sum of the cross entropies, and number of samples whose highest score is at the label."""
    scores = np.asarray(scores, np.float64)
    beyond = scores - scores.max(-1, keepdims=True, initial=-np.inf)
    chances = beyond - np.log(np.exp(beyond).sum(-1, keepdims=True))
    total = -float(chances[np.arange(len(labels)), labels].sum())
    return total, int((scores.argmax(-1) == labels).sum())


def channels_last(value: Array) -> Array:
    """Images with channels last; other arrays unchanged."""
    return value.transpose(0, 2, 3, 1).copy() if value.ndim == 4 else value


def _samples(
    name: str,
    spec: Mapping[str, Any],
    seed: int,
    first: int,
    count: int,
) -> Array:
    shape = spec["shape"]
    elements = math.prod(shape)
    indices = np.arange(first * elements, (first + count) * elements, dtype=np.int64)
    with np.errstate(over="ignore"):
        words = synthetic.array_words(synthetic.stream_key(seed, f"input/{name}"), indices)
    if spec["dtype"] == "float":
        return _reals(words).reshape(count, *shape)
    whole = synthetic.integers_from_words(words, spec["limit"])
    return whole.astype(np.int32).reshape(count, *shape)


def _initial(name: str, kind: str, shape: Shape, seed: int) -> Array:
    if synthetic.starts_at_one(name, kind):
        return np.ones(shape, np.float32)
    scale = synthetic.initial_scale(name, shape, kind)
    if scale == 0.0:
        return np.zeros(shape, np.float32)
    indices = np.arange(math.prod(shape), dtype=np.int64)
    with np.errstate(over="ignore"):
        words = synthetic.array_words(synthetic.stream_key(seed, f"weight/{name}"), indices)
    return (_reals(words) * np.float32(scale)).reshape(shape)


def _reals(words: Array) -> Array:
    return synthetic.reals_from_words(words).astype(np.float32) * np.float32(synthetic.REAL_STEP)
