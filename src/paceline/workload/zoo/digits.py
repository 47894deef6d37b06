"""A small network for scikit-learn's digits, which trains to its accuracy in seconds."""

from paceline.workload.graph import Graph
from paceline.workload.zoo.network_builder import NetworkBuilder


def digits_cnn() -> Graph:
    """Two convolutions and two linear layers on 8 x 8 images of ten classes; no normalisation.

    Without batch statistics a step does not depend on how processes share the batch.
    """
    net = NetworkBuilder("digits_cnn")
    x = net.activation("relu1", net.conv("conv1", net.image(1, 8, 8), 16, 3, 1, 1, bias=True))
    x = net.activation("relu2", net.conv("conv2", x, 32, 3, 1, 1, bias=True))
    x = net.flatten("flatten", net.max_pool("pool", x, 2, 2))
    x = net.activation("relu3", net.linear("fc1", x, 64))
    return net.classifier_loss(net.linear("fc2", x, 10), classes=10)
