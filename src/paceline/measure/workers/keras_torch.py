"""Trains one job with a Keras model on PyTorch, under DistributedDataParallel.

    python keras_torch.py JOB.json EVENTS.jsonl

On this backend a Keras model is a PyTorch module, so that the loop is PyTorch's.
"""

import os

os.environ["KERAS_BACKEND"] = "torch"

from collections.abc import Mapping
from typing import Any

import keras
import torch
from keras_model import build
from numpy_data import batches, channels_last_images
from stepping import run_worker
from torch_ddp import DdpTraining
from torch_devices import versions


class KerasNetwork(torch.nn.Module):
    """A Keras model as a module that reads images, channels last."""

    input_names = ("image",)

    def __init__(self, job: Mapping[str, Any]) -> None:
        super().__init__()
        self.model = build(job["graph"], job["seed"])

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """The scores of a batch."""
        return self.model(images, training=True)


class KerasTraining(DdpTraining):
    """The distributed training of a Keras model."""

    def build_network(self) -> torch.nn.Module:
        """The Keras model; weights that are not trained ask for no gradient."""
        return KerasNetwork(self.job)

    def batches(self, inputs: list[str], targets: list[str]) -> list:
        """Images with their channels last, and their labels."""
        return [
            (
                [torch.from_numpy(channels_last_images(images))],
                [torch.from_numpy(labels).long()],
            )
            for images, labels in batches(self.job, self.rank, self.world)
        ]


def keras_versions() -> Mapping[str, Any]:
    """PyTorch's, and Keras's own."""
    return {**versions(), "keras": keras.__version__}


if __name__ == "__main__":
    run_worker(KerasTraining, keras_versions)
