"""Trains one job with JAX: one process and device per rank, one compiled step over all ranks.

    python jax_sharded.py JOB.json EVENTS.jsonl

Started once per rank; JAX, NumPy and the standard library only. The step is a `shard_map` over
ranks: each rank has its own batch statistics, and only gradients are averaged.
"""

import os
from collections.abc import Callable, Mapping
from functools import cached_property, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as Part
from jax_counting import product_flops
from jax_layers import EVALUATION, operations
from layer_graph import Operation, mixed_precision, scores_program, whole_program
from layer_settings import ADAM_BETAS, ADAM_EPSILON
from numpy_data import (
    CHANNELS_LAST,
    ArrayEpochs,
    batches,
    channels_last,
    initial_statistics,
    initial_weights,
    loss_and_correct,
)
from rank_exchange import own_address
from stepping import Training, run_worker

RANKS = "ranks"
Batch = Mapping[str, Any]
"""Inputs by name, labels included."""

SAME, SPLIT = Part(), Part(RANKS)
STEPS = "steps"
"""Number of steps done, stored with the running statistics of a network with dropout."""


def versions() -> Mapping[str, Any]:
    """Return the versions that affect the speed of this rank."""
    return {"framework": f"jax {jax.__version__}", "numpy": np.__version__}


def join_ranks(job: Mapping[str, Any], rank: int, world: int) -> Mesh:
    """Join the ranks and return a mesh with one device per rank."""
    jax.config.update("jax_platforms", "cuda" if job["device"] == "cuda" else "cpu")
    if world > 1:
        if job["device"] == "cpu":
            jax.config.update("jax_cpu_collectives_implementation", "gloo")
            connect_at(own_address())
        address = f"{os.environ['MASTER_ADDR']}:{os.environ['MASTER_PORT']}"
        own = [int(os.environ["LOCAL_RANK"])] if job["device"] == "cuda" else None
        jax.distributed.initialize(
            address, world, rank, local_device_ids=own, coordinator_bind_address=address
        )
    by_rank = sorted(jax.devices(), key=lambda device: device.process_index)
    return Mesh(np.array(by_rank), (RANKS,))


def connect_at(address: str) -> None:
    """Make Gloo listen at ``address``.

    JAX has no setting for it, and Gloo takes the address of the host name, which many systems
    resolve to a loopback address: ranks of two hosts would not find each other.
    """
    from jaxlib import _jax

    if hasattr(_jax, "make_gloo_tcp_collectives"):
        made = partial(_jax.make_gloo_tcp_collectives, hostname=address)
        _jax.make_gloo_tcp_collectives = made


def in_precision(job: Mapping[str, Any], functions: Mapping[str, Operation]) -> Any:
    """``functions`` of operations in the precision of the job."""
    if job["precision"] == "fp32":
        return functions
    return mixed_precision(functions, partial(as_type, jnp.bfloat16), partial(as_type, jnp.float32))


def as_type(dtype: Any, value: Any) -> Any:
    """``value`` in a floating-point type; other arrays as they are."""
    return value.astype(dtype) if jnp.issubdtype(value.dtype, jnp.floating) else value


def numpy_network(job: Mapping[str, Any]) -> tuple[dict, dict, Callable[..., Any]]:
    """Weights, running statistics, and the loss as a function of both and a batch."""
    graph, seed = job["graph"], job["seed"]
    program = whole_program(graph)

    def loss_of(weights: dict, running: dict, batch: Batch) -> tuple[Any, dict]:
        updated, key = dict(running), None
        if STEPS in running:
            updated[STEPS] = running[STEPS] + 1
            key = jax.random.fold_in(jax.random.key(seed), running[STEPS])
            key = jax.random.fold_in(key, jax.lax.axis_index(RANKS))
        functions = in_precision(job, operations(updated, key))
        loss = program.run(functions, {**weights, **running}, batch)
        return loss, updated

    running = initial_statistics(graph)
    if any(node["op"] == "dropout" for node in graph["nodes"]):
        running[STEPS] = np.zeros((), np.uint32)
    return initial_weights(graph, seed, CHANNELS_LAST), running, loss_of


def mean_over_ranks(gradients: Any) -> Any:
    """Mean of each gradient over ranks, in one all-reduce of one flat vector.

    XLA combines a `pmean` of a tree into one operation on many arrays, which Gloo sends one by one:
    more than half the CPU time of a ResNet-20 step on two processes went into small messages.
    """
    flat, unflatten = ravel_pytree(gradients)
    return unflatten(jax.lax.pmean(flat, RANKS))


