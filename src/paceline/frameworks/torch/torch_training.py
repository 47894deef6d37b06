"""A training step in PyTorch; a subclass per worker adds the parallelism."""

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import torch
import torch.distributed as dist
import torch.nn.functional as F
from channel import Events
from stepping import Training
from torch.utils.flop_counter import FlopCounterMode
from torch_data import Batch, TensorEpochs, batches, initialise
from torch_devices import place, synchronise
from torch_emulated import Emulation
from torch_model import build, build_loss, build_optimiser
from torch_rendezvous import join


def lstm_flops(inputs: tuple, _: tuple, hidden_weight: tuple, *__: Any, **___: Any) -> int:
    """Return the FLOPs of one direction of an LSTM layer, which torch's counter lacks."""
    (tokens, batch, features), (rows, hidden) = inputs, hidden_weight
    return 2 * rows * tokens * batch * (features + hidden)


def attention_flops(query: tuple, key: tuple, value: tuple, *_: Any, **__: Any) -> int:
    """Return the FLOPs of attention on a CPU; torch's counter only has those of GPUs."""
    batch, heads, queries, width = query
    return 2 * batch * heads * queries * key[2] * (width + value[3])


def _as_it_is(output: torch.Tensor, *_: Any) -> torch.Tensor:
    """The loss of an emulated network: its output."""
    return output


def global_batches(job: dict, world: int, inputs: list[str], targets: list[str]) -> list:
    """Global batches, for ranks that work on the same samples."""
    global_job = {**job, "batch_per_rank": job["batch_per_rank"] * world}
    return batches(global_job, 0, 1, inputs, targets)


