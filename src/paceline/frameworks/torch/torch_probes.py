"""Hooks and timers of an instrumented PyTorch job: phases, buckets, layers."""

import statistics
import time
from typing import Any

import torch
import torch.distributed as dist
from channel import Events
from torch.nn.parallel import DistributedDataParallel
from torch_devices import synchronise


class Probes:
    """Hooks and timers of an instrumented job; inactive otherwise."""

    def __init__(self, training: Any, instrument: str) -> None:
        self.training = training
        self.active = instrument != "none"
        self.timelines: list[dict] = []
        self.buckets: list[dict] = []
        self.layers: dict[str, dict] = {}
        self.backward_marks: list[tuple[float, str]] = []
        if instrument == "phases" and isinstance(training.model, DistributedDataParallel):
            training.model.register_comm_hook(None, self._timed_all_reduce)
            self._time_buffers(training.model)
        if instrument == "layers":
            self._hook_layers()

    def step(self, index: int) -> torch.Tensor:
        """The plain step with a clock reading at each phase boundary."""
        training, clock = self.training, time.perf_counter
        self.buckets, self.backward_marks = [], []
        start = clock()
        training.mark("input")
        inputs, targets = training.fetch(index)
        fetched = clock()
        training.mark("forward")
        training.optimiser.zero_grad(set_to_none=True)
        loss = training.loss(inputs, targets)
        synchronise(training.device)
        forward = clock()
        training.mark("backward")
        loss.backward()
        synchronise(training.device)
        backward = clock()
        training.mark("update")
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
                        "blocking": bucket.get("blocking", False),
                    }
                    for bucket in self.buckets
                ],
            }
        )
        self._close_backward(backward)
        return loss.detach()

    def report(self, events: Events) -> None:
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

    def _time_buffers(self, model: DistributedDataParallel) -> None:
        """Time DDP's broadcast of buffers (running statistics) before forward: ranks wait there."""
        send = model._sync_buffers

        def timed_send() -> None:
            record = {"start": time.perf_counter(), "blocking": True}
            send()
            record["end"] = time.perf_counter()
            sizes = [buffer.numel() * buffer.element_size() for buffer in model.modules_buffers]
            self.buckets.append({**record, "bytes": sum(sizes)})

        model._sync_buffers = timed_send

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
        """Time every leaf module: forward between its two hooks, backward by marks.

        The hook on the gradient of a layer's output fires at the start of the layer's backward,
        which lasts until the mark of the next layer.
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


def median_after(values: list[float], skip: int) -> float:
    """Median of the values after the warm-up; 0.0 without values."""
    kept = values[skip:] or values
    return statistics.median(kept) if kept else 0.0
