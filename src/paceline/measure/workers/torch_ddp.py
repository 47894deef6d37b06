"""Trains one job with PyTorch, alone or under DistributedDataParallel, and times its steps.

Started as a script, once per rank, with PyTorch and the standard library only:

    python torch_ddp.py JOB.json EVENTS.jsonl

RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT come in the environment. `protocol.md` beside this
package describes the job and the events. A plain job has nothing but a clock inside the step; an
instrumented one adds hooks that see phases, buckets and layers, and costs a little time.
"""

import json
import os
import platform
import statistics
import sys
import time

import torch
import torch.distributed as dist
from channel import Events, die_with_parent
from torch.nn.parallel import DistributedDataParallel
from torch_data import batches, initialise
from torch_model import build, build_loss, build_optimiser


def main() -> None:
    """Read the job, train, write the events, and leave without a teardown that can abort."""
    job_path, events_path = sys.argv[1], sys.argv[2]
    die_with_parent()
    with open(job_path, encoding="utf-8") as file:
        job = json.load(file)
    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    with Events(events_path) as events:
        events.write("hello", rank=rank, world=world, pid=os.getpid(), versions=versions())
        torch.set_num_threads(job["threads"])
        torch.manual_seed(job["seed"])
        if world > 1:
            dist.init_process_group("nccl" if job["device"] == "cuda" else "gloo")
        Training(job, rank, world).run(events)
        events.write("end", rank=rank)
    if world > 1:
        dist.barrier()
        dist.destroy_process_group()
    sys.stdout.flush()
    os._exit(0)  # gloo's threads now and then abort the interpreter's own teardown


def versions() -> dict:
    """Versions and libraries that decide how fast this rank computes."""
    return {
        "framework": f"torch {torch.__version__}",
        "python": platform.python_version(),
        "blas": "mkl" if torch.backends.mkl.is_available() else "other",
        "onednn": torch.backends.mkldnn.is_available(),
    }


class Training:
    """One rank's model, data and loop."""

    def __init__(self, job: dict, rank: int, world: int) -> None:
        self.job, self.rank, self.world = job, rank, world
        self.device = place(job["device"])
        network = build(job["graph"])
        initialise(network, job["graph"], job["seed"])
        network.to(self.device)
        self.network = self.model = network
        if world > 1 and job["synchronise"]:
            self.model = DistributedDataParallel(
                network,
                bucket_cap_mb=job["bucket_bytes"] / 2**20 if job["bucket_bytes"] else None,
                broadcast_buffers=job["broadcast_buffers"],
            )
        self.optimiser = build_optimiser(network.parameters(), job["optimiser"])
        self.loss_of = build_loss(job["graph"])
        names = network.input_names, self.loss_of.target_names
        self.data = [
            tuple([tensor.to(self.device) for tensor in tensors] for tensors in batch)
            for batch in batches(job, rank, world, *names)
        ]

    def run(self, events: Events) -> None:
        """Train for the warm-up and the counted steps; times are written after the last one."""
        job = self.job
        total = job["warmup_steps"] + job["steps"]
        probes = Probes(self, job["instrument"])
        wall, cpu, losses = [], [], []
        if self.world > 1:
            dist.barrier()
        events.write("ready", rank=self.rank, parameters=count(self.network))
        for index in range(total):
            cpu_start, start = time.process_time(), time.perf_counter()
            loss = probes.step(index) if probes.active else self.step(index)
            synchronise(self.device)
            wall.append(time.perf_counter() - start)
            cpu.append(time.process_time() - cpu_start)
            losses.append(loss)
        events.write(
            "steps",
            rank=self.rank,
            warmup_steps=job["warmup_steps"],
            wall_seconds=wall,
            cpu_seconds=cpu,
            losses=[float(loss.detach()) for loss in losses],
        )
        probes.report(events)

    def fetch(self, index: int) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
        """Inputs and targets of a step; synthetic data was made before the first one."""
        return self.data[index % len(self.data)]

    def loss(self, inputs: list[torch.Tensor], targets: list[torch.Tensor]) -> torch.Tensor:
        """The forward pass, in the job's precision."""
        if self.job["precision"] == "bf16":
            with torch.autocast(self.device.type, dtype=torch.bfloat16):
                return self.loss_of(self.model(*inputs), *targets)
        return self.loss_of(self.model(*inputs), *targets)

    def step(self, index: int) -> torch.Tensor:
        """One plain optimiser step; the loss, not yet read from the device."""
        inputs, targets = self.fetch(index)
        self.optimiser.zero_grad(set_to_none=True)
        loss = self.loss(inputs, targets)
        loss.backward()
        self.optimiser.step()
        return loss


