"""A convolutional network under DDP with one seeded bottleneck: ``vision.py KIND STEPS``.

Prints the mean step of rank 0 as ``STEP seconds``. Knows nothing of Paceline. ``clean-KIND`` is
the same training without the bottleneck.
"""

import gc
import os
import random
import sys
import tempfile
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset

given, STEPS = sys.argv[1], int(sys.argv[2])
CLEAN = given.startswith("clean-")
FAMILY = given.removeprefix("clean-")
KIND = "" if CLEAN else FAMILY
RANK, WORLD = int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))
BATCH = 256 if FAMILY in ("large_tensor", "large_gradient") else 48
WEIGHTS = torch.zeros(8_000_000)
DELAY = 0.03
random.seed(RANK)
torch.manual_seed(1)
torch.set_num_threads(2 if KIND == "threads" else 1)
if KIND == "one_core":
    os.sched_setaffinity(0, {0})


class Images(Dataset):
    """Random images; some kinds prepare them slowly."""

    def __init__(self):
        self.pool = torch.randn(256, 3, 16, 16)

    def __len__(self):
        return BATCH * (STEPS + 2) * (4 if FAMILY == "accumulate" else 1)

    def __getitem__(self, index):
        if KIND == "slow_input" and index % BATCH == 0:
            time.sleep(DELAY)
        if KIND == "rank_input" and RANK == 1 and index % BATCH == 0:
            time.sleep(DELAY)
        image = self.pool[index % 256]
        if KIND == "cpu_input":
            for _ in range(25):
                image = torch.flip(image, (1,)) + 0.01 * torch.roll(image, 3, 2)
        return image, index % 10


def network():
    if FAMILY in ("large_tensor", "large_gradient"):
        wide = [nn.Linear(768, 1700), nn.ReLU()]
        wide += [layer for _ in range(2) for layer in (nn.Linear(1700, 1700), nn.ReLU())]
        if FAMILY == "large_tensor":
            wide = [nn.Linear(768, 10_000), nn.ReLU(), nn.Linear(10_000, 24)]
        last = nn.Linear(24 if FAMILY == "large_tensor" else 1700, 10)
        return nn.Sequential(nn.Flatten(), *wide, last)
    layers = [nn.Conv2d(3, 40, 3, padding=1), nn.ReLU()]
    for _ in range(24 if FAMILY == "tiny_buckets" else 4):
        width = 40 if FAMILY != "tiny_buckets" else 16
        if FAMILY == "tiny_buckets" and len(layers) == 2:
            layers = [nn.Conv2d(3, 16, 3, padding=1), nn.ReLU()]
        layers += [nn.Conv2d(width, width, 3, padding=1), nn.ReLU()]
    width = 16 if FAMILY == "tiny_buckets" else 40
    if FAMILY == "accumulate":  # gradients of 24 MB
        layers += [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(40, 2400), nn.ReLU()]
        return nn.Sequential(*layers, nn.Linear(2400, 2400), nn.ReLU(), nn.Linear(2400, 10))
    if FAMILY == "no_overlap":  # gradients of 12 MB
        layers += [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(40, 1600), nn.ReLU()]
        return nn.Sequential(*layers, nn.Linear(1600, 1600), nn.ReLU(), nn.Linear(1600, 10))
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(width, 10))


class Slow(nn.Module):
    """The network; some kinds wait in forward or backward."""

    def __init__(self):
        super().__init__()
        self.net = network()

    def forward(self, images):
        if KIND == "blocked" or (KIND == "blocked_ddp" and WORLD > 1):
            time.sleep(DELAY)
        if KIND == "rank_forward" and RANK == 1:
            time.sleep(DELAY)
        scores = self.net(images)
        if KIND == "rank_backward" and RANK == 1:
            scores.register_hook(lambda _: time.sleep(DELAY))
        return scores


def wrapped(model):
    if WORLD == 1 or FAMILY == "no_overlap":
        return model
    cap = 0.001 if KIND == "tiny_buckets" else None
    return DistributedDataParallel(model, bucket_cap_mb=cap)


def after_step(step, model, loss, data):
    """What some kinds do between two steps."""
    if KIND == "rank_host" and RANK == 0:
        sum(i * i for i in range(400_000))
    if KIND == "jitter" and random.Random(1000 * step).randrange(max(WORLD, 2)) == RANK:
        time.sleep(2 * DELAY)
    if KIND == "stall" and step % 8 == 7:
        time.sleep(8 * DELAY)
    if KIND == "checkpoint" and step % 8 == 7 and RANK == 0:
        with tempfile.TemporaryFile() as file:
            for _ in range(6):
                torch.save(WEIGHTS, file)
    if KIND == "evaluation" and step % 8 == 7:
        model.eval()
        with torch.no_grad():
            for _ in range(12):
                model(data)
        model.train()
    if KIND == "logging":
        with tempfile.TemporaryFile("w") as log:
            for line in range(20):
                print(f"step {step} line {line} loss {float(loss)}", file=log, flush=True)
        time.sleep(DELAY)
    if KIND == "drift":
        time.sleep(0.0015 * step)
    if KIND == "metrics" and WORLD > 1:
        for _ in range(120):
            value = loss.detach().clone()
            dist.all_reduce(value)
    if KIND == "barriers" and WORLD > 1:
        for _ in range(120):
            dist.barrier()
    if KIND == "gc":
        gc.collect()


def main():
    if WORLD > 1:
        dist.init_process_group("gloo")
    model = wrapped(Slow())
    descent = torch.optim.SGD(model.parameters(), lr=0.01)
    kept = [[object() for _ in range(5)] for _ in range(60_000)] if FAMILY == "gc" else []
    micro = 4 if FAMILY == "accumulate" else 1
    batches = iter(DataLoader(Images(), batch_size=BATCH // micro))
    times = []
    for step in range(STEPS):
        begun = time.perf_counter()
        for part in range(micro):
            images, labels = next(batches)
            if KIND == "uneven" and RANK == 1:
                images, labels = torch.cat([images] * 2), torch.cat([labels] * 2)
            quiet = CLEAN and micro > 1 and WORLD > 1 and part < micro - 1
            with model.no_sync() if quiet else torch.enable_grad():
                loss = nn.functional.cross_entropy(model(images), labels)
                loss.backward()
        if FAMILY == "no_overlap" and WORLD > 1:
            for parameter in model.parameters():
                if not CLEAN:
                    dist.all_reduce(parameter.grad)
        descent.step()
        descent.zero_grad()
        after_step(step, model, loss, images)
        times.append(time.perf_counter() - begun)
    if RANK == 0:
        counted = times[4:]
        print(f"STEP {sum(counted) / len(counted)} {len(kept)}")
    if WORLD > 1:
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
