"""Layer-wise traces: shipped examples, and traces as evidence for `predict`."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Annotated

from paceline.file_keys import COUNT, quantity
from paceline.hardware import Device
from paceline.located_toml import PACKAGE, TomlTable, shipped_toml
from paceline.naming import unknown_name
from paceline.predictor.evidence import Evidence
from paceline.predictor.schedule.step_costs import LayerTime
from paceline.step.layer_trace import LayerTrace, TracedLayer
from paceline.typed_toml import read_file
from paceline.workload.graph import Graph, InputSpec, Node
from paceline.workload.ops import Recorded, RecordedTensor, Work

TRACED_DEVICE = Device("the traced device", "", "gpu", {})
"""Placeholder for an unknown traced device: its layer times are known, its rates are not."""
_MICROSECOND = 1e-6
_FLOAT_BYTES = 4


@dataclass(frozen=True)
class _TraceFile:
    """A shipped trace; lists have one number per layer, ``communication_us`` one list per node."""

    schema: str
    label: str
    batch_per_worker: Annotated[int, COUNT]
    step_seconds_alone: Annotated[float, quantity(float)]
    gradient_bytes: tuple[float, ...]
    backward_us: tuple[float, ...]
    communication_us: Mapping[str, tuple[float, ...]]
    second_pass_us: Mapping[str, tuple[float, ...]] = field(default_factory=dict)


def example_traces() -> list[str]:
    """Names of the traces that come with the package."""
    return sorted(file.stem for file in PACKAGE.glob("data/traces/*.toml"))


@cache
def example_trace(name: str) -> LayerTrace:
    """The shipped trace called ``name``, e.g. ``googlenet_k80``."""
    if name not in example_traces():
        raise unknown_name("trace", name, example_traces(), f"one of {', '.join(example_traces())}")
    return _read(shipped_toml("data", "traces", f"{name}.toml"))


def layer_times(trace: LayerTrace) -> list[LayerTime]:
    """Layer times of a trace, without communication."""
    return [
        LayerTime(layer.name, layer.forward_seconds, layer.backward_seconds, layer.gradient_bytes)
        for layer in trace.layers
    ]


def traced_graph(trace: LayerTrace) -> Graph:
    """A graph whose layers have gradient sizes only.

    Use it in an fp32 `Workload` with `trace_evidence`. A trace has no FLOP counts and activation
    sizes, so utilisation and activation memory are unknown.
    """
    nodes: list[Node] = []
    for layer in trace.layers:
        elements = round(layer.gradient_bytes / _FLOAT_BYTES)
        weights = (RecordedTensor("weight", (elements,)),) if elements else ()
        before = nodes[-1].name if nodes else "batch"
        nodes.append(Node(layer.name, Recorded("recorded", (1,), weights, Work()), (before,)))
    name = trace.label or "trace"
    return Graph(name, {"batch": InputSpec((1,))}, tuple(nodes), nodes[-1].name)


def trace_evidence(trace: LayerTrace) -> Evidence:
    """Evidence of a trace for one worker: its layers, update and whole step."""
    update, feeding = trace.update_seconds, trace.input_seconds
    source = f"layer times from the trace {trace.label or 'given'}; communication is predicted"
    return Evidence(
        alone_seconds=trace.forward_seconds + trace.backward_seconds + update + feeding,
        layers=tuple(layer_times(trace)),
        input_seconds=feeding,
        update_seconds=update,
        source="; ".join((source, *trace.warnings)),
    )


def _read(root: TomlTable) -> LayerTrace:
    file = read_file(root, _TraceFile)
    sizes = file.gradient_bytes
    backward = [microseconds * _MICROSECOND for microseconds in file.backward_us]
    forward = file.step_seconds_alone - sum(backward)
    communication = {int(nodes): times for nodes, times in file.communication_us.items()}
    assert all(len(times) == len(sizes) for times in (backward, *communication.values()))
    layers = tuple(
        TracedLayer(
            name=f"layer{index}",
            forward_seconds=forward * backward[index] / sum(backward),
            backward_seconds=backward[index],
            gradient_bytes=size,
            communication_seconds={
                nodes: times[index] * _MICROSECOND for nodes, times in communication.items()
            },
        )
        for index, size in enumerate(sizes)
    )
    return LayerTrace(layers, file.label, batch_per_worker=file.batch_per_worker)
