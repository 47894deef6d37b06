"""Initial weights and batches as NumPy arrays, for frameworks that take those.

The numbers are those of `synthetic`, bit for bit the same as the PyTorch worker's.
"""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import synthetic
from layer_shapes import parameter_shapes

Array = Any


def initial_weights(graph: Mapping[str, Any], seed: int) -> dict[str, Array]:
    """Every parameter by its name, ``<node>.<parameter>``, in PyTorch's layout, as float32."""
    return {
        f"{node['name']}.{name}": _initial(f"{node['name']}.{name}", node["op"], shape, seed)
        for node, name, shape in parameter_shapes(graph)
    }


def batches(job: Mapping[str, Any], rank: int, world: int) -> list[tuple[Array, Array]]:
    """The job's distinct batches of this rank, in the order they are trained on.

    Images are channels first, labels 32-bit integers.
    """
    if job["data"]["kind"] != "synthetic":
        raise ValueError(f"{job['framework']} trains on synthetic data, not {job['data']['kind']}")
    image, label = input_names(job["graph"])
    size, specs = job["batch_per_rank"], job["graph"]["inputs"]
    made = []
    for number in range(job["distinct_batches"]):
        first = (number * world + rank) * size
        images = _samples(image, specs[image], job["seed"], first, size)
        labels = _samples(label, specs[label], job["seed"], first, size).astype(np.int32)
        made.append((images, labels))
    return made


def channels_last_weight(value: Array) -> Array:
    """A weight of PyTorch's layout in that of channels last: HWIO for kernels, IO for matrices."""
    if value.ndim == 4:
        return value.transpose(2, 3, 1, 0)
    return value.transpose() if value.ndim == 2 else value


def channels_last_images(images: Array) -> Array:
    """Images with their channels last."""
    return images.transpose(0, 2, 3, 1).copy()


def input_names(graph: Mapping[str, Any]) -> tuple[str, str]:
    """Names of the one input and of the label of an image network."""
    loss = next(node for node in graph["nodes"] if node["name"] == graph["output"])
    names = list(graph["inputs"])
    if loss["op"] != "cross_entropy" or len(names) != 2:
        raise ValueError("this worker trains networks with one input and a label by cross entropy")
    label = loss["inputs"][1]
    return next(name for name in names if name != label), label


def _samples(name: str, spec: Mapping[str, Any], seed: int, first: int, count: int) -> Array:
    elements = math.prod(spec["shape"])
    indices = np.arange(first * elements, (first + count) * elements, dtype=np.int64)
    with np.errstate(over="ignore"):
        words = synthetic.array_words(synthetic.stream_key(seed, f"input/{name}"), indices)
    if spec["dtype"] == "float":
        return _reals(words).reshape(count, *spec["shape"])
    return synthetic.integers_from_words(words, spec["limit"]).reshape(count, *spec["shape"])


def _initial(name: str, kind: str, shape: tuple[int, ...], seed: int) -> Array:
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
