"""Losses in plain NumPy, forward and backward, as in `reference_layers`."""

import numpy as np

from paceline.frameworks.runtime.layer_graph import named
from paceline.testing.reference_layers import Array, Backward, Gradients, Layer, Node, Own, logistic


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