def initial_moments(optimiser: Mapping[str, Any], weights: Any) -> tuple:
    """State of the optimiser: velocities of SGD; both moments of Adam and its number of steps."""
    zeros = jax.tree.map(np.zeros_like, weights)
    if optimiser["name"] == "sgd":
        return (zeros,)
    if optimiser["name"] in ("adam", "adamw"):
        return zeros, zeros, np.zeros((), np.float32)
    raise ValueError(f"unknown optimiser '{optimiser['name']}'; choose sgd, adam or adamw")


def updated(
    optimiser: Mapping[str, Any], weights: Any, moments: tuple, gradients: Any
) -> tuple[Any, tuple]:
    """Weights and state after one step of the optimiser, as PyTorch defines it."""
    decay, rate = optimiser["weight_decay"], optimiser["learning_rate"]
    if decay and optimiser["name"] != "adamw":
        gradients = jax.tree.map(lambda g, w: g + decay * w, gradients, weights)
    if optimiser["name"] == "sgd":
        momentum, (velocities,) = optimiser["momentum"], moments
        velocities = jax.tree.map(lambda v, g: momentum * v + g, velocities, gradients)
        return jax.tree.map(lambda w, v: w - rate * v, weights, velocities), (velocities,)
    kept = 1.0 - rate * decay if optimiser["name"] == "adamw" else 1.0
    first, second, steps = moments
    beta1, beta2 = ADAM_BETAS
    steps = steps + 1.0
    first = jax.tree.map(lambda m, g: beta1 * m + (1.0 - beta1) * g, first, gradients)
    second = jax.tree.map(lambda v, g: beta2 * v + (1.0 - beta2) * g * g, second, gradients)
    length, root = rate / (1.0 - beta1**steps), (1.0 - beta2**steps) ** 0.5
    weights = jax.tree.map(
        lambda w, m, v: kept * w - length * m / (v**0.5 / root + ADAM_EPSILON),
        weights,
        first,
        second,
    )
    return weights, (first, second, steps)


