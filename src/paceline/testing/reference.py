"""Training an image network in plain NumPy: the losses that every framework must come to."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from paceline.errors import InputError
from paceline.measure.job import Job
from paceline.measure.workers import synthetic
from paceline.testing.reference_layers import LAYERS, Array, Backward


def reference_losses(job: Job) -> list[float]:
    """Loss of each step of ``job``, warm-up included, in float64.

    What all its ranks do together is done here at once: the loss is that of the global batch.
    Ranks with batch statistics of their own (`batch_norm`) are beyond it unless there is one.
    """
    check_reference(job.graph)
    if job.world_size > 1 and any(node["op"] == "batch_norm" for node in job.graph["nodes"]):
        raise InputError("batch statistics of several ranks have no common reference")
    if job.optimiser.name != "sgd":
        raise InputError(f"the reference trains with sgd, not {job.optimiser.name}")
    weights: dict[str, Array] = {}
    velocities: dict[str, Array] = {}
    losses = []
    for index in range(job.warmup_steps + job.steps):
        batch = _batch(job, index % job.distinct_batches)
        loss, gradients = loss_and_gradients(job.graph, weights, batch, job.seed)
        for name, gradient in gradients.items():
            decayed = gradient + job.optimiser.weight_decay * weights[name]
            velocity = job.optimiser.momentum * velocities.get(name, 0.0) + decayed
            velocities[name] = velocity
            weights[name] = weights[name] - job.optimiser.learning_rate * velocity
        losses.append(loss)
    return losses


def check_reference(graph: Mapping[str, Any]) -> None:
    """Refuse a network that the reference cannot train."""
    missing = sorted({node["op"] for node in graph["nodes"]} - set(LAYERS))
    if missing:
        raise InputError(
            f"the NumPy reference has no operation {', '.join(missing)}",
            f"it has {', '.join(sorted(LAYERS))}",
        )


def loss_and_gradients(
    graph: Mapping[str, Any],
    weights: dict[str, Array],
    batch: Mapping[str, Array],
    seed: int,
) -> tuple[float, dict[str, Array]]:
    """Loss of a batch and its gradient for every weight.

    A weight that is not yet in ``weights`` is put there with its initial value: its shape
    follows from the value its node reads.
    """
    values = dict(batch)
    tape: list[tuple[Mapping[str, Any], Backward]] = []
    for node in graph["nodes"]:
        inputs = [values[name] for name in node["inputs"]]
        own = {}
        for short, shape in _weight_shapes(node, inputs[0]).items():
            name = f"{node['name']}.{short}"
            if name not in weights:
                weights[name] = _initial(name, node["op"], shape, seed)
            own[short] = weights[name]
        values[node["name"]], backward = LAYERS[node["op"]](node, inputs, own)
        tape.append((node, backward))
    wanted: dict[str, Array] = {graph["output"]: np.ones(())}
    gradients: dict[str, Array] = {}
    for node, backward in reversed(tape):
        of_inputs, of_own = backward(wanted.pop(node["name"]))
        for name, gradient in zip(node["inputs"], of_inputs, strict=True):
            wanted[name] = wanted[name] + gradient if name in wanted else gradient
        gradients |= {f"{node['name']}.{short}": value for short, value in of_own.items()}
    return float(values[graph["output"]]), gradients


def _weight_shapes(node: Mapping[str, Any], x: Array) -> dict[str, tuple[int, ...]]:
    if node["op"] == "conv":
        channels = node["out_channels"]
        weight = (channels, x.shape[1] // node["groups"], *node["kernel"])
        return {"weight": weight, **({"bias": (channels,)} if node["bias"] else {})}
    if node["op"] == "linear":
        width = node["out_features"]
        return {"weight": (width, x.shape[-1]), **({"bias": (width,)} if node["bias"] else {})}
    if node["op"] == "batch_norm":
        return {"weight": (x.shape[1],), "bias": (x.shape[1],)}
    return {}


def _batch(job: Job, number: int) -> dict[str, Array]:
    count = job.batch_per_rank * job.world_size
    return {
        name: _samples(name, spec, job.seed, number * count, count)
        for name, spec in job.graph["inputs"].items()
    }


def _samples(name: str, spec: Mapping[str, Any], seed: int, first: int, count: int) -> Array:
    size = math.prod(spec["shape"])
    key = synthetic.stream_key(seed, f"input/{name}")
    words = _words(key, first * size, count * size)
    if spec["dtype"] == "float":
        values = synthetic.reals_from_words(words) * synthetic.REAL_STEP
    else:
        values = synthetic.integers_from_words(words, spec["limit"])
    return np.asarray(values).reshape(count, *spec["shape"])


def _initial(name: str, kind: str, shape: tuple[int, ...], seed: int) -> Array:
    if synthetic.starts_at_one(name, kind):
        return np.ones(shape)
    scale = synthetic.initial_scale(name, shape, kind)
    words = _words(synthetic.stream_key(seed, f"weight/{name}"), 0, math.prod(shape))
    real = (synthetic.reals_from_words(words) * synthetic.REAL_STEP).astype(np.float32)
    return np.asarray(real * np.float32(scale), dtype=np.float64).reshape(shape)


def _words(key: int, first: int, count: int) -> Array:
    with np.errstate(over="ignore"):
        words: Array = synthetic.array_words(key, np.arange(first, first + count, dtype=np.int64))
    return words
