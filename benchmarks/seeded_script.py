"""A training script with one bottleneck seeded into it: ``python seeded_script.py CASE STEPS``.

Run by `seeded_bottlenecks.py` under ``paceline run``, on one process and on two. An own script
like any user's: DDP, a data loader, an optimiser; it knows nothing of Paceline. Its device is
emulated, except where the bottleneck is one of computing: layers sleep for as long as they would
compute, and communication is real. So other programs on the machine matter less.
"""

import os
import sys
import threading
import time
from collections.abc import Callable

import torch
import torch.distributed as dist
from torch import nn
from torch.utils.data import DataLoader, Dataset

case, steps = sys.argv[1], int(sys.argv[2])
DELAY = 0.06
"""Seconds that a slow rank and a slow input lose in each step."""
START = 0.02
"""Seconds by which each collective begins late."""
FORWARD, BACKWARD = 0.03, 0.06
"""Seconds of all emulated layers together."""
COMPUTED = ("one_core", "tiny_batch", "computed")
"""Cases whose layers compute."""

torch.manual_seed(1)
torch.set_num_threads(1)
rank, world = int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))
if case == "one_core":
    os.sched_setaffinity(0, {0})
if world > 1:
    dist.init_process_group("gloo")
batch = 1 if case == "tiny_batch" else 256
layers = 400 if case == "tiny_buckets" else 10
parameters = {"large_gradient": 80_000_000, "no_overlap": 20_000_000}.get(case, 2_240_000)


class Samples(Dataset):
    """Random samples; every batch of a slow input takes ``DELAY``."""

    def __init__(self) -> None:
        self.inputs, self.targets = torch.randn(512, 256), torch.randint(0, 10, (512,))

    def __len__(self) -> int:
        return batch * steps

    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor]:
        if case == "slow_input" and index % batch == 0:
            time.sleep(DELAY)
        return self.inputs[index % 512], self.targets[index % 512]


class Emulated(torch.autograd.Function):
    """The identity, forward and backward of which take their time."""

    @staticmethod
    def forward(ctx, x, weight, number):  # noqa: ANN001, ANN205, D102
        ctx.save_for_backward(weight)
        ctx.number = number
        time.sleep(FORWARD / layers)
        return x.view_as(x)

    @staticmethod
    def backward(ctx, gradient):  # noqa: ANN001, ANN205, D102
        (weight,) = ctx.saved_tensors
        time.sleep(BACKWARD / layers)
        if case == "slow_backward" and rank == 1 and ctx.number == layers // 2:
            time.sleep(DELAY)
        return gradient, torch.zeros_like(weight), None


class Layer(nn.Module):
    """A layer with a weight that an emulated device computes."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number
        self.weight = nn.Parameter(torch.zeros(parameters // layers))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """The input itself, later."""
        return Emulated.apply(x, self.weight, self.number)


def network() -> nn.Module:
    """Ten emulated layers, or two hidden layers that compute; 2.2 M parameters, as seeded."""
    if case in COMPUTED:
        wide = [nn.Linear(1344, 1344), nn.ReLU()]
        return nn.Sequential(nn.Linear(256, 1344), nn.ReLU(), *wide, nn.Linear(1344, 10))
    return nn.Sequential(*(Layer(number) for number in range(layers)), nn.Linear(256, 10))


def slow_start(state: object, bucket):  # noqa: ANN001, ANN201
    """DDP's averaging all-reduce, each begun ``START`` late."""
    done: torch.futures.Future = torch.futures.Future()
    buffer, before = bucket.buffer().div_(world), sending[-1]

    def send() -> None:
        if before is not None:
            before.join()
        time.sleep(START)
        dist.all_reduce(buffer)
        done.set_result(buffer)

    sending.append(threading.Thread(target=send))
    sending[-1].start()
    return done


def average_after_backward() -> None:
    """Gradients one by one, once the last one is there."""
    for parameter in net.parameters():
        dist.all_reduce(parameter.grad.div_(world))


sending: list[threading.Thread | None] = [None]
net = network()
model: Callable[[torch.Tensor], torch.Tensor] = net
if world > 1 and case != "no_overlap":
    mebibytes = {"tiny_buckets": 0.001, "large_gradient": 25, "slow_start": None}.get(case, 1)
    ddp = nn.parallel.DistributedDataParallel(net, bucket_cap_mb=mebibytes)
    if case == "slow_start":
        ddp.register_comm_hook(None, slow_start)
    model = ddp
optimiser = torch.optim.SGD(net.parameters(), lr=0.001)
for inputs, targets in DataLoader(Samples(), batch_size=batch):
    if case == "slow_rank" and rank == 1:
        time.sleep(DELAY)
    nn.functional.cross_entropy(model(inputs), targets).backward()
    if world > 1 and case == "no_overlap":
        average_after_backward()
    optimiser.step()
    optimiser.zero_grad()
if world > 1:
    dist.destroy_process_group()
