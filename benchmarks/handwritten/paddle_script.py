"""ResNet-20 on CIFAR-sized images in plain PaddlePaddle."""

import paddle
import paddle.nn.functional as F
from paddle import nn
from timing import run, sizes


class Block(nn.Layer):
    """Two convolutions and the paper's parameter-free shortcut."""

    def __init__(self, width_in: int, width: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2D(width_in, width, 3, stride, 1, bias_attr=False)
        self.bn1 = nn.BatchNorm2D(width)
        self.conv2 = nn.Conv2D(width, width, 3, 1, 1, bias_attr=False)
        self.bn2 = nn.BatchNorm2D(width)
        self.stride, self.pad = stride, (width - width_in) // 2

    def forward(self, x: paddle.Tensor) -> paddle.Tensor:
        """Block of the residual network."""
        y = self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x)))))
        if self.stride > 1:
            x = F.pad(x[:, :, ::2, ::2], [0, 0, self.pad, self.pad, 0, 0, 0, 0])
        return F.relu(y + x)


layers = [nn.Conv2D(3, 16, 3, 1, 1, bias_attr=False), nn.BatchNorm2D(16), nn.ReLU()]
width_in = 16
for stage, width in enumerate((16, 32, 64)):
    for block in range(3):
        layers.append(Block(width_in, width, 2 if stage and block == 0 else 1))
        width_in = width
paddle.set_device("cpu")
model = nn.Sequential(*layers, nn.AdaptiveAvgPool2D(1), nn.Flatten(), nn.Linear(64, 10))
optimiser = paddle.optimizer.Momentum(0.01, 0.9, parameters=model.parameters())
batch = sizes().batch
data = [
    (paddle.uniform([batch, 3, 32, 32]), paddle.randint(0, 10, [batch], "int64")) for _ in range(4)
]


def step(index: int) -> None:
    images, labels = data[index % 4]
    F.cross_entropy(model(images), labels).backward()
    optimiser.step()
    optimiser.clear_grad()


run(step)
