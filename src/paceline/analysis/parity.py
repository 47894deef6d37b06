"""Parity check of frameworks before a comparison: number of parameters and first losses."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from paceline.analysis.parity_result import Parity, ParityTable
from paceline.errors import InputError
from paceline.frameworks.framework_registry import framework
from paceline.measurement.events import last_event, read_events
from paceline.measurement.job import Job, Optimiser
from paceline.measurement.run_job import events_path, run_job
from paceline.store import Launch, Status, Store
from paceline.testing.bench import COUNTED_LOSSES
from paceline.testing.reference import check_reference, first_loss_and_gradients, reference_losses
from paceline.workload import Graph

NUMPY = "NumPy"
DROPOUT = "dropout"
PARITY_BATCH = 4
"""Samples of the short runs whose losses are compared: NumPy needs seconds for them."""
PARITY_SEQUENCE = 16
"""Maximum sequence length of those runs, in tokens."""

PARITY_FALL = 0.003
"""Relative decrease of the loss in the first step, which determines the learning rate. Five steps
then reveal updates that are wrong by 1 % without amplifying rounding errors. With a fixed rate of
0.01 the losses of ResNet-44 in single and double precision differ by 2 %."""

PARITY_LEARNING_RATE = 0.0001
"""Rate without the NumPy reference: about its choice for residual networks."""

PARITY_TOLERANCE = 5e-5
"""Relative: ten times the difference of frameworks, half the effect of updates wrong by 1 %."""

LARGEST_REFERENCE_PARAMETERS, LARGEST_REFERENCE_FLOP = 150e6, 4e12
"""Maximum work of the NumPy reference over all steps: some minutes."""


def check_parity(
    graph: Graph,
    names: Sequence[str],
    store: Store,
    study: str,
    timeout_seconds: float,
    on_launch: Callable[[str], None] = lambda name: None,
) -> ParityTable:
    """Run each framework for a few steps of one process and compare its losses.

    ``on_launch`` is called with the name of the next framework.
    """
    described = int(graph.cost(1).trainable_parameters)
    job, losses = parity_job(graph), list[float]()
    by_numpy = within_reach_of_reference(graph, job)
    if by_numpy:
        on_launch(NUMPY)
        job = with_suited_rate(job)
        losses = reference_losses(job)
    runs: dict[str, Launch | str] = {}
    for name in names:
        if not framework(name).claims(job.graph):
            runs[name] = f"its worker does not support an operation of {graph.name}"
            continue
        on_launch(name)
        runs[name] = run_job(replace(job, framework=name), store, study, timeout_seconds)
    reference, losses = (NUMPY, losses) if by_numpy else _first_finished(runs)
    rows = tuple(_row(name, run, losses, described, store) for name, run in runs.items())
    dropped = any(node.op.kind == DROPOUT for node in graph.nodes)
    return ParityTable(graph.name, reference, tuple(losses), described, rows, dropped)


def parity_job(graph: Graph) -> Job:
    """Job of a few steps with a few samples of few tokens each, the same in every framework."""
    return Job(
        model=graph.name,
        graph=without_dropout(graph.to_json()),
        batch_per_rank=PARITY_BATCH,
        steps=COUNTED_LOSSES,
        warmup_steps=0,
        sequence=None if graph.sequence is None else min(graph.sequence, PARITY_SEQUENCE),
        optimiser=Optimiser(learning_rate=PARITY_LEARNING_RATE),
    )


def without_dropout(graph: Mapping[str, Any]) -> dict[str, Any]:
    """A graph (in JSON form) without dropout, since masks differ between frameworks."""
    stands_for: dict[str, str] = {}
    nodes = []
    for node in graph["nodes"]:
        inputs = [stands_for.get(name, name) for name in node["inputs"]]
        if node["op"] == DROPOUT:
            stands_for[node["name"]] = inputs[0]
        else:
            nodes.append({**node, "inputs": inputs})
    output = graph["output"]
    return {**graph, "nodes": nodes, "output": stands_for.get(output, output)}


def with_suited_rate(job: Job) -> Job:
    """A job with the learning rate whose first step decreases the loss by `PARITY_FALL`."""
    # First order: a gradient step of rate r decreases the loss by r |gradient|^2.
    loss, gradients = first_loss_and_gradients(job)
    steepness = math.fsum(float((gradient**2).sum()) for gradient in gradients.values())
    # Two digits, so that rounding errors of the gradient do not change the job between machines.
    rate = float(f"{PARITY_FALL * loss / steepness:.2g}")
    return replace(job, optimiser=replace(job.optimiser, learning_rate=rate))


def within_reach_of_reference(graph: Graph, job: Job) -> bool:
    """Whether NumPy can train the network of a parity job in reasonable time."""
    try:
        check_reference(job.graph)
    except InputError:
        return False
    cost = graph.cost(job.batch_per_rank, job.sequence)
    return (
        float(cost.parameters) <= LARGEST_REFERENCE_PARAMETERS
        and float(cost.training_flops) * job.steps <= LARGEST_REFERENCE_FLOP
    )


def _first_finished(runs: dict[str, Launch | str]) -> tuple[str, list[float]]:
    for name, run in runs.items():
        if isinstance(run, Launch) and run.status is Status.FINISHED:
            return name, list(run.outcome.ranks[0].losses)
    return "none", []


def _row(
    name: str, run: Launch | str, reference: Sequence[float], described: int, store: Store
) -> Parity:
    if isinstance(run, str):
        return Parity(name, None, (), math.nan, run)
    if run.status is not Status.FINISHED:
        return Parity(name, None, (), math.nan, run.outcome.reason or str(run.status))
    directory = store.path.parent / "launches" / run.id
    ready = last_event(read_events(events_path(directory, 0)), "ready")
    parameters = int(ready["parameters"]) if ready else 0
    losses = run.outcome.ranks[0].losses
    worst = max(abs(a - b) / abs(b) for a, b in zip(losses, reference, strict=True))
    reason = ""
    if parameters != described:
        reason = f"{parameters} parameters, expected {described}"
    elif not worst <= PARITY_TOLERANCE:
        reason = f"losses differ by {worst:.1e}, more than {PARITY_TOLERANCE}"
    return Parity(name, parameters, losses, worst, reason)
