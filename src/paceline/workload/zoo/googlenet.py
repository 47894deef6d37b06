"""GoogLeNet (Szegedy et al. 2015) with its two auxiliary heads."""

from paceline.workload import ops
from paceline.workload.graph import Graph
from paceline.workload.zoo.network_builder import NetworkBuilder

# Widths of a module: 1x1; 3x3 reduced, 3x3; 5x5 reduced, 5x5; 1x1 after the pool.
_MODULES = {
    "3a": (64, 96, 128, 16, 32, 32),
    "3b": (128, 128, 192, 32, 96, 64),
    "4a": (192, 96, 208, 16, 48, 64),
    "4b": (160, 112, 224, 24, 64, 64),
    "4c": (128, 128, 256, 24, 64, 64),
    "4d": (112, 144, 288, 32, 64, 64),
    "4e": (256, 160, 320, 32, 128, 128),
    "5a": (256, 160, 320, 32, 128, 128),
    "5b": (384, 192, 384, 48, 128, 128),
}
# Weight of the losses of the auxiliary heads (section 5 of the paper).
_AUXILIARY_WEIGHT = 0.3


def googlenet() -> Graph:
    """GoogLeNet as published, local response norm: 13,378,280 parameters with auxiliary heads."""
    return _googlenet("googlenet", batch_norm=False)


def googlenet_bn() -> Graph:
    """GoogLeNet as PyTorch distributes it.

    Batch normalisation, 3x3 where the paper has 5x5: 13,004,888 parameters with auxiliary heads.
    """
    return _googlenet("googlenet_bn", batch_norm=True)


def _googlenet(name: str, batch_norm: bool) -> Graph:
    net = _Builder(name, batch_norm)
    x = net.unit("conv1", net.image(3, 224, 224), 64, 7, 2, 3)
    x = net.respond("norm1", net.max_pool("pool1", x, 3, 2, ceil=True))
    x = net.unit("conv2.reduce", x, 64, 1)
    x = net.respond("norm2", net.unit("conv2.main", x, 192, 3, 1, 1))
    x = net.max_pool("pool2", x, 3, 2, ceil=True)
    label = net.integers("label", 1000)
    auxiliary: list[str] = []
    for module, widths in _MODULES.items():
        with net.scope(f"inception{module}"):
            x = net.inception(x, widths)
        if module in ("4a", "4d"):
            with net.scope(f"auxiliary{len(auxiliary) + 1}"):
                auxiliary.append(net.auxiliary_loss(x, label))
        if module in ("3b", "4e"):
            last_of_the_two = batch_norm and module == "4e"
            x = net.max_pool(f"pool{module[0]}", x, 2 if last_of_the_two else 3, 2, ceil=True)
    x = net.dropout("dropout", net.global_avg_pool("pool5", x), 0.2 if batch_norm else 0.4)
    loss = net.cross_entropy("main_loss", net.linear("fc", x, 1000), label)
    weights = (1.0, *(_AUXILIARY_WEIGHT for _ in auxiliary))
    return net.build(net.add_node("loss", ops.WeightedSum(weights), loss, *auxiliary))


class _Builder(NetworkBuilder):
    """Adds the units of either version."""

    def __init__(self, name: str, batch_norm: bool) -> None:
        super().__init__(name)
        self._batch_norm = batch_norm

    def unit(
        self, name: str, x: str, width: int, kernel: int, stride: int = 1, padding: int = 0
    ) -> str:
        if self._batch_norm:
            return self.conv_unit(name, x, width, kernel, stride, padding)
        with self.scope(name):
            y = self.conv("conv", x, width, kernel, stride, padding, bias=True)
            return self.activation("relu", y)

    def respond(self, name: str, x: str) -> str:
        return x if self._batch_norm else self.add_node(name, ops.LocalResponseNorm(5), x)

    def inception(self, x: str, widths: tuple[int, ...]) -> str:
        one, three_in, three, five_in, five, pooled = widths
        kernel = 3 if self._batch_norm else 5
        branches = (
            self.unit("1x1", x, one, 1),
            self.unit("3x3", self.unit("3x3_reduce", x, three_in, 1), three, 3, 1, 1),
            self.unit("5x5", self.unit("5x5_reduce", x, five_in, 1), five, kernel, 1, kernel // 2),
            self.unit("pool_project", self.max_pool("pool", x, 3, 1, 1), pooled, 1),
        )
        return self.concat("join", branches)

    def auxiliary_loss(self, x: str, label: str) -> str:
        y = self.unit("conv", self.avg_pool("pool", x, 5, 3), 128, 1)
        y = self.activation("relu", self.linear("fc1", self.flatten("flatten", y), 1024))
        scores = self.linear("fc2", self.dropout("dropout", y, 0.7), 1000)
        return self.cross_entropy("loss", scores, label)
