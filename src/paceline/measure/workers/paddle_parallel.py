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
import paddle.nn.functional as F
from layer_graph import NORM_EPSILON, NORM_NEW_SHARE, run_graph
from layer_shapes import normalised_channels
from meeting import exchange, free_port
from numpy_data import batches, initial_weights, input_names
from stepping import Training, require_plain_sgd, run_worker

Node = Mapping[str, Any]


def versions() -> Mapping[str, Any]:
    """What decides how fast this rank computes."""
    return {"framework": f"paddle {paddle.__version__}", "numpy": np.__version__}


def _conv(node: Node, inputs: list, own: Mapping[str, Any]) -> Any:
    return F.conv2d(
        inputs[0],
        own["weight"],
        own.get("bias"),
        stride=node["stride"],
        padding=node["padding"],
        dilation=node["dilation"],
        groups=node["groups"],
    )


def _batch_norm(_: Node, inputs: list, own: Mapping[str, Any]) -> Any:
    return F.batch_norm(
        inputs[0],
        own["running_mean"],
        own["running_var"],
        own["weight"],
        own["bias"],
        training=True,
        momentum=1.0 - NORM_NEW_SHARE,
        epsilon=NORM_EPSILON,
    )


def _max_pool(node: Node, inputs: list, _: Mapping[str, Any]) -> Any:
    return F.max_pool2d(inputs[0], node["kernel"], node["stride"], node["padding"])


def _avg_pool(node: Node, inputs: list, _: Mapping[str, Any]) -> Any:
    return F.avg_pool2d(inputs[0], node["kernel"], node["stride"], node["padding"], exclusive=False)


def _pad_shortcut(node: Node, inputs: list, _: Mapping[str, Any]) -> Any:
    stride = node["stride"]
    added = node["out_channels"] - inputs[0].shape[1]
    taken = inputs[0][:, :, ::stride, ::stride]
    return F.pad(taken, [0, 0, added // 2, added - added // 2, 0, 0, 0, 0])


OPERATIONS = {
    "activation": lambda node, inputs, _: getattr(F, node["function"])(inputs[0]),
    "add": lambda _, inputs, __: sum(inputs[1:], inputs[0]),
    "avg_pool": _avg_pool,
    "batch_norm": _batch_norm,
    "concat": lambda _, inputs, __: paddle.concat(inputs, axis=1),
    "conv": _conv,
    "cross_entropy": lambda _, inputs, __: F.cross_entropy(inputs[0], inputs[1]),
    "dropout": lambda node, inputs, _: F.dropout(inputs[0], node["probability"]),
    "flatten": lambda _, inputs, __: paddle.flatten(inputs[0], 1),
    "global_avg_pool": lambda _, inputs, __: paddle.mean(inputs[0], axis=[2, 3]),
    "linear": lambda _, inputs, own: F.linear(inputs[0], own["weight"], own.get("bias")),
    "max_pool": _max_pool,
    "pad_shortcut": _pad_shortcut,
}
"""Paddle's function of each operation, channels first."""


class Network(paddle.nn.Layer):
    """The loss of a batch as one layer: called with images and labels."""

    def __init__(self, graph: Mapping[str, Any], seed: int) -> None:
        super().__init__()
        self.graph, self.names = graph, input_names(graph)
        self.attributes: dict[str, str] = {}
        for name, value in initial_weights(graph, seed).items():
            stored = value.transpose() if value.ndim == 2 else value
            initial = paddle.nn.initializer.Assign(np.ascontiguousarray(stored))
            parameter = self.create_parameter(stored.shape, default_initializer=initial)
            self.add_parameter(self._attribute(name), parameter)
        for name, width in normalised_channels(graph).items():
            self.register_buffer(self._attribute(f"{name}.running_mean"), paddle.zeros([width]))
            self.register_buffer(self._attribute(f"{name}.running_var"), paddle.ones([width]))

    def _attribute(self, name: str) -> str:
        self.attributes[name] = name.replace(".", "_")
        return self.attributes[name]

    def forward(self, images: Any, labels: Any) -> Any:
        """The mean loss."""
        own = {name: getattr(self, attribute) for name, attribute in self.attributes.items()}
        inputs = dict(zip(self.names, (images, labels), strict=True))
        return run_graph(self.graph, OPERATIONS, own, inputs)


def join_ranks(rank: int, world: int, device: str) -> None:
    """Paddle's own way to meet, told by environment variables."""
    endpoints = exchange(f"{os.environ['MASTER_ADDR']}:{free_port()}")
    os.environ.update(
        PADDLE_TRAINER_ID=str(rank),
        PADDLE_TRAINERS_NUM=str(world),
        PADDLE_TRAINER_ENDPOINTS=",".join(endpoints),
        PADDLE_CURRENT_ENDPOINT=endpoints[rank],
        PADDLE_MASTER=f"{os.environ['MASTER_ADDR']}:{os.environ['MASTER_PORT']}",
        PADDLE_DISTRI_BACKEND="nccl" if device == "cuda" else "gloo",
    )
    dist.init_parallel_env()


class ParallelTraining(Training):
    """One rank's network, data and optimiser."""

    def __init__(self, job: dict, rank: int, world: int) -> None:
        require_plain_sgd(job)
        self.gpu = job["device"] == "cuda"
        paddle.set_device(f"gpu:{os.environ.get('LOCAL_RANK', '0')}" if self.gpu else "cpu")
        self.job, self.world = job, world
        self.talks = world > 1 and job["synchronise"]
        if world > 1:
            join_ranks(rank, world, job["device"])
        self.network = Network(job["graph"], job["seed"])
        self.model = paddle.DataParallel(self.network) if self.talks else self.network
        trained = self.network.parameters()
        self.parameters = sum(int(np.prod(parameter.shape)) for parameter in trained)
        settings = job["optimiser"]
        self.optimiser = paddle.optimizer.Momentum(
            settings["learning_rate"],
            settings["momentum"],
            parameters=trained,
            weight_decay=settings["weight_decay"] or None,
        )
        self.data = [
            (paddle.to_tensor(images), paddle.to_tensor(labels.astype(np.int64)))
            for images, labels in batches(job, rank, world)
        ]

    def gradients(self, model: Any, index: int) -> Any:
        """Forward and backward pass of a step's batch, with the mean over ranks inside."""
        loss = model(*self.data[index % len(self.data)])
        loss.backward()
        return loss

    def step(self, index: int) -> Any:
        """One optimiser step; the loss without its graph."""
        loss = self.gradients(self.model, index)
        self.optimiser.step()
        self.optimiser.clear_grad(set_to_zero=False)
        return loss.detach()

    def wait(self, handle: Any) -> None:
        """Return when the device has done what it was asked; a processor already has."""
        if self.gpu:
            paddle.device.synchronize()

    def barrier(self) -> None:
        """Every rank is here."""
        if self.world > 1:
            dist.barrier()

    def parts(self) -> dict[str, Callable[[int], Any]]:
        """Every part, on the network without its wrapper."""
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
        if self.talks:
            parts["collective"] = collective
        return parts


if __name__ == "__main__":
    run_worker(ParallelTraining, versions)
