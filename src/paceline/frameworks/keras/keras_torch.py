"""Trains one job with a Keras model on PyTorch, under DistributedDataParallel.

    python keras_torch.py JOB.json EVENTS.jsonl

On this backend a Keras model is a PyTorch module, so that the loop is PyTorch's.
"""

import os

os.environ["KERAS_BACKEND"] = "torch"

from collections.abc import Mapping
from contextlib import nullcontext
from typing import Any

import keras
import torch
from keras_model import build
from layer_graph import split_loss
from numpy_data import batches, channels_last
from stepping import run_worker
from torch_ddp import DdpTraining
from torch_devices import versions


class KerasNetwork(torch.nn.Module):
    """A Keras model as a module that reads images with channels last."""

    def __init__(self, job: Mapping[str, Any]) -> None:
        super().__init__()
        self.model = build(job)
        self.input_names, self.output_names = list(self.model.input), split_loss(job["graph"])[2]

    def forward(self, *values: torch.Tensor) -> list[torch.Tensor]:
        read = dict(zip(self.input_names, values, strict=True))
        made = self.model(read, training=True)
        return [made[name] for name in self.output_names]


class KerasTraining(DdpTraining):
    """The distributed training of a Keras model."""

    def build_network(self) -> torch.nn.Module:
        """The Keras model; untrained weights have no gradient."""
        return KerasNetwork(self.job)

    def precision(self) -> Any:
        """No autocast: the layers of the model convert by their policy."""
        return nullcontext()

    def batches(self, inputs: list[str], targets: list[str]) -> list:
        """Inputs of the network and of the loss; images with channels last."""
        return [
            tuple([_tensor(batch[name]) for name in names] for names in (inputs, targets))
            for batch in batches(self.job, self.rank, self.world)
        ]


def _tensor(value: Any) -> torch.Tensor:
    made = torch.from_numpy(channels_last(value))
    return made if made.is_floating_point() else made.long()


if __name__ == "__main__":
    run_worker(KerasTraining, versions, keras=keras.__version__)
