"""Inception-v3 (Szegedy et al. 2016) on 299 x 299 images."""

from paceline.workload import ops
from paceline.workload.graph import Graph
from paceline.workload.zoo.network_builder import NetworkBuilder

_AUXILIARY_WEIGHT = 0.4


def inception_v3() -> Graph:
    """Inception-v3 without the auxiliary head, as benchmarks train it: 23,834,568 parameters."""
    net = _Builder("inception_v3")
    x = net.tail(net.trunk())
    return net.classifier_loss(net.linear("fc", x, 1000), classes=1000)


def inception_v3_aux() -> Graph:
    """Inception-v3 with its auxiliary head: 27,161,264 parameters."""
    net = _Builder("inception_v3_aux")
    trunk = net.trunk()
    label = net.integers("label", 1000)
    with net.scope("auxiliary"):
        y = net.conv_unit("conv1", net.avg_pool("pool", trunk, 5, 3), 128, 1)
        y = net.global_avg_pool("mean", net.conv_unit("conv2", y, 768, 5))
        auxiliary = net.cross_entropy("loss", net.linear("fc", y, 1000), label)
    main = net.cross_entropy("main_loss", net.linear("fc", net.tail(trunk), 1000), label)
    total = ops.WeightedSum((1.0, _AUXILIARY_WEIGHT))
    return net.build(net.add_node("loss", total, main, auxiliary))


class _Builder(NetworkBuilder):
    """Adds the modules of the paper's figures 5 to 7 and the two grid reductions."""

    def trunk(self) -> str:
        """Everything before the auxiliary head: 768 x 17 x 17."""
        x = self.conv_unit("stem1", self.image(3, 299, 299), 32, 3, 2)
        x = self.conv_unit("stem3", self.conv_unit("stem2", x, 32, 3), 64, 3, 1, 1)
        x = self.conv_unit("stem4", self.max_pool("stem_pool1", x, 3, 2), 80, 1)
        x = self.max_pool("stem_pool2", self.conv_unit("stem5", x, 192, 3), 3, 2)
        for name, pooled in (("5b", 32), ("5c", 64), ("5d", 64)):
            with self.scope(f"mixed{name}"):
                x = self._square_filters(x, pooled)
        with self.scope("mixed6a"):
            x = self._reduce_to_17(x)
        for name, width in (("6b", 128), ("6c", 160), ("6d", 160), ("6e", 192)):
            with self.scope(f"mixed{name}"):
                x = self._factorised_filters(x, width)
        return x

    def tail(self, x: str) -> str:
        """Everything between the auxiliary head and the classifier."""
        with self.scope("mixed7a"):
            x = self._reduce_to_8(x)
        for name in ("7b", "7c"):
            with self.scope(f"mixed{name}"):
                x = self._expanded_filters(x)
        return self.dropout("dropout", self.global_avg_pool("pool", x), 0.5)

    def _pooled(self, x: str, width: int) -> str:
        return self.conv_unit("pooled", self.avg_pool("pool", x, 3, 1, 1), width, 1)

    def _square_filters(self, x: str, pooled: int) -> str:
        y = self.conv_unit("double1", x, 64, 1)
        y = self.conv_unit("double2", y, 96, 3, 1, 1)
        branches = (
            self.conv_unit("single", x, 64, 1),
            self.conv_unit("five2", self.conv_unit("five1", x, 48, 1), 64, 5, 1, 2),
            self.conv_unit("double3", y, 96, 3, 1, 1),
            self._pooled(x, pooled),
        )
        return self.concat("join", branches)

    def _reduce_to_17(self, x: str) -> str:
        y = self.conv_unit("double2", self.conv_unit("double1", x, 64, 1), 96, 3, 1, 1)
        branches = (
            self.conv_unit("three", x, 384, 3, 2),
            self.conv_unit("double3", y, 96, 3, 2),
            self.max_pool("pool", x, 3, 2),
        )
        return self.concat("join", branches)

    def _factorised_filters(self, x: str, width: int) -> str:
        wide, tall = (1, 7), (7, 1)
        branches = (
            self.conv_unit("single", x, 192, 1),
            self._chain("seven", x, (width, 1), (width, wide), (192, tall)),
            self._chain(
                "double", x, (width, 1), (width, tall), (width, wide), (width, tall), (192, wide)
            ),
            self._pooled(x, 192),
        )
        return self.concat("join", branches)

    def _reduce_to_8(self, x: str) -> str:
        y = self._chain("seven", x, (192, 1), (192, (1, 7)), (192, (7, 1)))
        branches = (
            self.conv_unit("three2", self.conv_unit("three1", x, 192, 1), 320, 3, 2),
            self.conv_unit("seven_reduce", y, 192, 3, 2),
            self.max_pool("pool", x, 3, 2),
        )
        return self.concat("join", branches)

    def _expanded_filters(self, x: str) -> str:
        three = self.conv_unit("three", x, 384, 1)
        double = self._chain("double", x, (448, 1), (384, (3, 3)))
        branches = (
            self.conv_unit("single", x, 320, 1),
            *self._split("three", three),
            *self._split("double", double),
            self._pooled(x, 192),
        )
        return self.concat("join", branches)

    def _split(self, name: str, x: str) -> tuple[str, str]:
        return (
            self.conv_unit(f"{name}_wide", x, 384, (1, 3), 1, (0, 1)),
            self.conv_unit(f"{name}_tall", x, 384, (3, 1), 1, (1, 0)),
        )

    def _chain(self, name: str, x: str, *layers: tuple[int, int | tuple[int, int]]) -> str:
        """Consecutive convolutions, padded to keep the size."""
        for number, (width, kernel) in enumerate(layers, start=1):
            sides = (kernel, kernel) if isinstance(kernel, int) else kernel
            padding = (sides[0] // 2, sides[1] // 2)
            x = self.conv_unit(f"{name}{number}", x, width, sides, 1, padding)
        return x
