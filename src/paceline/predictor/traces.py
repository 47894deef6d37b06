"""Layer-wise traces: the ones shipped as examples, and replaying any of them."""

import tomllib
from functools import cache
from importlib import resources
from typing import Any

from paceline.naming import unknown_name
from paceline.plan.synchronisation import Synchronisation
from paceline.predictor.data_parallel import data_parallel_step
from paceline.predictor.step_costs import CollectiveSeconds, LayerTime
from paceline.step import Step
from paceline.step.layer_trace import LayerTrace, TracedLayer
from paceline.workload.graph import Graph, InputSpec, Node
from paceline.workload.ops import Recorded, RecordedTensor, Work

_MICROSECOND = 1e-6
_FLOAT_BYTES = 4


def example_traces() -> list[str]:
    """Names of the traces that come with the package."""
    folder = resources.files("paceline") / "data" / "traces"
    return sorted(entry.name.removesuffix(".toml") for entry in folder.iterdir())


@cache
def example_trace(name: str) -> LayerTrace:
    """The shipped trace called ``name``, e.g. ``googlenet_k80``."""
    if name not in example_traces():
        raise unknown_name("trace", name, example_traces(), f"one of {', '.join(example_traces())}")
    file = resources.files("paceline") / "data" / "traces" / f"{name}.toml"
    return _read(tomllib.loads(file.read_text(encoding="utf-8")))


def layer_times(trace: LayerTrace) -> list[LayerTime]:
    """The computing side of a trace, without its communication."""
    return [
        LayerTime(layer.name, layer.forward_seconds, layer.backward_seconds, layer.gradient_bytes)
        for layer in trace.layers
    ]


def traced_graph(trace: LayerTrace) -> Graph:
    """A graph of layers that are known by their gradients alone, for `predict` to divide.

    Give it to a `Workload` in fp32 and its times as ``measured_layers``: what the layers compute
    and keep is not in a trace, so utilisation and memory of activations are not known.
    """
    nodes: list[Node] = []
    for layer in trace.layers:
        elements = round(layer.gradient_bytes / _FLOAT_BYTES)
        weights = (RecordedTensor("weight", (elements,)),) if elements else ()
        before = nodes[-1].name if nodes else "batch"
        nodes.append(Node(layer.name, Recorded("recorded", (1,), weights, Work()), (before,)))
    name = trace.label or "trace"
    return Graph(name, {"batch": InputSpec((1,))}, tuple(nodes), nodes[-1].name)


def replay(
    trace: LayerTrace,
    synchronisation: Synchronisation,
    all_reduce: CollectiveSeconds | None,
    *,
    message_overhead_seconds: float = 0.0,
    interference: float = 0.0,
) -> Step:
    """The step of a trace under another policy, number of workers or network.

    Compute times stay as they were traced; ``all_reduce`` is the network to replay it on, the
    rest as in `data_parallel_step`.
    """
    return data_parallel_step(
        layer_times(trace),
        synchronisation,
        all_reduce,
        input_seconds=trace.input_seconds,
        update_seconds=trace.update_seconds,
        message_overhead_seconds=message_overhead_seconds,
        interference=interference,
        label=trace.label,
    )


def _read(document: dict[str, Any]) -> LayerTrace:
    backward = [microseconds * _MICROSECOND for microseconds in document["backward_us"]]
    forward = document["step_seconds_alone"] - sum(backward)
    communication = document["communication_us"]
    layers = tuple(
        TracedLayer(
            name=f"layer{index}",
            forward_seconds=forward * backward[index] / sum(backward),
            backward_seconds=backward[index],
            gradient_bytes=float(size),
            communication_seconds={
                int(nodes): times[index] * _MICROSECOND for nodes, times in communication.items()
            },
        )
        for index, size in enumerate(document["gradient_bytes"])
    )
    return LayerTrace(layers, document["label"], batch_per_worker=document["batch_per_worker"])
