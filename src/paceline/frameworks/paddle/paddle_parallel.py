"""Trains one job with PaddlePaddle, alone or under its DataParallel.

    python paddle_parallel.py JOB.json EVENTS.jsonl

Started once per rank; PaddlePaddle, NumPy and the standard library only.
"""

import os
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import paddle
import paddle.distributed as dist
from layer_graph import whole_program
from layer_settings import ADAM_BETAS, ADAM_EPSILON
from numpy_data import INPUTS_FIRST, batches, initial_statistics, initial_weights
from paddle.nn.initializer import Constant
from paddle_layers import LAYERS
from paddle_sequence_layers import SEQUENCE_LAYERS
from rank_exchange import exchange, own_endpoint
from stepping import Training, run_worker

OPERATIONS = {**LAYERS, **SEQUENCE_LAYERS}


def versions() -> Mapping[str, Any]:
    """Return the versions that affect the speed of this rank."""
    return {"framework": f"paddle {paddle.__version__}", "numpy": np.__version__}


def _wide_integers(value: Any) -> Any:
    return value.astype(np.int64) if value.dtype == np.int32 else value


class Network(paddle.nn.Layer):
    """The loss of a batch as one layer; inputs are in the order of the graph."""

    def __init__(self, graph: Mapping[str, Any], seed: int) -> None:
        super().__init__()
        self.program, self.names = whole_program(graph), list(graph["inputs"])
        self.tensors: dict[str, Any] = {}
        zeros, weights = Constant(0.0), initial_weights(graph, seed, INPUTS_FIRST)
        for number, (name, value) in enumerate(weights.items()):
            parameter = self.create_parameter(value.shape, default_initializer=zeros)
            parameter.set_value(value)
            self.add_parameter(f"weight{number}", parameter)
            self.tensors[name] = parameter
        for number, (name, value) in enumerate(initial_statistics(graph).items()):
            self.tensors[name] = paddle.to_tensor(value)
            self.register_buffer(f"statistic{number}", self.tensors[name])

    def forward(self, *values: Any) -> Any:
        inputs = dict(zip(self.names, values, strict=True))
        return self.program.run(OPERATIONS, self.tensors, inputs)


def join_ranks(rank: int, world: int, device: str) -> None:
    """Join Paddle's rendezvous, which reads environment variables."""
    endpoints = exchange(own_endpoint())
    os.environ.update(
        PADDLE_TRAINER_ID=str(rank),
        PADDLE_TRAINERS_NUM=str(world),
        PADDLE_TRAINER_ENDPOINTS=",".join(endpoints),
        PADDLE_CURRENT_ENDPOINT=endpoints[rank],
        PADDLE_MASTER=f"{os.environ['MASTER_ADDR']}:{os.environ['MASTER_PORT']}",
        PADDLE_DISTRI_BACKEND="nccl" if device == "cuda" else "gloo",
    )
    dist.init_parallel_env()


def make_optimiser(settings: Mapping[str, Any], trained: list) -> Any:
    """The optimiser of a job: ``sgd`` (with momentum), ``adam`` or ``adamw``."""
    name, rate, decay = settings["name"], settings["learning_rate"], settings["weight_decay"]
    shared = {"parameters": trained, "weight_decay": decay or None}
    if name == "sgd":
        return paddle.optimizer.Momentum(rate, settings["momentum"], **shared)
    if name not in ("adam", "adamw"):
        raise ValueError(f"unknown optimiser '{name}'; choose sgd, adam or adamw")
    adam = {"beta1": ADAM_BETAS[0], "beta2": ADAM_BETAS[1], "epsilon": ADAM_EPSILON}
    if name == "adam":
        return paddle.optimizer.Adam(rate, **adam, **shared)
    return paddle.optimizer.AdamW(rate, **adam, parameters=trained, weight_decay=decay)


class ParallelTraining(Training):
    """One rank's network, data and optimiser."""

    def __init__(self, job: dict, rank: int, world: int) -> None:
        self.gpu = job["device"] == "cuda"
        paddle.set_device(f"gpu:{os.environ.get('LOCAL_RANK', '0')}" if self.gpu else "cpu")
        self.job, self.world = job, world
        self.synchronises = world > 1 and job["synchronise"]
        if world > 1:
            join_ranks(rank, world, job["device"])
        self.network = Network(job["graph"], job["seed"])
        self.model = paddle.DataParallel(self.network) if self.synchronises else self.network
        trained = self.network.parameters()
        self.parameters = sum(int(np.prod(parameter.shape)) for parameter in trained)
        self.optimiser = make_optimiser(job["optimiser"], trained)
        self.data = [
            [paddle.to_tensor(_wide_integers(value)) for value in batch.values()]
            for batch in batches(job, rank, world)
        ]

    def gradients(self, model: Any, index: int) -> Any:
        """Forward and backward pass of a step's batch, including the mean over ranks."""
        loss = model(*self.data[index % len(self.data)])
        loss.backward()
        return loss

    def step(self, index: int) -> Any:
        """Run one optimiser step; return the detached loss."""
        loss = self.gradients(self.model, index)
        self.optimiser.step()
        self.optimiser.clear_grad(set_to_zero=False)
        return loss.detach()

    def wait(self, handle: Any) -> None:
        """Wait for the issued work of a device; a CPU has finished it."""
        if self.gpu:
            paddle.device.synchronize()

    def barrier(self) -> None:
        if self.world > 1:
            dist.barrier()

    def parts(self) -> dict[str, Callable[[int], Any]]:
        """All parts, on the network without its wrapper."""
        buffers = [paddle.zeros_like(parameter) for parameter in self.network.parameters()]

        def forward_backward(index: int) -> Any:
            loss = self.gradients(self.network, index)
            self.optimiser.clear_grad(set_to_zero=False)
            return loss

        def local_step(index: int) -> Any:
            loss = self.gradients(self.network, index)
            self.optimiser.step()
            self.optimiser.clear_grad(set_to_zero=False)
            return loss

        def collective(_: int) -> None:
            for buffer in buffers:
                dist.all_reduce(buffer)

        parts: dict[str, Callable[[int], Any]] = {
            "forward": lambda index: self.network(*self.data[index % len(self.data)]),
            "forward_backward": forward_backward,
            "local_step": local_step,
        }
        if self.synchronises:
            parts["collective"] = collective
        return parts


if __name__ == "__main__":
    run_worker(ParallelTraining, versions)