class Probes:
    """Hooks and clocks of an instrumented job; inactive for a plain one."""

    def __init__(self, training: Training, instrument: str) -> None:
        self.training = training
        self.active = instrument != "none"
        self.timelines: list[dict] = []
        self.buckets: list[dict] = []
        self.layers: dict[str, dict] = {}
        self.backward_marks: list[tuple[float, str]] = []
        if instrument == "phases" and isinstance(training.model, DistributedDataParallel):
            training.model.register_comm_hook(None, self._timed_all_reduce)
        if instrument == "layers":
            self._hook_layers()

    def step(self, index: int) -> torch.Tensor:
        """The same step as the plain one, with a clock reading at each phase border."""
        training, clock = self.training, time.perf_counter
        self.buckets, self.backward_marks = [], []
        start = clock()
        inputs, targets = training.fetch(index)
        fetched = clock()
        training.optimiser.zero_grad(set_to_none=True)
        loss = training.loss(inputs, targets)
        synchronise(training.device)
        forward = clock()
        loss.backward()
        synchronise(training.device)
        backward = clock()
        training.optimiser.step()
        synchronise(training.device)
        end = clock()
        self.timelines.append(
            {
                "input_seconds": fetched - start,
                "forward_seconds": forward - fetched,
                "backward_seconds": backward - forward,
                "update_seconds": end - backward,
                "step_seconds": end - start,
                "buckets": [
                    {
                        "bytes": bucket["bytes"],
                        "start_seconds": bucket["start"] - start,
                        "end_seconds": bucket["end"] - start,
                    }
                    for bucket in self.buckets
                ],
            }
        )
        self._close_backward(backward)
        return loss

    def report(self, events: Events) -> None:
        """Write what the hooks saw of the steps after the warm-up."""
        if not self.active:
            return
        kept = self.timelines[self.training.job["warmup_steps"] :]
        events.write("timelines", rank=self.training.rank, steps=kept)
        if self.layers:
            skip = self.training.job["warmup_steps"]
            events.write(
                "layers",
                rank=self.training.rank,
                layers=[
                    {
                        "name": name,
                        "forward_seconds": median_after(layer["forward"], skip),
                        "backward_seconds": median_after(layer["backward"], skip),
                        "gradient_bytes": layer["gradient_bytes"],
                    }
                    for name, layer in self.layers.items()
                ],
            )

    def _timed_all_reduce(
        self, _: None, bucket: dist.GradBucket
    ) -> torch.futures.Future[torch.Tensor]:
        record = {"bytes": bucket.buffer().numel() * bucket.buffer().element_size()}
        record["start"] = record["end"] = time.perf_counter()
        self.buckets.append(record)
        gradients = bucket.buffer().div_(self.training.world)
        work = dist.all_reduce(gradients, async_op=True)

        def finished(future: torch.futures.Future) -> torch.Tensor:
            record["end"] = time.perf_counter()
            return future.value()[0]

        return work.get_future().then(finished)

    def _hook_layers(self) -> None:
        """Clock every leaf module: forward between its two hooks, backward by marks.

        A hook on a layer's output fires when its gradient is complete, which is when the layer's
        own backward begins; that backward lasts until the next layer's mark.
        """
        for name, module in self.training.network.named_modules():
            if next(module.children(), None) is not None or name == "":
                continue
            size = sum(p.numel() * p.element_size() for p in module.parameters(recurse=False))
            self.layers[name] = {"forward": [], "backward": [], "gradient_bytes": size}
            module.register_forward_pre_hook(lambda module, _: self._enter(module))
            module.register_forward_hook(
                lambda module, _, output, name=name: self._leave(module, name, output)
            )

    def _enter(self, module: torch.nn.Module) -> None:
        module._entered = time.perf_counter()

    def _leave(self, module: torch.nn.Module, name: str, output: torch.Tensor) -> None:
        self.layers[name]["forward"].append(time.perf_counter() - module._entered)
        if isinstance(output, torch.Tensor) and output.requires_grad:
            output.register_hook(lambda _, name=name: self._mark_backward(name))

    def _mark_backward(self, name: str) -> None:
        self.backward_marks.append((time.perf_counter(), name))

    def _close_backward(self, end: float) -> None:
        borders = [moment for moment, _ in self.backward_marks[1:]] + [end]
        for (start, name), stop in zip(self.backward_marks, borders, strict=False):
            self.layers[name]["backward"].append(stop - start)


def count(network: torch.nn.Module) -> int:
    """Parameters that are trained."""
    return sum(parameter.numel() for parameter in network.parameters())


def place(device: str) -> torch.device:
    """The device of this rank: the CPU, or the GPU with its local rank's number."""
    if device == "cuda":
        torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")))
        return torch.device("cuda", torch.cuda.current_device())
    return torch.device("cpu")


def synchronise(device: torch.device) -> None:
    """Wait for a GPU to finish what was issued, so that the clock sees it; nothing on a CPU."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def median_after(values: list[float], skip: int) -> float:
    """Median of the values after the warm-up; 0.0 where there are none."""
    kept = values[skip:] or values
    return statistics.median(kept) if kept else 0.0


if __name__ == "__main__":
    main()
