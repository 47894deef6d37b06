"""Engines that step the optimiser for the script (DeepSpeed): steps and updates are theirs."""

from __future__ import annotations

import functools
from typing import Any, Callable

from paceline_watch import Recorder, clock


def patches(recorder: Recorder) -> dict[str, Callable[[Any], None]]:
    """Modules to watch, each with the function that does it."""
    return {"deepspeed.runtime.engine": lambda module: watch_deepspeed(module, recorder)}


def watch_deepspeed(module: Any, recorder: Recorder) -> None:
    """A step ends with the engine step that updates weights, which includes the optimiser step."""
    engine = module.DeepSpeedEngine
    original = engine.step

    @functools.wraps(original)
    def step(self: Any, *args: Any, **kwargs: Any) -> Any:
        updates, start = self.is_gradient_accumulation_boundary(), clock()
        recorder.in_engine = True
        try:
            return original(self, *args, **kwargs)
        finally:
            recorder.in_engine = False
            if updates:
                moment = clock()
                recorder.segment("update", start, moment)
                if not recorder.samples:
                    each = self.train_micro_batch_size_per_gpu()
                    recorder.samples = each * self.gradient_accumulation_steps()
                if not recorder.steps_by_hand:
                    recorder.end_step(moment)

    engine.step = step
