"""ResNet-20 in plain PyTorch."""

import torch
from timing import run, sizes
from torch_networks import batches, resnet20, training_step

torch.set_num_threads(1)
model = resnet20()
optimiser = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
data = batches(sizes().batch)
run(training_step(model, optimiser, data))
