"""Networks in plain PyTorch, batches for them, and a training step."""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import nn


class Block(nn.Module):
    """Two convolutions and the paper's parameter-free shortcut."""

    def __init__(self, width_in: int, width: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(width_in, width, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.stride, self.pad = stride, (width - width_in) // 2

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Block of the residual network."""
        y = self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x)))))
        if self.stride > 1:
            x = F.pad(x[:, :, :: self.stride, :: self.stride], (0, 0, 0, 0, self.pad, self.pad))
        return F.relu(y + x)


def resnet20() -> nn.Module:
    return resnet(3)


def resnet(blocks: int) -> nn.Module:
    layers: list[nn.Module] = [
        nn.Conv2d(3, 16, 3, 1, 1, bias=False),
        nn.BatchNorm2d(16),
        nn.ReLU(),
    ]
    width_in = 16
    for stage, width in enumerate((16, 32, 64)):
        for block in range(blocks):
            layers.append(Block(width_in, width, 2 if stage and block == 0 else 1))
            width_in = width
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10))


def perceptron() -> nn.Sequential:
    """FCN-5: four layers for digits."""
    return nn.Sequential(
        nn.Flatten(),
        nn.Linear(784, 2048),
        nn.Sigmoid(),
        nn.Linear(2048, 4096),
        nn.Sigmoid(),
        nn.Linear(4096, 1024),
        nn.Sigmoid(),
        nn.Linear(1024, 10),
    )


def batches(
    batch: int, shape: tuple[int, ...] = (3, 32, 32)
) -> list[tuple[torch.Tensor, torch.Tensor]]:
    torch.manual_seed(0)
    return [(torch.randn(batch, *shape), torch.randint(0, 10, (batch,))) for _ in range(4)]


def training_step(
    model: Callable[..., torch.Tensor], optimiser: torch.optim.Optimizer, data: list
) -> Callable[[int], None]:
    def step(index: int) -> None:
        images, labels = data[index % len(data)]
        optimiser.zero_grad()
        F.cross_entropy(model(images), labels).backward()
        optimiser.step()

    return step
