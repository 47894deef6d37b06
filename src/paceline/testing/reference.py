"""Training of a network in plain NumPy: reference losses for every framework."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from paceline.errors import InputError
from paceline.frameworks.operations import ends_in_loss, missing_operations
from paceline.frameworks.runtime import synthetic
from paceline.frameworks.runtime.layer_graph import named, parameter_owners, trained_parameters
from paceline.frameworks.runtime.layer_settings import ADAM_BETAS, ADAM_EPSILON
from paceline.measurement.job import Job, Optimiser
from paceline.testing.reference_layers import (
    LAYERS,
    Array,
    Backward,
    Gradients,
    Layer,
    Node,
    Own,
    logistic,
)
from paceline.testing.reference_sequence_layers import SEQUENCE_LAYERS
from paceline.workload.shapes import with_shapes


def cross_entropy(node: Node, inputs: list[Array], own: Own) -> tuple[Array, Backward]:
    """Mean negative log-likelihood of the labels."""
    scores, labels = inputs[0].reshape(-1, inputs[0].shape[-1]), inputs[1].reshape(-1)
    logarithms = scores - np.logaddexp.reduce(scores, axis=1, keepdims=True)
    rows = np.arange(len(labels))

    def backward(gradient: Array) -> Gradients:
        of_scores = np.exp(logarithms)
        of_scores[rows, labels] -= 1.0
        of_scores *= gradient / len(labels)
        return [of_scores.reshape(inputs[0].shape), np.zeros(inputs[1].shape)], {}

    return -np.asarray(logarithms[rows, labels].mean()), backward


def binary_cross_entropy(node: Node, inputs: list[Array], own: Own) -> tuple[Array, Backward]:
    """Mean binary cross entropy of the sigmoid of scores with targets."""
    scores, wanted = inputs

    def backward(gradient: Array) -> Gradients:
        of_scores = (logistic(scores) - wanted) * (gradient / scores.size)
        return [of_scores, -scores * (gradient / scores.size)], {}

    return np.asarray((np.logaddexp(0.0, scores) - scores * wanted).mean()), backward


def weighted_sum(node: Node, inputs: list[Array], own: Own) -> tuple[Array, Backward]:
    weights = node["weights"]
    total = sum((w * loss for w, loss in zip(weights, inputs, strict=True)), np.zeros(()))
    return total, lambda gradient: ([gradient * w for w in weights], {})


LOSS_LAYERS: dict[str, Layer] = {
    **named(cross_entropy, weighted_sum),
    "elementwise_loss": binary_cross_entropy,
}
"""The operations of this module by their names in a graph."""


OPERATIONS: dict[str, Layer] = {**LAYERS, **SEQUENCE_LAYERS, **LOSS_LAYERS}
"""Operations of the reference: those of all workers except dropout, which is random."""

CHUNK = 2**18
"""Numbers generated at once, so that they fit into a cache."""


def reference_losses(job: Job) -> list[float]:
    """Loss of each step of ``job``, warm-up included, in float64.

    All ranks are computed together: the loss is that of the global batch. A job of several ranks
    must not have `batch_norm`, whose statistics differ between ranks.
    """
    check_reference(job.graph)
    if job.world_size > 1 and any(node["op"] == "batch_norm" for node in job.graph["nodes"]):
        raise InputError("batch statistics of several ranks have no common reference")
    graph = with_shapes(job.graph, job.sequence)
    weights = initial_weights(graph, job.seed)
    moments: dict[str, tuple[Array, Array]] = {}
    losses = []
    for index in range(job.warmup_steps + job.steps):
        batch = _batch(job, graph, index % job.distinct_batches)
        loss, gradients = loss_and_gradients(graph, weights, batch)
        for name, gradient in gradients.items():
            own = moments.setdefault(name, (np.zeros(gradient.shape), np.zeros(gradient.shape)))
            _update(job.optimiser, weights[name], own, gradient, index + 1)
        losses.append(loss)
    return losses


def _update(
    optimiser: Optimiser,
    weight: Array,
    moments: tuple[Array, Array],
    gradient: Array,
    steps: int,
) -> None:
    """One step of SGD, Adam (Kingma and Ba 2015) or AdamW (Loshchilov and Hutter 2019)."""
    if optimiser.name not in ("sgd", "adam", "adamw"):
        raise InputError(f"the reference has no optimiser '{optimiser.name}'")
    first, second = moments
    if optimiser.name == "adamw":
        weight *= 1.0 - optimiser.learning_rate * optimiser.weight_decay
    elif optimiser.weight_decay:
        gradient = gradient + optimiser.weight_decay * weight
    if optimiser.name == "sgd":
        first *= optimiser.momentum
        first += gradient
        weight -= optimiser.learning_rate * first
        return
    for moment, beta, value in zip(moments, ADAM_BETAS, (gradient, gradient**2), strict=True):
        moment += (1.0 - beta) * (value - moment)
    first, second = (m / (1.0 - b**steps) for m, b in zip(moments, ADAM_BETAS, strict=True))
    weight -= optimiser.learning_rate * first / (np.sqrt(second) + ADAM_EPSILON)


def check_reference(graph: Mapping[str, Any]) -> None:
    """Raise for a network that the reference cannot train."""
    missing = missing_operations(graph, OPERATIONS)
    if missing:
        raise InputError(
            f"the NumPy reference has no operation {', '.join(missing)}",
            f"it has {', '.join(sorted(OPERATIONS))}",
        )
    if not ends_in_loss(graph):
        raise InputError(f"the NumPy reference trains on a loss, not on {graph['output']}")


def initial_weights(graph: Mapping[str, Any], seed: int) -> dict[str, Array]:
    """Every trained parameter of a graph with shapes by its name, ``<node>.<parameter>``."""
    return {
        f"{node['name']}.{short}": _initial(f"{node['name']}.{short}", node["op"], shape, seed)
        for node, short, shape in trained_parameters(graph)
    }


def first_loss_and_gradients(job: Job) -> tuple[float, dict[str, Array]]:
    graph = with_shapes(job.graph, job.sequence)
    return loss_and_gradients(graph, initial_weights(graph, job.seed), _batch(job, graph, 0))


def loss_and_gradients(
    graph: Mapping[str, Any], weights: Mapping[str, Array], batch: Mapping[str, Array]
) -> tuple[float, dict[str, Array]]:
    """Loss of a batch and its gradient for every weight; those of shared weights add up."""
    owners = parameter_owners(graph)
    names = {
        node: {short: f"{owner}.{short}" for short, owner in of_node.items()}
        for node, of_node in owners.items()
    }
    values = dict(batch)
    tape: list[tuple[Mapping[str, Any], Backward]] = []
    for node in graph["nodes"]:
        inputs = [values[name] for name in node["inputs"]]
        own = {short: weights[name] for short, name in names[node["name"]].items()}
        values[node["name"]], backward = OPERATIONS[node["op"]](node, inputs, own)
        tape.append((node, backward))
    wanted: dict[str, Array] = {graph["output"]: np.ones(())}
    gradients: dict[str, Array] = {}
    while tape:
        node, backward = tape.pop()
        of_inputs, of_own = backward(wanted.pop(node["name"]))
        for name, gradient in zip(node["inputs"], of_inputs, strict=True):
            wanted[name] = wanted[name] + gradient if name in wanted else gradient
        for short, gradient in of_own.items():
            name = names[node["name"]][short]
            gradients[name] = gradients[name] + gradient if name in gradients else gradient
    return float(values[graph["output"]]), gradients


def _batch(job: Job, graph: Mapping[str, Any], number: int) -> dict[str, Array]:
    count = job.batch_per_rank * job.world_size
    return {
        name: _samples(name, spec, job.seed, number * count, count)
        for name, spec in graph["inputs"].items()
    }


def _samples(name: str, spec: Mapping[str, Any], seed: int, first: int, count: int) -> Array:
    shape = spec["shape"]
    size = math.prod(shape)
    key = synthetic.stream_key(seed, f"input/{name}")
    words = _words(key, first * size, count * size)
    if spec["dtype"] == "float":
        values = synthetic.reals_from_words(words) * synthetic.REAL_STEP
    else:
        values = synthetic.integers_from_words(words, spec["limit"])
    return np.asarray(values).reshape(count, *shape)


def _initial(name: str, kind: str, shape: tuple[int, ...], seed: int) -> Array:
    if synthetic.starts_at_one(name, kind):
        return np.ones(shape)
    scale = np.float32(synthetic.initial_scale(name, shape, kind))
    values = np.zeros(math.prod(shape))
    if scale:
        key = synthetic.stream_key(seed, f"weight/{name}")
        for start in range(0, values.size, CHUNK):
            words = _words(key, start, min(CHUNK, values.size - start))
            real = (synthetic.reals_from_words(words) * synthetic.REAL_STEP).astype(np.float32)
            values[start : start + CHUNK] = real * scale
    return values.reshape(shape)


def _words(key: int, first: int, count: int) -> Array:
    with np.errstate(over="ignore"):
        words: Array = synthetic.array_words(key, np.arange(first, first + count, dtype=np.int64))
    return words
