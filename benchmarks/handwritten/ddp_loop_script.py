"""The reference of harness_overhead.py: the shortest honest DDP loop a person would write.

    RANK=0 WORLD_SIZE=1 MASTER_ADDR=127.0.0.1 MASTER_PORT=29500 \
        python ddp_loop_script.py OUT.json STEPS WARMUP BATCH

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
from torch.nn.parallel import DistributedDataParallel
from torch_networks import batches, resnet


def main() -> None:
    out, steps, warmup, batch = sys.argv[1], *map(int, sys.argv[2:5])
    torch.set_num_threads(1)
    world = int(os.environ["WORLD_SIZE"])
    if world > 1:
        dist.init_process_group("gloo")
    network = resnet(7)
    model = DistributedDataParallel(network) if world > 1 else network
    optimiser = torch.optim.SGD(network.parameters(), lr=0.01, momentum=0.9)
    data = batches(batch)
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
