"""ResNet-20 in PyTorch, its weights in shards over the ranks (FSDP2)."""

import torch
import torch.distributed as dist
from timing import run, sizes
from torch.distributed.fsdp import fully_shard
from torch_networks import batches, resnet20, training_step

torch.set_num_threads(1)
dist.init_process_group("gloo")
mesh = dist.init_device_mesh("cpu", (dist.get_world_size(),))
model = fully_shard(resnet20(), mesh=mesh)
optimiser = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
data = batches(sizes().batch)
run(training_step(model, optimiser, data))
