"""Runs the short jobs of contract checks through Paceline's launcher."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from paceline.frameworks.adapter import FrameworkAdapter
from paceline.measurement.events import Event, last_event, read_events
from paceline.measurement.job import Job
from paceline.measurement.run_job import events_path, run_job
from paceline.store import Launch, Status, Store
from paceline.testing.contract import ContractError
from paceline.testing.leftovers import check_nothing_left
from paceline.workload import zoo

COUNTED_LOSSES = 5
NARROWED = 16
ALONE = "fcn5 narrowed", 8
"""Network without batch statistics, and its global batch: FCN-5 with narrower layers."""

IMAGES = "resnet20", 4
"""Network of convolutions and batch statistics, and its batch."""

LAUNCH_SECONDS = 300.0


@dataclass(frozen=True)
class Bench:
    """The framework under test, a store, and the timeout of a launch."""

    framework: FrameworkAdapter
    store: Store
    launch_seconds: float = LAUNCH_SECONDS

    def job(self, model: str, batch_per_rank: int, **changes: Any) -> Job:
        """Return a short job of a zoo network, or of the graph in ``changes``."""
        if "graph" not in changes:
            narrowed = model == ALONE[0]
            changes["graph"] = narrowed_fcn5() if narrowed else zoo.build(model).to_json()
        fields: dict[str, Any] = {
            "model": model,
            "batch_per_rank": batch_per_rank,
            "framework": self.framework.name,
            "steps": COUNTED_LOSSES,
            "warmup_steps": 0,
        }
        return Job(**{**fields, **changes})

    def run(self, job: Job, seconds: float | None = None) -> Launch:
        """Run a job, also one that fails, and check that it leaves no process."""
        launch = run_job(job, self.store, "contract", seconds or self.launch_seconds)
        check_nothing_left(self.directory(launch))
        return launch

    def finished(self, job: Job) -> Launch:
        """Run a job; raise unless it succeeds."""
        launch = self.run(job)
        if launch.status is not Status.FINISHED:
            raise ContractError(
                f"{job.model} on {job.world_size} ranks {launch.status}: {launch.outcome.reason}"
            )
        return launch

    def event(self, launch: Launch, name: str, rank: int = 0) -> Event | None:
        """Return an event of a rank by name; None without one."""
        return last_event(read_events(events_path(self.directory(launch), rank)), name)

    def directory(self, launch: Launch) -> Path:
        return self.store.path.parent / "launches" / launch.id


def narrowed_fcn5() -> dict[str, Any]:
    """Return FCN-5 with hidden layers 1/16 as wide, which trains fast also in NumPy."""
    graph = zoo.build("fcn5").to_json()
    last = [node for node in graph["nodes"] if node["op"] == "linear"][-1]
    for node in graph["nodes"]:
        if node["op"] == "linear" and node is not last:
            node["out_features"] //= NARROWED
    return graph
