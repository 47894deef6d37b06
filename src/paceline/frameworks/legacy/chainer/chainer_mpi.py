"""Trains one job with Chainer, alone or with ChainerMN over MPI.

    mpiexec -n N python chainer_mpi.py JOB.json EVENTS.jsonl

Chainer, mpi4py, NumPy and the standard library only.
"""

import os
import warnings
from collections.abc import Callable, Mapping
from typing import Any

warnings.filterwarnings("ignore")

import chainer
import numpy as np
from chainer_layers import LAYERS
from chainer_sequence_layers import SEQUENCE_LAYERS
from layer_graph import whole_program
from numpy_data import batches, initial_statistics, initial_weights
from stepping import Training, require_plain_sgd, run_worker

OPERATIONS = {**LAYERS, **SEQUENCE_LAYERS}


def versions() -> Mapping[str, Any]:
    """Return the versions that affect the speed of this rank."""
    return {"framework": f"chainer {chainer.__version__}", "numpy": np.__version__}


class Network(chainer.Link):
    """The loss of a batch as one link, called with the inputs by name."""

    def __init__(self, graph: Mapping[str, Any], seed: int) -> None:
        super().__init__()
        self.program = whole_program(graph)
        weights, statistics = initial_weights(graph, seed), initial_statistics(graph)
        self.names = [*weights, *statistics]
        with self.init_scope():
            for name, value in weights.items():
                setattr(self, name, chainer.Parameter(value))
        for name, value in statistics.items():
            self.add_persistent(name, value)

    def forward(self, inputs: Mapping[str, Any]) -> Any:
        own = {name: getattr(self, name) for name in self.names}
        return self.program.run(OPERATIONS, own, inputs)


def join_ranks(world: int, device: str) -> Any:
    """ChainerMN's communicator of all ranks."""
    import chainermn

    communicator = chainermn.create_communicator("pure_nccl" if device == "cuda" else "naive")
    if communicator.size != world:
        raise RuntimeError(f"MPI started {communicator.size} ranks, expected {world}")
    return communicator


class MpiTraining(Training):
    """One rank's network, data and optimiser."""

    def __init__(self, job: dict, rank: int, world: int) -> None:
        require_plain_sgd(job)
        self.gpu = job["device"] == "cuda"
        self.communicator: Any = join_ranks(world, job["device"]) if world > 1 else None
        self.synchronises = world > 1 and job["synchronise"]
        self.network = Network(job["graph"], job["seed"])
        self.parameters = sum(parameter.size for parameter in self.network.params())
        settings = job["optimiser"]
        self.optimiser = chainer.optimizers.MomentumSGD(
            settings["learning_rate"], settings["momentum"]
        )
        self.optimiser.setup(self.network)
        if settings["weight_decay"]:
            decay = chainer.optimizer_hooks.WeightDecay(settings["weight_decay"])
            self.optimiser.add_hook(decay)
        self.data = batches(job, rank, world)
        if self.gpu:
            chainer.cuda.get_device_from_id(int(os.environ["LOCAL_RANK"])).use()
            self.network.to_gpu()
            self.data = [
                {name: chainer.cuda.to_gpu(value) for name, value in batch.items()}
                for batch in self.data
            ]

    def forward(self, index: int) -> Any:
        return self.network(self.data[index % len(self.data)])

    def gradients(self, index: int) -> Any:
        loss = self.forward(index)
        self.network.cleargrads()
        loss.backward()
        return loss

    def local_step(self, index: int) -> Any:
        loss = self.gradients(index)
        self.optimiser.update()
        return loss

    def step(self, index: int) -> Any:
        """Run one optimiser step; return the loss without its graph, which keeps activations."""
        loss = self.gradients(index)
        if self.synchronises:
            self.communicator.multi_node_mean_grad(self.network)
        self.optimiser.update()
        return loss.array

    def wait(self, handle: Any) -> None:
        """Wait for the issued work of a GPU; a CPU has finished it."""
        if self.gpu:
            chainer.cuda.Stream.null.synchronize()

    def barrier(self) -> None:
        if self.communicator is not None:
            self.communicator.mpi_comm.Barrier()

    def parts(self) -> dict[str, Callable[[int], Any]]:
        """All parts; the collective sends the last gradients again."""
        parts: dict[str, Callable[[int], Any]] = {
            "forward": self.forward,
            "forward_backward": self.gradients,
            "local_step": self.local_step,
        }
        if self.synchronises:
            parts["collective"] = lambda _: self.communicator.multi_node_mean_grad(self.network)
        return parts

    def close(self) -> None:
        """Finalise MPI: otherwise the launcher takes the exit for a crash."""
        if self.communicator is not None:
            from mpi4py import MPI

            MPI.Finalize()


if __name__ == "__main__":
    run_worker(MpiTraining, versions)
