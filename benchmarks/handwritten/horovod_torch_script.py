"""ResNet-20 in PyTorch under Horovod."""

import horovod.torch as hvd
import torch
from timing import run, sizes
from torch_networks import batches, resnet20, training_step

torch.set_num_threads(1)
hvd.init()
model = resnet20()
optimiser = hvd.DistributedOptimizer(
    torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9),
    named_parameters=model.named_parameters(),
)
hvd.broadcast_parameters(model.state_dict(), root_rank=0)
hvd.broadcast_optimizer_state(optimiser, root_rank=0)
data = batches(sizes().batch)
run(training_step(model, optimiser, data), hvd.rank())
