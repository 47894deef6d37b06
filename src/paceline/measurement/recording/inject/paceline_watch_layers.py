"""Times of single layers, for scripts under ``paceline run --layers``.

The overhead exceeds that of watching steps, hence a separate launch. Two hooks time the forward
pass of every leaf module; its backward pass lasts from the completion of the gradient of its
output to that of the next layer.
"""

from __future__ import annotations

import statistics
from typing import Any, Callable

from paceline_watch import Recorder, clock

WARM_UP_CALLS = 3


def patches(recorder: Recorder) -> dict[str, Callable[[Any], None]]:
    """Modules to watch, each with the function that does it."""
    layers = LayerTimes()

    def watch_modules(module: Any) -> None:
        module.register_module_forward_pre_hook(layers.enter)
        module.register_module_forward_hook(layers.leave)
        recorder.layers = layers.report

    return {"torch.nn.modules.module": watch_modules}


class LayerTimes:
    """Forward and backward seconds of every leaf module, by its name in the outermost one."""

    def __init__(self) -> None:
        self.depth = 0
        self.names: dict[int, str] = {}
        self.leaves: dict[int, Any] = {}
        self.entered: dict[int, float] = {}
        self.forward: dict[int, list[float]] = {}
        self.backward: dict[int, list[float]] = {}
        self.last_mark: tuple[int, float] | None = None

    def enter(self, module: Any, args: Any) -> None:
        """Begin the forward pass of a module."""
        if self.depth == 0 and id(module) not in self.names:
            for name, part in module.named_modules():
                self.names.setdefault(id(part), name or type(module).__name__)
        self.depth += 1
        if next(module.children(), None) is None:
            self.close_backward(clock())
            self.entered[id(module)] = clock()

    def leave(self, module: Any, args: Any, output: Any) -> None:
        """End the forward pass of a module."""
        self.depth = max(0, self.depth - 1)
        key = id(module)
        started = self.entered.pop(key, None)
        if started is None or not module.training:
            return
        self.leaves[key] = module
        self.forward.setdefault(key, []).append(clock() - started)
        if getattr(output, "requires_grad", False):
            output.register_hook(lambda _: self.mark(key))

    def mark(self, key: int) -> None:
        """Begin the backward pass of a layer: the gradient of its output is complete."""
        moment = clock()
        self.close_backward(moment)
        self.last_mark = (key, moment)

    def close_backward(self, moment: float) -> None:
        """End the current backward pass."""
        if self.last_mark is not None:
            key, started = self.last_mark
            self.backward.setdefault(key, []).append(moment - started)
            self.last_mark = None

    def report(self) -> list[dict[str, Any]]:
        """Median times of each layer, and the bytes of its gradient."""
        return [
            {
                "name": self.names.get(key, type(module).__name__),
                "forward_seconds": median(self.forward[key]),
                "backward_seconds": median(self.backward.get(key, [])),
                "gradient_bytes": float(
                    sum(
                        p.numel() * p.element_size()
                        for p in module.parameters(recurse=False)
                        if p.requires_grad
                    )
                ),
            }
            for key, module in self.leaves.items()
        ]


def median(values: list[float]) -> float:
    """Median after the warm-up; 0.0 without values."""
    kept = values[WARM_UP_CALLS:] or values
    return statistics.median(kept) if kept else 0.0
