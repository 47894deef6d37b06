"""The reference of harness_overhead.py: the shortest honest DDP loop a person would write.

    RANK=0 WORLD_SIZE=1 MASTER_ADDR=127.0.0.1 MASTER_PORT=29500 \
        python handwritten_ddp.py OUT.json STEPS WARMUP BATCH

ResNet-44 for CIFAR-10 in plain PyTorch modules, random data, SGD with momentum. Writes wall and
CPU seconds of each step.
"""

import json
import os
import sys
import time

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel


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


def resnet44() -> nn.Module:
    layers: list[nn.Module] = [
        nn.Conv2d(3, 16, 3, 1, 1, bias=False),
        nn.BatchNorm2d(16),
        nn.ReLU(),
    ]
    width_in = 16
    for stage, width in enumerate((16, 32, 64)):
        for block in range(7):
            layers.append(Block(width_in, width, 2 if stage and block == 0 else 1))
            width_in = width
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10))


def main() -> None:
    out, steps, warmup, batch = sys.argv[1], *map(int, sys.argv[2:5])
    torch.set_num_threads(1)
    world = int(os.environ["WORLD_SIZE"])
    if world > 1:
        dist.init_process_group("gloo")
    network = resnet44()
    model = DistributedDataParallel(network) if world > 1 else network
    optimiser = torch.optim.SGD(network.parameters(), lr=0.01, momentum=0.9)
    data = [(torch.randn(batch, 3, 32, 32), torch.randint(0, 10, (batch,))) for _ in range(4)]
    if world > 1:
        dist.barrier()
    wall, cpu = [], []
    for index in range(warmup + steps):
        images, labels = data[index % 4]
        cpu_start, start = time.process_time(), time.perf_counter()
        optimiser.zero_grad(set_to_none=True)
        F.cross_entropy(model(images), labels).backward()
        optimiser.step()
        wall.append(time.perf_counter() - start)
        cpu.append(time.process_time() - cpu_start)
    with open(f"{out}.{os.environ['RANK']}", "w") as file:
        json.dump({"wall": wall[warmup:], "cpu": cpu[warmup:]}, file)
    if world > 1:
        dist.barrier()
    os._exit(0)


if __name__ == "__main__":
    main()
