"""A perceptron of four layers (FCN-5) in PyTorch, its matrices split over the ranks."""

import torch
import torch.distributed as dist
from timing import run, sizes
from torch import nn
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
from torch_resnet import training_step

torch.set_num_threads(1)
dist.init_process_group("gloo")
ranks = dist.get_world_size()
model = nn.Sequential(
    nn.Flatten(),
    nn.Linear(784, 2048),
    nn.Sigmoid(),
    nn.Linear(2048, 4096),
    nn.Sigmoid(),
    nn.Linear(4096, 1024),
    nn.Sigmoid(),
    nn.Linear(1024, 10),
)
split = {"1": ColwiseParallel(), "3": RowwiseParallel()}
split |= {"5": ColwiseParallel(), "7": RowwiseParallel()}
parallelize_module(model, dist.init_device_mesh("cpu", (ranks,)), split)
optimiser = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
torch.manual_seed(0)
batch = sizes().batch * ranks
data = [(torch.randn(batch, 1, 28, 28), torch.randint(0, 10, (batch,))) for _ in range(4)]
run(training_step(model, optimiser, data))
