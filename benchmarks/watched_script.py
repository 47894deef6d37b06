"""A training script that `watch_overhead.py` runs under `paceline run`.

    python watched_script.py {ddp|loop|by-hand} PAIRS

Every other step runs without the wrappers of the recorder, so that both kinds of step have the
same machine, process and memory. Prints rank 0's wall and CPU seconds of
each step as one JSON line.
"""

import json
import os
import sys
import time
from collections.abc import Callable
from contextlib import contextmanager
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed import distributed_c10d
from torch.optim import optimizer
from torch.utils.data import DataLoader, TensorDataset, dataloader

WARM_UP_PAIRS = 5
BATCH = {"ddp": 32, "loop": 4, "by-hand": 32}
WRAPPED = (
    (torch.autograd, "backward"),
    (dataloader._BaseDataLoaderIter, "__next__"),
    (dist, "all_reduce"),
    (distributed_c10d, "all_reduce"),
    (nn.parallel.DistributedDataParallel, "forward"),
    (nn.parallel.DistributedDataParallel, "_post_forward"),
    (nn.Module, "train"),
)
OUTERMOST = (nn.parallel.DistributedDataParallel, nn.Sequential)
"""Classes whose calls the recorder watches."""
OPTIMISER_HOOKS = (
    optimizer._global_optimizer_pre_hooks,
    optimizer._global_optimizer_post_hooks,
)


@contextmanager
def unwatched() -> Any:
    """Remove the wrappers of the recorder from PyTorch."""
    wrapped = [(owner, name, getattr(owner, name)) for owner, name in WRAPPED]
    hooks = [dict(registered) for registered in OPTIMISER_HOOKS]
    calls = [(kind, vars(kind)["__call__"]) for kind in OUTERMOST if "__call__" in vars(kind)]
    for kind, _ in calls:
        del kind.__call__
    for owner, name, function in wrapped:
        setattr(owner, name, function.__wrapped__)
    for registered in OPTIMISER_HOOKS:
        registered.clear()
    yield
    for owner, name, function in (*wrapped, *((kind, "__call__", call) for kind, call in calls)):
        setattr(owner, name, function)
    for registered, kept in zip(OPTIMISER_HOOKS, hooks, strict=True):
        registered.update(kept)


def network() -> nn.Module:
    """Seven convolutions on images of 16 x 16."""
    layers: list[nn.Module] = [nn.Conv2d(3, 32, 3, padding=1), nn.ReLU()]
    for _ in range(6):
        layers += [nn.Conv2d(32, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU()]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, 10))


def trainer(kind: str, world: int) -> Callable[[], None]:
    """A function that trains one step of a network."""
    model = network()
    if kind == "ddp" and world > 1:
        model = nn.parallel.DistributedDataParallel(model)
    descent = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    scheduler = torch.optim.lr_scheduler.StepLR(descent, 100)
    data = TensorDataset(torch.randn(64, 3, 16, 16), torch.randint(0, 10, (64,)))
    loader = iter(DataLoader(data, batch_size=BATCH[kind]))

    def step() -> None:
        nonlocal loader
        batch = next(loader, None)
        if batch is None:
            loader = iter(DataLoader(data, batch_size=BATCH[kind]))
            batch = next(loader)
        descent.zero_grad()
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=kind == "loop"):
            loss = nn.functional.cross_entropy(model(batch[0]).float(), batch[1])
        loss.backward()
        if kind == "by-hand" and world > 1:
            for parameter in model.parameters():
                dist.all_reduce(parameter.grad)
        descent.step()
        scheduler.step()

    return step


def timed(step: Callable[[], None]) -> tuple[float, float]:
    """Wall and CPU seconds of one step."""
    wall, cpu = time.perf_counter(), time.process_time()
    step()
    return time.perf_counter() - wall, time.process_time() - cpu


def main() -> None:
    kind, pairs = sys.argv[1], int(sys.argv[2])
    torch.set_num_threads(1)
    torch.manual_seed(0)
    world = int(os.environ.get("WORLD_SIZE", "1"))
    if world > 1:
        dist.init_process_group("gloo")
    watched_step = trainer(kind, world)
    # DDP cannot lose a communication hook once it has one, so each side needs a model there.
    plain_step = trainer(kind, world) if kind == "ddp" and world > 1 else watched_step
    times: dict[str, list[tuple[float, float]]] = {"watched": [], "plain": []}
    for pair in range(WARM_UP_PAIRS + pairs):
        for side in ("watched", "plain") if pair % 2 else ("plain", "watched"):
            if side == "watched":
                times[side].append(timed(watched_step))
            else:
                with unwatched():
                    times[side].append(timed(plain_step))
    if os.environ.get("RANK", "0") == "0":
        print("\n" + json.dumps({side: kept[WARM_UP_PAIRS:] for side, kept in times.items()}))
    if world > 1:
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
