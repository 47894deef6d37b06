"""A perceptron of four layers (FCN-5) in PyTorch, two of them on each of two ranks."""

import torch
import torch.distributed as dist
import torch.nn.functional as F
from timing import run, sizes
from torch.distributed.pipelining import PipelineStage, Schedule1F1B
from torch_networks import batches, perceptron

torch.set_num_threads(1)
dist.init_process_group("gloo")
rank = dist.get_rank()
own = perceptron()[:5] if rank == 0 else perceptron()[5:]
stage = PipelineStage(own, rank, 2, torch.device("cpu"))
schedule = Schedule1F1B(stage, n_microbatches=4, loss_fn=F.cross_entropy)
optimiser = torch.optim.SGD(own.parameters(), lr=0.01, momentum=0.9)
data = batches(sizes().batch * 2, (1, 28, 28))


def step(index: int) -> None:
    images, labels = data[index % 4]
    optimiser.zero_grad()
    if rank == 0:
        schedule.step(images)
    else:
        schedule.step(target=labels, losses=[])
    optimiser.step()


run(step)
