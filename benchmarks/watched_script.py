"""A training script that knows nothing of Paceline; `watch_overhead.py` runs it with and without.

    python watched_script.py {ddp|loop|by-hand} STEPS

Prints rank 0's own mean wall and CPU seconds per step, after a warm-up.
"""

import os
import sys
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

WARM_UP = 5


def network() -> nn.Module:
    layers: list[nn.Module] = [nn.Conv2d(3, 32, 3, padding=1), nn.ReLU()]
    for _ in range(6):
        layers += [nn.Conv2d(32, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU()]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, 10))


def main() -> None:
    kind, steps = sys.argv[1], int(sys.argv[2])
    torch.set_num_threads(1)
    torch.manual_seed(0)
    world = int(os.environ.get("WORLD_SIZE", "1"))
    if world > 1:
        dist.init_process_group("gloo")
    model = network()
    if kind == "ddp" and world > 1:
        model = nn.parallel.DistributedDataParallel(model, bucket_cap_mb=0.1)
    optimiser = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    scheduler = torch.optim.lr_scheduler.StepLR(optimiser, 100)
    data = TensorDataset(torch.randn(64, 3, 32, 32), torch.randint(0, 10, (64,)))
    wall = cpu = 0.0
    loader = iter(DataLoader(data, batch_size=32))
    for step in range(WARM_UP + steps):
        if step == WARM_UP:
            wall, cpu = time.perf_counter(), time.process_time()
        batch = next(loader, None)
        if batch is None:
            loader = iter(DataLoader(data, batch_size=32))
            batch = next(loader)
        optimiser.zero_grad()
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=kind == "loop"):
            loss = nn.functional.cross_entropy(model(batch[0]).float(), batch[1])
        loss.backward()
        if kind == "by-hand" and world > 1:
            for parameter in model.parameters():
                dist.all_reduce(parameter.grad)
        optimiser.step()
        scheduler.step()
    if os.environ.get("RANK", "0") == "0":
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        print(f"\nresult {wall / steps} {cpu / steps}", flush=True)
    if world > 1:
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
