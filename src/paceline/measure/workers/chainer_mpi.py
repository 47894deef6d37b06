"""Trains one job with Chainer, alone or with ChainerMN over MPI.

    mpiexec -n N python chainer_mpi.py JOB.json EVENTS.jsonl

Chainer, mpi4py, NumPy and the standard library only.
"""

from mpi_rank import adopt

adopt()

import os
import warnings
from collections.abc import Callable, Mapping
from typing import Any

warnings.filterwarnings("ignore")

import chainer
import chainer.functions as F
import numpy as np
from layer_graph import NORM_EPSILON, NORM_NEW_SHARE, whole_program
from numpy_data import batches, initial_statistics, initial_weights
from stepping import Training, require_plain_sgd, run_worker

Node = Mapping[str, Any]


def versions() -> Mapping[str, Any]:
    """What decides how fast this rank computes."""
    return {"framework": f"chainer {chainer.__version__}", "numpy": np.__version__}


def _conv(node: Node, inputs: list, own: Mapping[str, Any]) -> Any:
    return F.convolution_2d(
        inputs[0],
        own["weight"],
        own.get("bias"),
        stride=tuple(node["stride"]),
        pad=tuple(node["padding"]),
        dilate=tuple(node["dilation"]),
        groups=node["groups"],
    )


def _batch_norm(_: Node, inputs: list, own: Mapping[str, Any]) -> Any:
    return F.batch_normalization(
        inputs[0],
        own["weight"],
        own["bias"],
        eps=NORM_EPSILON,
        running_mean=own["running_mean"],
        running_var=own["running_var"],
        decay=1.0 - NORM_NEW_SHARE,
    )


def _max_pool(node: Node, inputs: list, _: Mapping[str, Any]) -> Any:
    return F.max_pooling_2d(
        inputs[0], node["kernel"], node["stride"], node["padding"], cover_all=False
    )


def _avg_pool(node: Node, inputs: list, _: Mapping[str, Any]) -> Any:
    return F.average_pooling_2d(inputs[0], node["kernel"], node["stride"], node["padding"])


def _pad_shortcut(node: Node, inputs: list, _: Mapping[str, Any]) -> Any:
    stride = node["stride"]
    added = node["out_channels"] - inputs[0].shape[1]
    taken = inputs[0][:, :, ::stride, ::stride]
    return F.pad(taken, [(0, 0), (added // 2, added - added // 2), (0, 0), (0, 0)], "constant")


ACTIVATIONS = {
    "relu": F.relu,
    "relu6": F.relu6,
    "sigmoid": F.sigmoid,
    "tanh": F.tanh,
}
OPERATIONS = {
    "activation": lambda node, inputs, _: ACTIVATIONS[node["function"]](inputs[0]),
    "add": lambda _, inputs, __: F.add(*inputs),
    "avg_pool": _avg_pool,
    "batch_norm": _batch_norm,
    "concat": lambda _, inputs, __: F.concat(inputs, axis=1),
    "conv": _conv,
    "cross_entropy": lambda _, inputs, __: F.softmax_cross_entropy(inputs[0], inputs[1]),
    "dropout": lambda node, inputs, _: F.dropout(inputs[0], node["probability"]),
    "flatten": lambda _, inputs, __: (
        F.flatten(inputs[0])
        if inputs[0].ndim < 2
        else F.reshape(inputs[0], (inputs[0].shape[0], -1))
    ),
    "global_avg_pool": lambda _, inputs, __: F.mean(inputs[0], axis=(2, 3)),
    "linear": lambda _, inputs, own: F.linear(inputs[0], own["weight"], own.get("bias")),
    "max_pool": _max_pool,
    "pad_shortcut": _pad_shortcut,
}
"""Chainer's function of each operation, channels first."""


class Network(chainer.Link):
    """The loss of a batch as one link: called with the inputs by name."""

    def __init__(self, graph: Mapping[str, Any], seed: int) -> None:
        super().__init__()
        self.program = whole_program(graph)
        self.attributes: dict[str, str] = {}
        with self.init_scope():
            for name, value in initial_weights(graph, seed).items():
                setattr(self, self._attribute(name), chainer.Parameter(value))
        for name, value in initial_statistics(graph).items():
            self.add_persistent(self._attribute(name), value)

    def _attribute(self, name: str) -> str:
        self.attributes[name] = name.replace(".", "_")
        return self.attributes[name]

    def forward(self, inputs: Mapping[str, Any]) -> Any:
        """The mean loss."""
        own = {name: getattr(self, attribute) for name, attribute in self.attributes.items()}
        return self.program.run(OPERATIONS, own, inputs)


def join_ranks(world: int, device: str) -> Any:
    """ChainerMN's communicator of all ranks."""
    import chainermn

    communicator = chainermn.create_communicator("pure_nccl" if device == "cuda" else "naive")
    if communicator.size != world:
        raise RuntimeError(f"MPI started {communicator.size} ranks, not {world}")
    return communicator


class MpiTraining(Training):
    """One rank's network, data and optimiser."""

    def __init__(self, job: dict, rank: int, world: int) -> None:
        require_plain_sgd(job)
        self.gpu = job["device"] == "cuda"
        self.communicator: Any = join_ranks(world, job["device"]) if world > 1 else None
        self.talks = world > 1 and job["synchronise"]
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
        """Forward pass of a step's batch."""
        return self.network(self.data[index % len(self.data)])

    def gradients(self, index: int) -> Any:
        """Forward and backward pass of a step's batch."""
        loss = self.forward(index)
        self.network.cleargrads()
        loss.backward()
        return loss

    def local_step(self, index: int) -> Any:
        """The step without talking."""
        loss = self.gradients(index)
        self.optimiser.update()
        return loss

    def step(self, index: int) -> Any:
        """One optimiser step; the loss without its graph, which would keep every activation."""
        loss = self.gradients(index)
        if self.talks:
            self.communicator.multi_node_mean_grad(self.network)
        self.optimiser.update()
        return loss.array

    def wait(self, handle: Any) -> None:
        """Return when a GPU has done what it was asked; a processor already has."""
        if self.gpu:
            chainer.cuda.Stream.null.synchronize()

    def barrier(self) -> None:
        """Every rank is here."""
        if self.communicator is not None:
            self.communicator.mpi_comm.Barrier()

    def parts(self) -> dict[str, Callable[[int], Any]]:
        """Every part; the collective sends the last gradients again."""
        parts: dict[str, Callable[[int], Any]] = {
            "forward": self.forward,
            "forward_backward": self.gradients,
            "local_step": self.local_step,
        }
        if self.talks:
            parts["collective"] = lambda _: self.communicator.multi_node_mean_grad(self.network)
        return parts

    def close(self) -> None:
        """Leave MPI in order: an exit without it looks like a crash to the launcher."""
        if self.communicator is not None:
            from mpi4py import MPI

            MPI.Finalize()


if __name__ == "__main__":
    run_worker(MpiTraining, versions)
