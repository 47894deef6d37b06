"""A training run of the user as evidence: its step time, processes, batch and sequence length."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from paceline.errors import InputError
from paceline.store import Launch

if TYPE_CHECKING:
    from paceline.importers.logs import ParsedLog


@dataclass(frozen=True)
class RunEvidence:
    """What a log, a trace or a study states of a training run.

    ``seconds`` is its step, None if it ran on other devices than those of the prediction;
    ``global_batch`` counts samples per step of ``devices`` on ``nodes`` (None: unknown).
    """

    source: str
    seconds: float | None = None
    devices: int | None = None
    nodes: int | None = None
    global_batch: float | None = None
    sequence: int | None = None
    ran_on: str = ""

    def options(self, given: Mapping[str, Any]) -> dict[str, int]:
        """Batch per replica and sequence length, where ``given`` does not state them."""
        from paceline.topology import parse_topology

        found: dict[str, int] = {}
        stated = given.get("measured_on")
        devices = self.devices if stated is None else math.prod(parse_topology(stated))
        if self.global_batch and devices and not given.keys() & {"batch", "global_batch", "fit"}:
            replica = given.get("tp", 1) * given.get("pp", 1) * given.get("cp", 1)
            found["batch"] = max(1, round(self.global_batch * replica / devices))
        if self.sequence and given.get("seq") is None and given.get("fit") != "seq":
            found["seq"] = self.sequence
        return found

    def topology(self, stated: str | None, devices_per_node: int) -> tuple[int, int]:
        """Nodes and devices per node of the run: as ``stated``, else as the source says."""
        from paceline.topology import parse_topology

        if stated is not None:
            return parse_topology(stated)
        if self.devices is None:
            raise InputError(
                f"{self.source} does not state the number of processes",
                "add --measured-on NODESxGPUS, such as 1x8",
            )
        nodes = self.nodes or 1
        if self.devices > nodes * devices_per_node:
            nodes = -(-self.devices // devices_per_node)
        return nodes, self.devices // nodes

    def note(self, device: str, used: Mapping[str, int]) -> str:
        """What the prediction uses of the run, and what it does not."""
        text = ", ".join(f"{name} {value}" for name, value in used.items())
        if self.seconds is None:
            on = f"ran on {self.ran_on}, not on {device}"
            head = f"{self.source} {on}, so this prediction does not use its step times"
            return f"{head}; it uses {text}" if text else head
        parts = ["its step time, which scales the layer times", *([text] if text else [])]
        return f"evidence {self.source}: uses {', '.join(parts)}"


def run_of_file(path: Path) -> RunEvidence:
    """The run of a log or a trace of any program that `read_log` reads."""
    from paceline.importers.api import read_log
    from paceline.importers.logs import ParsedLog

    (found,) = read_log(path).files
    content = found.content
    if isinstance(content, ParsedLog):
        return _run_of_log(content, path)
    timeline = content.typical_step
    if timeline is None or not content.training_steps:
        raise InputError(f"{path} contains no training step", "give a log with step times")
    return RunEvidence(path.name, timeline.seconds, content.ranks or len(timeline.ranks))


def _run_of_log(log: "ParsedLog", path: Path) -> RunEvidence:
    if log.contradictions:
        raise InputError(
            f"{path} is inconsistent: {log.contradictions[0]}",
            f"inspect it with: paceline import {path} --dry-run",
        )
    if log.step_seconds is None:
        raise InputError(
            f"{path} contains no step times",
            f"inspect it with: paceline import {path} --dry-run; or give --measured-step",
        )
    facts = (log.ranks, log.nodes, log.global_batch, log.sequence_length)
    return RunEvidence(path.name, log.step_seconds, *facts)


def run_of_launches(name: str, launches: Sequence[Launch]) -> RunEvidence:
    """Batch and sequence length of a study: its steps are those of this machine."""
    batches = {one.batch_per_rank for one in launches}
    lengths = {one.job.get("sequence") for one in launches} - {None}
    machines = {str(one.environment.get("cpu_model", "this machine")) for one in launches}
    devices = Counter(one.world_size for one in launches).most_common(1)
    count = devices[0][0] if len(batches) == 1 else None
    return RunEvidence(
        f"study {name}",
        devices=count,
        global_batch=batches.pop() * count if count else None,
        sequence=int(lengths.pop() or 0) if len(lengths) == 1 else None,
        ran_on=", ".join(sorted(machines)) or "an unknown machine",
    )