class ShardedTraining(Training):
    """One rank's part of the sharded training."""

    def __init__(
        self,
        job: dict,
        rank: int,
        world: int,
        network: Callable[[Mapping[str, Any]], tuple[Any, Any, Callable[..., Any]]] = numpy_network,
    ) -> None:
        self.job, self.world = job, world
        self.synchronises = world > 1 and job["synchronise"]
        self.mesh = join_ranks(job, rank, world)
        weights, running, self.loss_of = network(job)
        self.parameters = sum(int(np.prod(value.shape)) for value in jax.tree.leaves(weights))
        moments = initial_moments(job["optimiser"], weights)
        self.state = jax.tree.map(self.replicated, (weights, moments, running))
        self.epochs: Any = ArrayEpochs(job, rank, world) if job.get("epochs") else None
        self.data = [
            self.on_devices(batch) for batch in ([] if self.epochs else batches(job, rank, world))
        ]
        self.whole = self.compiled_step(self.synchronises)

    def replicated(self, value: Any) -> jax.Array:
        return jax.make_array_from_process_local_data(NamedSharding(self.mesh, SAME), value)

    def global_array(self, own: Any) -> jax.Array:
        """Global array of all ranks' samples; ``own`` are those of this rank."""
        return jax.make_array_from_process_local_data(NamedSharding(self.mesh, SPLIT), own)

    def on_devices(self, batch: Batch) -> Batch:
        """Move a batch to the devices, as part of the global batch."""
        return {name: self.global_array(channels_last(value)) for name, value in batch.items()}

    def begin_epoch(self, epoch: int) -> None:
        """Move the batches of an epoch to the devices, in order."""
        shares = self.epochs.shares(epoch)
        self.data = [self.on_devices(self.epochs.batch_of("train", share)) for share in shares]

    def evaluate(self) -> tuple[int, float, int]:
        """Evaluate this rank's share of the test samples, with its running statistics."""
        samples, total, correct = 0, 0.0, 0
        for indices, counted in self.epochs.test_shares():
            batch = self.epochs.batch_of("test", indices)
            scores = self.scores(self.state, self.on_devices(batch)).addressable_shards[0].data
            labels = batch[self.epochs.label][:counted]
            loss, right = loss_and_correct(np.asarray(scores)[:counted], labels)
            samples, total, correct = samples + counted, total + loss, correct + right
        return samples, total, correct

    @cached_property
    def scores(self) -> Any:
        """Output of the network for the samples of every rank, compiled once."""
        program = scores_program(self.job["graph"])

        def forward(state: Any, batch: Batch) -> Any:
            functions = in_precision(self.job, EVALUATION)
            scores = program.run(functions, {**state[0], **state[2]}, batch)
            return as_type(jnp.float32, scores)

        return self.over_ranks(forward, SPLIT)

    def over_ranks(self, function: Callable[..., Any], out: Any, donate: tuple = ()) -> Any:
        """Compile ``function`` of state and batch to run on every rank."""
        mapped = jax.shard_map(
            function, mesh=self.mesh, in_specs=(SAME, SPLIT), out_specs=out, check_vma=False
        )
        return jax.jit(mapped, donate_argnums=donate)

    def compiled_step(self, synchronises: bool) -> Any:
        """The complete step, with or without the mean over ranks."""

        def step(state: Any, batch: Batch) -> tuple[Any, Any]:
            weights, moments, running = state
            loss, running, gradients = self.gradients(state, batch)
            if synchronises:
                gradients = mean_over_ranks(gradients)
            weights, moments = updated(self.job["optimiser"], weights, moments, gradients)
            return (weights, moments, running), loss[None]

        return self.over_ranks(step, ((SAME, SAME, SAME), SPLIT), donate=(0,))

    def gradients(self, state: Any, batch: Batch) -> tuple[Any, Any, Any]:
        weights, _, running = state
        value_and_gradient = jax.value_and_grad(self.loss_of, has_aux=True)
        (loss, running), gradients = value_and_gradient(weights, running, batch)
        return loss, running, gradients

    def step(self, index: int) -> Any:
        """Run one optimiser step; return the losses of all ranks, sharded by rank."""
        self.state, loss = self.whole(self.state, self.data[index % len(self.data)])
        return loss

    def wait(self, handle: Any) -> None:
        """Return when the step and its update are computed."""
        jax.block_until_ready((handle, self.state))

    def loss_value(self, handle: Any) -> float:
        return float(np.asarray(handle.addressable_shards[0].data)[0])

    def barrier(self) -> None:
        """A collective over one number of each rank."""
        if self.world > 1:
            ones = self.global_array(np.ones(1, np.float32))
            jax.block_until_ready(self.sum_over_ranks(ones))

    @property
    def sum_over_ranks(self) -> Any:
        """Sum over ranks of one number per rank, compiled once."""
        if not hasattr(self, "_together"):
            total = jax.shard_map(
                lambda x: jax.lax.psum(x, RANKS), mesh=self.mesh, in_specs=SPLIT, out_specs=SAME
            )
            self._together = jax.jit(total)
        return self._together

    def compiled_forward(self) -> Any:
        def forward(state: Any, batch: Batch) -> Any:
            return self.loss_of(state[0], state[2], batch)[0][None]

        return self.over_ranks(forward, SPLIT)

    def forward_flops(self) -> "float | None":
        """FLOPs of the convolutions and GEMMs of a forward pass, as traced by JAX."""
        if self.synchronises:
            return None
        return product_flops(jax.make_jaxpr(self.compiled_forward())(self.state, self.data[0]))

    def parts(self) -> dict[str, Callable[[int], Any]]:
        """All parts, compiled separately; they train a copy of the state."""

        def forward_backward(state: Any, batch: Batch) -> Any:
            loss, _, gradients = self.gradients(state, batch)
            return loss[None], gradients

        def collective(state: Any, batch: Batch) -> Any:
            return mean_over_ranks(state[1])

        copied = {"state": jax.tree.map(jnp.copy, self.state)}
        local = self.compiled_step(synchronises=False)

        def local_step(index: int) -> Any:
            batch = self.data[index % len(self.data)]
            copied["state"], loss = local(copied["state"], batch)
            return loss, copied["state"]

        def on_batch(function: Any) -> Callable[[int], Any]:
            return lambda index: function(self.state, self.data[index % len(self.data)])

        parts = {
            "forward": on_batch(self.compiled_forward()),
            "forward_backward": on_batch(self.over_ranks(forward_backward, (SPLIT, SAME))),
            "local_step": local_step,
        }
        if self.synchronises:
            parts["collective"] = on_batch(self.over_ranks(collective, SAME))
        return parts

    def close(self) -> None:
        if self.world > 1:
            jax.distributed.shutdown()


if __name__ == "__main__":
    run_worker(ShardedTraining, versions)
