"""Networks of linear layers: FCN-5 for MNIST and neural collaborative filtering."""

from paceline.workload import ops
from paceline.workload.graph import Graph
from paceline.workload.zoo.network_builder import NetworkBuilder

_MOVIELENS_USERS, _MOVIELENS_ITEMS = 138_493, 26_744


def fcn5() -> Graph:
    """FCN-5 on MNIST (Shi et al. 2016): 784-2048-4096-1024-10 with sigmoids."""
    net = NetworkBuilder("fcn5")
    x = net.flatten("flatten", net.image(1, 28, 28))
    for number, width in enumerate((2048, 4096, 1024), start=1):
        x = net.linear(f"fc{number}", x, width)
        x = net.activation(f"sigmoid{number}", x, "sigmoid")
    return net.classifier_loss(net.linear("fc4", x, 10), classes=10)


def ncf() -> Graph:
    """Neural collaborative filtering on MovieLens-20M, 64 factors and layers 256-256-128-64.

    A sample is one user with one item.
    """
    net = NetworkBuilder("ncf")
    user = net.integers("user", _MOVIELENS_USERS)
    item = net.integers("item", _MOVIELENS_ITEMS)
    factors = (
        net.embedding("factors.user", user, _MOVIELENS_USERS, 64),
        net.embedding("factors.item", item, _MOVIELENS_ITEMS, 64),
    )
    product = net.add_node("factors.product", ops.Multiply(), *factors)
    x = net.concat(
        "layers.input",
        (
            net.embedding("layers.user", user, _MOVIELENS_USERS, 128),
            net.embedding("layers.item", item, _MOVIELENS_ITEMS, 128),
        ),
    )
    for number, width in enumerate((256, 128, 64), start=1):
        x = net.activation(f"layers.relu{number}", net.linear(f"layers.fc{number}", x, width))
    score = net.linear("score", net.concat("join", (product, x)), 1)
    clicked = net.image(1, name="clicked")
    return net.build(
        net.add_node("loss", ops.ElementwiseLoss("binary_cross_entropy"), score, clicked)
    )
