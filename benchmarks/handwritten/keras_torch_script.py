"""ResNet-20 in Keras on PyTorch, whose model is a module, in PyTorch's own loop."""

import os
from functools import partial

os.environ["KERAS_BACKEND"] = "torch"

import torch
from keras_resnet import resnet20
from timing import run, sizes
from torch_networks import training_step

torch.set_num_threads(1)
model = resnet20()
optimiser = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
batch = sizes().batch
data = [(torch.randn(batch, 32, 32, 3), torch.randint(0, 10, (batch,))) for _ in range(4)]
run(training_step(partial(model, training=True), optimiser, data))
