"""Applies remedies to a script while it runs (`paceline run --try NAME=VALUE`).

Unlike the rest of the watcher, this changes what the script does: arguments of DDP and of data
loaders, the number of threads, and which backward passes synchronise.
"""

from __future__ import annotations

import functools
import json
import os
from typing import Any, Callable

VARIABLE = "PACELINE_WATCH_TRY"
DDP_ARGUMENTS = (
    "bucket_cap_mb",
    "find_unused_parameters",
    "gradient_as_bucket_view",
    "static_graph",
)
LOADER_POSITION = 5
"""Position of ``num_workers`` among the arguments of DataLoader after the data."""


def chosen() -> dict[str, Any]:
    """The remedies to try; empty without any."""
    try:
        found = json.loads(os.environ.get(VARIABLE, "{}"))
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def patches() -> dict[str, Callable[[Any], None]]:
    """Modules to change, each with the function that does it."""
    trials = chosen()
    found: dict[str, Callable[[Any], None]] = {}
    if "threads" in trials:
        found["torch"] = lambda module: limit_threads(module, int(trials["threads"]))
    if "num_workers" in trials:
        found["torch.utils.data.dataloader"] = lambda module: set_workers(
            module, int(trials["num_workers"])
        )
    if "no_sync" in trials or any(name in trials for name in DDP_ARGUMENTS):
        found["torch.nn.parallel.distributed"] = lambda module: change_ddp(module, trials)
    return found


def limit_threads(torch: Any, threads: int) -> None:
    """Compute with this number of threads, whatever the script sets."""
    torch.set_num_threads(threads)
    torch.set_num_threads = lambda number: None


def set_workers(module: Any, workers: int) -> None:
    original = module.DataLoader.__init__

    @functools.wraps(original)
    def begin(self: Any, dataset: Any, *args: Any, **kwargs: Any) -> None:
        if len(args) > LOADER_POSITION - 1:
            args = (*args[: LOADER_POSITION - 1], workers, *args[LOADER_POSITION:])
        else:
            kwargs["num_workers"] = workers
        original(self, dataset, *args, **kwargs)

    module.DataLoader.__init__ = begin


def change_ddp(module: Any, trials: dict[str, Any]) -> None:
    """Replace arguments of DDP; synchronise only every n-th backward pass."""
    ddp = module.DistributedDataParallel
    original, forward = ddp.__init__, ddp.forward
    given = {name: trials[name] for name in DDP_ARGUMENTS if name in trials}
    every = int(trials.get("no_sync", 0))

    @functools.wraps(original)
    def begin(self: Any, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **{**kwargs, **given})

    @functools.wraps(forward)
    def accumulated(self: Any, *args: Any, **kwargs: Any) -> Any:
        count = self.__dict__.get("_paceline_passes", 0) + 1
        self.__dict__["_paceline_passes"] = count
        if self.training:
            self.require_backward_grad_sync = count % every == 0
        return forward(self, *args, **kwargs)

    ddp.__init__ = begin
    if every > 1:
        ddp.forward = accumulated
