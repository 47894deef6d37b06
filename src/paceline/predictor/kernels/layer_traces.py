"""Layer-wise traces: shipped examples, and traces as evidence for `predict`."""

from functools import cache
from importlib import resources

from paceline.hardware import Device
from paceline.located_toml import TomlTable, shipped_toml
from paceline.naming import unknown_name
from paceline.predictor.evidence import Evidence
from paceline.predictor.schedule.step_costs import LayerTime
from paceline.step.layer_trace import LayerTrace, TracedLayer
from paceline.workload.graph import Graph, InputSpec, Node
from paceline.workload.ops import Recorded, RecordedTensor, Work

TRACED_DEVICE = Device("the traced device", "", "gpu", {})
"""Placeholder for an unknown traced device: its layer times are known, its rates are not."""
_MICROSECOND = 1e-6
_FLOAT_BYTES = 4
_KEYS = (
    *("schema", "label", "batch_per_worker", "step_seconds_alone", "gradient_bytes"),
    *("backward_us", "communication_us", "second_pass_us"),
)


def example_traces() -> list[str]:
    """Names of the traces that come with the package."""
    folder = resources.files("paceline") / "data" / "traces"
    return sorted(entry.name.removesuffix(".toml") for entry in folder.iterdir())


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
    root.check_keys(_KEYS, needed=_KEYS[:-1])
    sizes = root.numbers("gradient_bytes")
    backward = [microseconds * _MICROSECOND for microseconds in root.numbers("backward_us")]
    forward = (root.parsed("step_seconds_alone", float) or 0.0) - sum(backward)
    logged = root.table("communication_us")
    communication = {int(nodes): logged.numbers(nodes) for nodes in logged.values}
    if any(len(times) != len(sizes) for times in (backward, *communication.values())):
        root.fail(
            "gradient_bytes", "lists have different lengths", "give one number per layer in each"
        )
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
    batch = root.count("batch_per_worker")
    return LayerTrace(layers, root.text_of("label"), batch_per_worker=batch)
