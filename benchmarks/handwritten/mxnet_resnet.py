"""ResNet-20 on CIFAR-sized images in plain MXNet, batches for it, and its step."""

from collections.abc import Callable

import mxnet as mx
from mxnet import autograd, gluon
from mxnet.gluon import nn


class Block(gluon.HybridBlock):
    """Two convolutions and the paper's parameter-free shortcut."""

    def __init__(self, width_in: int, width: int, stride: int) -> None:
        super().__init__()
        self.body = nn.HybridSequential()
        self.body.add(
            nn.Conv2D(width, 3, stride, 1, use_bias=False, in_channels=width_in),
            nn.BatchNorm(in_channels=width),
            nn.Activation("relu"),
            nn.Conv2D(width, 3, 1, 1, use_bias=False, in_channels=width),
            nn.BatchNorm(in_channels=width),
        )
        self.stride, self.pad = stride, (width - width_in) // 2

    def hybrid_forward(self, F: object, x: object) -> object:  # noqa: N803
        """Block of the residual network."""
        y = self.body(x)
        if self.stride > 1:
            x = F.slice(x, begin=(0, 0, 0, 0), end=(None,) * 4, step=(1, 1, 2, 2))
            empty = F.zeros_like(F.slice_axis(x, axis=1, begin=0, end=self.pad))
            x = F.concat(empty, x, empty, dim=1)
        return F.relu(x + y)


def resnet20() -> nn.HybridSequential:
    model = nn.HybridSequential()
    model.add(
        nn.Conv2D(16, 3, 1, 1, use_bias=False, in_channels=3),
        nn.BatchNorm(in_channels=16),
        nn.Activation("relu"),
    )
    width_in = 16
    for stage, width in enumerate((16, 32, 64)):
        for block in range(3):
            model.add(Block(width_in, width, 2 if stage and block == 0 else 1))
            width_in = width
    model.add(nn.GlobalAvgPool2D(), nn.Flatten(), nn.Dense(10, in_units=64))
    model.initialize(mx.init.Xavier())
    model.hybridize(static_alloc=True, static_shape=True)
    return model


def batches(batch: int) -> list:
    return [
        (mx.nd.random.uniform(-1, 1, (batch, 3, 32, 32)), mx.nd.random.randint(0, 10, (batch,)))
        for _ in range(4)
    ]


def training_step(model: object, trainer: object, data: list, divisor: int) -> Callable:
    loss_of = gluon.loss.SoftmaxCrossEntropyLoss()

    def step(index: int) -> None:
        images, labels = data[index % len(data)]
        with autograd.record():
            loss = loss_of(model(images), labels).mean()
        loss.backward()
        trainer.step(divisor)
        mx.nd.waitall()

    return step
