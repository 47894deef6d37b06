"""The workload of options: model, batch, precision, optimizer, adapters."""

from pathlib import Path
from typing import TYPE_CHECKING

from paceline.errors import InputError
from paceline.spec.job_options import JobOptions
from paceline.spec.resolve_model import Model, batch_of, graph_of
from paceline.workload.workload import Workload
from paceline.workload.zoo.sizes import ADAPTER_RANK

if TYPE_CHECKING:
    from paceline.step.layer_trace import LayerTrace


def workload_of(model: Model | None, replicas: int, options: JobOptions) -> Workload:
    """The workload of one of ``replicas``."""
    if isinstance(model, Workload):
        return model
    given, trace = options.get("batch"), trace_of(options.get("trace"))
    inputs, seq = inputs_of(options), options.get("seq")
    if model is not None:
        graph = graph_of(model, inputs, seq)
    elif trace is not None:
        from paceline.predictor.kernels.layer_traces import traced_graph

        graph = traced_graph(trace)
    else:
        raise InputError(
            "no model given", "give one: --model resnet50 ('paceline catalog models' lists all)"
        )
    batch = _global_share(options, replicas)
    if batch is None:
        traced = trace.batch_per_worker if trace is not None else None
        known = [given, _batch_of_micro_batches(options), None if traced is None else int(traced)]
        batch = batch_of(next((one for one in known if one is not None), None), inputs, graph)
    if seq is not None and not graph.uses_sequence:
        raise InputError(f"{graph.name} has no sequence length", "omit --seq")
    optimizer = options.get("optimizer") or ("adam" if graph.uses_sequence else "sgd_momentum")
    frozen_bytes, quantised = None, options.get("qlora") or False
    if quantised or options.get("lora"):
        from paceline.predictor.framework_profiles import framework
        from paceline.predictor.predict import DEFAULT_FRAMEWORK
        from paceline.workload.adapters import QUANTISED_BYTES, with_adapters

        layers = framework(options.get("framework") or DEFAULT_FRAMEWORK).adapted_layers
        graph = with_adapters(graph, options.get("lora") or ADAPTER_RANK, layers)
        frozen_bytes = QUANTISED_BYTES if quantised else None
    precision = options.get("precision") or "fp32"
    return Workload(graph, batch, seq, precision, optimizer, frozen_bytes)


def inputs_of(options: JobOptions) -> tuple[str, ...]:
    """Shapes of the inputs of a model file."""
    given = options.get("input") or ()
    return (given,) if isinstance(given, str) else tuple(given)


def trace_of(trace: "str | Path | LayerTrace | None") -> "LayerTrace | None":
    """The layer-wise trace of a name or file, or the given trace."""
    if not isinstance(trace, str | Path):
        return trace
    if Path(trace).exists():
        from paceline.importers.traces import read_layer_trace

        return read_layer_trace(Path(trace))
    from paceline.predictor.kernels.layer_traces import example_trace

    return example_trace(str(trace))


def _global_share(options: JobOptions, replicas: int) -> int | None:
    """The share of one replica in the global batch; None if not given."""
    given = options.get("global_batch")
    if given is None:
        return None
    whole = int(given)  # `given_global_batch` converted tokens
    if options.get("batch") is not None:
        raise InputError("--batch and --global-batch are mutually exclusive", "give only one")
    if whole % replicas:
        raise InputError(
            f"global batch {whole} is not a multiple of {replicas} replicas",
            f"use a multiple of {replicas}",
        )
    return whole // replicas


def _batch_of_micro_batches(options: JobOptions) -> int | None:
    micro_batch, count = options.get("micro_batch"), options.get("micro_batches")
    return micro_batch * count if micro_batch and count else None