class TorchTraining(Training):
    """One rank's model, data and loop; a single rank trains without communication.

    ``network`` is the bare network, ``model`` the network wrapped by `share`. A job with
    ``emulated`` times sleeps instead of computing. With ``whole_gradients`` an emulated step
    creates gradients, since the wrapper reads them.
    """

    whole_gradients = True

    def __init__(self, job: dict, rank: int, world: int) -> None:
        torch.set_num_threads(job["threads"])
        torch.manual_seed(job["seed"])
        self.job, self.rank, self.world = job, rank, world
        self.synchronises = world > 1 and job["synchronise"]
        self.device = place(job["device"])
        self.emulation = Emulation(job, self.whole_gradients) if job.get("emulated") else None
        if world > 1:
            self.join_ranks()
        network = self.build_network().to(self.device)
        self.parameters = sum(p.numel() for p in network.parameters() if p.requires_grad)
        self.network = network
        self.model = self.share(network) if self.synchronises else network
        self.loss_of: Any = build_loss(job["graph"]) if self.emulation is None else _as_it_is
        self.optimiser = self.make_optimiser()
        self.epochs: Any = TensorEpochs(job, rank, world) if job.get("epochs") else None
        made = [] if self.epochs else self.training_batches(network)
        self.data: list[Any] = [self.on_device(batch) for batch in made]

    def build_network(self) -> Any:
        """The job's network with its initial weights; zero for an emulated one."""
        if self.emulation is not None:
            return self.emulation.network()
        network = build(self.job["graph"])
        initialise(network, self.job["graph"], self.job["seed"])
        return network

    def join_ranks(self) -> None:
        join("nccl" if self.job["device"] == "cuda" else "gloo")

    def share(self, network: torch.nn.Module) -> Any:
        """Wrap the network for training on all ranks."""
        return network

    def make_optimiser(self) -> Any:
        """The job's optimiser of this rank's parameters."""
        if self.emulation is not None:
            return self.emulation.optimiser(self.model.parameters())
        return build_optimiser(self.model.parameters(), self.job["optimiser"])

    def training_batches(self, network: Any) -> list:
        """Batches for training; empty for an emulated device."""
        if self.emulation is not None:
            return [([], [])]
        return self.batches(network.input_names, self.loss_of.target_names)

    def batches(self, inputs: list[str], targets: list[str]) -> list:
        return batches(self.job, self.rank, self.world, inputs, targets)

    def on_device(self, batch: Batch) -> Batch:
        inputs, targets = ([tensor.to(self.device) for tensor in part] for part in batch)
        return inputs, targets

    def begin_epoch(self, epoch: int) -> None:
        """Move the batches of an epoch to the device, in order."""
        shares = self.epochs.shares(epoch)
        self.data = [self.on_device(self.epochs.batch_of("train", share)) for share in shares]

    def evaluate(self) -> tuple[int, float, int]:
        """Evaluate this rank's share of the test samples, with running statistics."""
        samples, total, correct = 0, 0.0, 0
        self.model.eval()
        with torch.no_grad():
            for indices, counted in self.epochs.test_shares():
                inputs, (labels,) = self.on_device(self.epochs.batch_of("test", indices))
                scores, labels = self.scores(inputs)[:counted].float(), labels[:counted]
                samples += counted
                total += float(F.cross_entropy(scores, labels, reduction="sum"))
                correct += int((scores.argmax(-1) == labels).sum())
        self.model.train()
        return samples, total, correct

    def fetch(self, index: int) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
        """Inputs and targets of a step; synthetic data is created before the first step."""
        return self.data[index % len(self.data)]

    def loss(
        self, inputs: list[torch.Tensor], targets: list[torch.Tensor], model: Any = None
    ) -> torch.Tensor:
        """Forward pass in the job's precision; return the loss."""
        called = self.model if model is None else model
        with self.precision():
            return self.loss_of(called(*inputs), *targets)

    def scores(self, inputs: list[torch.Tensor]) -> torch.Tensor:
        with self.precision():
            return self.model(*inputs)

    def precision(self) -> Any:
        if self.job["precision"] == "bf16":
            return torch.autocast(self.device.type, dtype=torch.bfloat16)
        return nullcontext()

    def step(self, index: int) -> torch.Tensor:
        """Run one optimiser step; return the loss, detached and still on the device."""
        self.mark("input")
        inputs, targets = self.fetch(index)
        self.mark("forward")
        self.optimiser.zero_grad()
        loss = self.loss(inputs, targets)
        self.mark("backward")
        loss.backward()
        self.mark("update")
        self.optimiser.step()
        return loss.detach()

    def wait(self, handle: Any) -> None:
        """Wait for the issued work of a GPU; a CPU has finished it."""
        synchronise(self.device)

    def barrier(self) -> None:
        if self.world > 1:
            dist.barrier()

    def forward_flops(self) -> "float | None":
        """FLOPs of the GEMMs and convolutions of one forward pass."""
        if self.synchronises or self.emulation is not None:
            return None
        counted = {
            torch.ops.aten.mkldnn_rnn_layer: lstm_flops,
            torch.ops.aten._scaled_dot_product_flash_attention_for_cpu: attention_flops,
        }
        counter = FlopCounterMode(display=False, custom_mapping=counted)
        with counter, torch.no_grad():
            self.loss(*self.fetch(0), self.network)
        return float(counter.get_total_flops())

    def parts(self) -> dict[str, Callable[[int], Any]]:
        """All parts, on the bare network if this rank has all of it."""
        optimiser = build_optimiser(self.network.parameters(), self.job["optimiser"])
        sizes = [own.numel() for own in self.network.parameters() if own.requires_grad]
        buffer = torch.zeros(sum(sizes), device=self.device)

        def forward(index: int) -> torch.Tensor:
            return self.loss(*self.fetch(index), self.network)

        def forward_backward(index: int) -> torch.Tensor:
            optimiser.zero_grad(set_to_none=True)
            loss = forward(index)
            loss.backward()
            return loss

        def local_step(index: int) -> torch.Tensor:
            loss = forward_backward(index)
            optimiser.step()
            return loss

        parts: dict[str, Callable[[int], Any]] = {
            "forward": forward,
            "forward_backward": forward_backward,
            "local_step": local_step,
        }
        if self.synchronises:
            parts["collective"] = lambda _: self.collective(buffer)
        return parts

    def collective(self, buffer: torch.Tensor) -> None:
        """All-reduce of a buffer of the gradients' size."""
        dist.all_reduce(buffer)

    def report(self, events: Events) -> None:
        """Write the lateness of an emulated device."""
        if self.emulation is not None:
            self.emulation.report(self.rank, events)

    def close(self) -> None:
        if self.world > 1:
            dist.destroy_process_group()
