"""The list of networks, and the many ways people write their names."""

from collections.abc import Callable, Mapping
from functools import lru_cache, partial

from paceline.naming import look_up
from paceline.workload.graph import Graph
from paceline.workload.zoo.resnet_cifar import cifar_resnet

_NETWORKS: Mapping[str, Callable[[], Graph]] = {
    f"resnet{depth}": partial(cifar_resnet, depth) for depth in (20, 32, 44, 56, 110)
}


def names() -> list[str]:
    """Every network of the zoo."""
    return sorted(_NETWORKS)


@lru_cache(maxsize=64)
def build(name: str) -> Graph:
    """The network called ``name``."""
    return look_up("model", name, _NETWORKS, "'paceline models' lists all")()
