"""A perceptron of four layers (FCN-5) in PyTorch, its matrices split over the ranks."""

import torch
import torch.distributed as dist
from timing import run, sizes
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
from torch_networks import batches, perceptron, training_step

torch.set_num_threads(1)
dist.init_process_group("gloo")
ranks = dist.get_world_size()
model = perceptron()
split = {"1": ColwiseParallel(), "3": RowwiseParallel()}
split |= {"5": ColwiseParallel(), "7": RowwiseParallel()}
parallelize_module(model, dist.init_device_mesh("cpu", (ranks,)), split)
optimiser = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
run(training_step(model, optimiser, batches(sizes().batch * ranks, (1, 28, 28))))
