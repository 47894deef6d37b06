"""ResNet-20 on CIFAR-sized images in plain Chainer."""

import chainer
import chainer.functions as F
import chainer.links as L
import numpy as np
from timing import run, sizes


class Block(chainer.Chain):
    """Two convolutions and the paper's parameter-free shortcut."""

    def __init__(self, width_in: int, width: int, stride: int) -> None:
        super().__init__()
        with self.init_scope():
            self.conv1 = L.Convolution2D(width_in, width, 3, stride, 1, nobias=True)
            self.bn1 = L.BatchNormalization(width, decay=0.9, eps=1e-5)
            self.conv2 = L.Convolution2D(width, width, 3, 1, 1, nobias=True)
            self.bn2 = L.BatchNormalization(width, decay=0.9, eps=1e-5)
        self.stride, self.pad = stride, (width - width_in) // 2

    def forward(self, x: chainer.Variable) -> chainer.Variable:
        """Block of the residual network."""
        y = self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x)))))
        if self.stride > 1:
            sides = [(0, 0), (self.pad, self.pad), (0, 0), (0, 0)]
            x = F.pad(x[:, :, ::2, ::2], sides, "constant")
        return F.relu(y + x)


layers = [
    L.Convolution2D(3, 16, 3, 1, 1, nobias=True),
    L.BatchNormalization(16, decay=0.9, eps=1e-5),
    F.relu,
]
width_in = 16
for stage, width in enumerate((16, 32, 64)):
    for block in range(3):
        layers.append(Block(width_in, width, 2 if stage and block == 0 else 1))
        width_in = width
model = chainer.Sequential(*layers, lambda x: F.mean(x, axis=(2, 3)), L.Linear(64, 10))
optimiser = chainer.optimizers.MomentumSGD(0.01, 0.9).setup(model)
random, batch = np.random.default_rng(0), sizes().batch
data = [
    (random.uniform(-1, 1, (batch, 3, 32, 32)).astype("f4"), random.integers(0, 10, batch))
    for _ in range(4)
]


def step(index: int) -> None:
    images, labels = data[index % 4]
    loss = F.softmax_cross_entropy(model(images), labels.astype("i4"))
    model.cleargrads()
    loss.backward()
    optimiser.update()


run(step)
