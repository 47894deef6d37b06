"""The grammar of predictions on the command line: a workload, a place, a way."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

import click

from paceline.errors import InputError

if TYPE_CHECKING:
    from paceline.hardware import Cluster
    from paceline.plan.plan import Plan
    from paceline.plan.synchronisation import Synchronisation
    from paceline.predictor.step_costs import LayerTime
    from paceline.step.layer_trace import LayerTrace
    from paceline.workload.graph import Graph
    from paceline.workload.workload import Workload

F = TypeVar("F", bound=Callable[..., Any])

_WORKLOAD = (
    click.option(
        "--model",
        help="A network ('paceline models'), FILE.py:FUNCTION, FILE.onnx or config.json.",
    ),
    click.option(
        "--trace",
        "trace_name",
        help="Layer times to replay, with or without --model: a CSV file or googlenet_k80.",
    ),
    click.option("--input", "input_shapes", multiple=True, help="Input of a file: 32x3x224x224."),
    click.option("--batch", type=int, help="Samples per replica and step [default: 32]."),
    click.option("--global-batch", type=int, help="Samples per step of all replicas, instead."),
    click.option("--seq", "sequence", type=int, help="Tokens per sample [default: as published]."),
    click.option("--precision", default="fp32", show_default=True, help="As in amp_fp16, bf16."),
    click.option("--optimiser", help="sgd, momentum, adam [default: adam for sequences]."),
)
_PLACE = (
    click.option("--cluster", "cluster_name", help="'paceline hardware clusters', or FILE.toml."),
    click.option("--device", "device_name", help="Instead: devices of one kind."),
    click.option("--link", "link_name", help="Network between nodes, in place of the cluster's."),
    click.option("--intra-link", "intra_name", help="Links inside a node, likewise."),
    click.option("-j", "places", help="NODESxDEVICES, several by commas [default: all]."),
    click.option("--nodes", help="Instead of -j: whole nodes, several by commas."),
)
_PLAN = (
    click.option("--dp", type=int, help="Data-parallel replicas [default: what is left]."),
    click.option("--tp", type=int, default=1, help="Tensor-parallel degree."),
    click.option("--pp", type=int, default=1, help="Pipeline stages."),
    click.option("--cp", type=int, default=1, help="Context-parallel degree."),
    click.option("--ep", type=int, default=1, help="Expert-parallel degree."),
    click.option("--zero", type=click.IntRange(0, 3), default=0, help="Sharding stage 0..3."),
    click.option("--micro-batch", type=int, help="Samples per micro-batch."),
    click.option("--micro-batches", type=int, help="Micro-batches per step."),
    click.option("--interleave", type=int, default=1, help="Pipeline chunks per stage."),
    click.option("--pipeline", type=click.Choice(["1f1b", "gpipe"]), default="1f1b"),
    click.option("--stage-layers", help="Blocks of each pipeline chunk, by commas."),
    click.option("--recompute", type=click.Choice(["none", "selective", "full"]), default="none"),
    click.option("--sequence-parallel", is_flag=True, help="Divide tokens between tensor ranks."),
    click.option("--unfused-attention", is_flag=True, help="Scores are written to memory."),
    click.option("--framework", help="A profile, as in horovod-torch [default: torch-ddp]."),
    click.option("--overlap", help="none, per_tensor, bucketed, merged, one_message, split, ..."),
    click.option("--bucket", help="Size of a bucket or piece, as in 25MiB."),
    click.option("--compression", help="Of gradients: none, fp16, top_k or top_k:0.01."),
)
_MEASURED = (
    click.option("--measured-step", help="A measured step of one device alone, as in 253ms."),
    click.option("--input-time", help="Reading and preparing a batch, as in 20ms."),
    click.option("--jitter", type=float, help="Variation of workers' times, as in 0.02."),
)


def workload_options(function: F) -> F:
    """What is trained."""
    return _applied(_WORKLOAD, function)


def place_options(function: F) -> F:
    """Where it is trained."""
    return _applied(_PLACE, function)


def plan_options(function: F) -> F:
    """How it is spread."""
    return _applied(_PLAN, function)


def measured_options(function: F) -> F:
    """What was measured of it."""
    return _applied(_MEASURED, function)


def _applied(options: tuple[Any, ...], function: F) -> F:
    for option in reversed(options):
        function = option(function)
    return function


@dataclass(frozen=True)
class Request:
    """The options of one command line; values are made from them, for one place at a time."""

    values: dict[str, Any]

    def clusters(self) -> "list[Cluster]":
        """One cluster per place of ``-j``."""
        from paceline.cli.options import parse_places

        text, nodes = self.values["places"], self.values["nodes"]
        if text and nodes:
            raise InputError("-j and --nodes both say where", "give one of them")
        places = parse_places(text) if text else None
        base = self._base_cluster(places)
        if nodes:
            places = [(count, base.devices_per_node) for _, count in parse_places(nodes)]
        if places is None:
            return [base]
        return [base.shaped(count, devices) for count, devices in places]

    @property
    def names_no_hardware(self) -> bool:
        """Whether neither a cluster nor a device is named."""
        return not (self.values["cluster_name"] or self.values["device_name"])

    def plan(self, devices: int) -> "Plan":
        """The plan on so many devices; ``--dp`` takes what the other degrees leave."""
        from paceline.plan.plan import PipelineSchedule, Recompute, plan_for

        given = self.values
        return plan_for(
            devices,
            dp=given["dp"],
            tp=given["tp"],
            pp=given["pp"],
            cp=given["cp"],
            ep=given["ep"],
            zero=given["zero"],
            micro_batch=given["micro_batch"],
            micro_batches=given["micro_batches"],
            interleave=given["interleave"],
            pipeline=PipelineSchedule(given["pipeline"]),
            stage_layers=_numbers(given["stage_layers"]),
            recompute=Recompute(given["recompute"]),
            sequence_parallel=given["sequence_parallel"],
            fused_attention=not given["unfused_attention"],
            synchronisation=self.synchronisation(),
            compression=_compression(given["compression"]),
            framework=given["framework"],
        )

    def workload(self, replicas: int) -> "Workload":
        """What one of ``replicas`` trains."""
        from paceline.cli.model_target import batch_of, load_model
        from paceline.workload.workload import Workload

        given = self.values
        if given["model"]:
            graph = load_model(given["model"], given["input_shapes"], given["sequence"])
        else:
            graph = self._traced_graph()
        batch = given["batch"] or self._batch_of_micro_batches() or self._traced_batch()
        batch = batch_of(batch, given["input_shapes"], graph)
        if given["global_batch"] is not None:
            batch = _shared(given["global_batch"], given["batch"], replicas)
        optimiser = given["optimiser"] or ("adam" if graph.uses_sequence else "sgd_momentum")
        return Workload(graph, batch, given["sequence"], given["precision"], optimiser)

    def measured(self) -> dict[str, Any]:
        """What was measured, as arguments of `paceline.predictor.predict.prepare`."""
        from paceline.predictor.evidence import Evidence
        from paceline.units import parse_seconds

        given = self.values
        step, preparing = given["measured_step"], given["input_time"]
        return {
            "evidence": Evidence(
                alone_seconds=None if step is None else parse_seconds(step),
                layers=self._traced_layers(),
                spread=given["jitter"],
            ),
            "input_seconds": 0.0 if preparing is None else parse_seconds(preparing),
        }

    @cached_property
    def trace(self) -> "LayerTrace | None":
        """The layer-wise trace that was named, if any."""
        from pathlib import Path

        from paceline.predictor.traces import example_trace

        name = self.values["trace_name"]
        if name is None:
            return None
        if Path(name).exists():
            from paceline.measurement.traces import read_layer_trace

            return read_layer_trace(Path(name))
        return example_trace(name)

    def _traced_graph(self) -> "Graph":
        from paceline.predictor.traces import traced_graph

        if self.trace is None:
            raise InputError(
                "no model to predict", "name one: --model resnet50 ('paceline models' lists all)"
            )
        return traced_graph(self.trace)

    def _batch_of_micro_batches(self) -> int | None:
        micro_batch, count = self.values.get("micro_batch"), self.values.get("micro_batches")
        return micro_batch * count if micro_batch and count else None

    def _traced_batch(self) -> int | None:
        trace = self.trace
        if trace is None or trace.batch_per_worker is None:
            return None
        return int(trace.batch_per_worker)

    def _traced_layers(self) -> "tuple[LayerTime, ...]":
        from paceline.predictor.traces import layer_times

        return () if self.trace is None else tuple(layer_times(self.trace))

    def _base_cluster(self, places: list[tuple[int, int]] | None) -> "Cluster":
        from dataclasses import replace

        from paceline.hardware import Cluster, catalogue

        given = self.values
        inter = catalogue.link(given["link_name"]) if given["link_name"] else None
        intra = catalogue.link(given["intra_name"]) if given["intra_name"] else None
        if given["cluster_name"]:
            cluster = catalogue.cluster(given["cluster_name"])
            return replace(cluster, inter=inter or cluster.inter, intra=intra or cluster.intra)
        if given["device_name"]:
            device = catalogue.device(given["device_name"])
        else:
            raise InputError(
                "no place to predict for",
                "name one: --cluster dgx-a100 -j 4x8 ('paceline hardware clusters' lists all), "
                "or --device a100_sxm_80gb",
            )
        most = max((devices for _, devices in places or [(1, 1)]), default=1)
        if most > 1 and intra is None:
            raise InputError(
                f"{most} devices per node and no link between them",
                "name it: --intra-link pcie4_x16 ('paceline hardware links' lists all)",
            )
        return Cluster(device.name, device, most, 1, intra, inter)

    def synchronisation(self) -> "Synchronisation | None":
        """The synchronisation that was asked for; None for the framework's own."""
        from paceline.plan.synchronisation import synchronisation
        from paceline.predictor.frameworks import framework
        from paceline.predictor.predict import DEFAULT_FRAMEWORK
        from paceline.units import parse_bytes

        overlap, bucket = self.values["overlap"], self.values["bucket"]
        if overlap is None and bucket is None:
            return None
        if overlap is None:
            chosen = framework(self.values["framework"] or DEFAULT_FRAMEWORK).synchronisation
        else:
            chosen = synchronisation(overlap)
        return chosen if bucket is None else chosen.with_bucket(parse_bytes(bucket))


def _numbers(text: str | None) -> tuple[int, ...]:
    if not text:
        return ()
    try:
        return tuple(int(part) for part in text.split(","))
    except ValueError:
        raise InputError(
            f"'{text}' is not a list of numbers", "write --stage-layers 3,4,4,3"
        ) from None


def _compression(text: str | None) -> Any:
    from paceline.naming import look_up
    from paceline.plan.compression import NO_COMPRESSION, Compression, CompressionKind

    if text is None:
        return NO_COMPRESSION
    name, _, density = text.partition(":")
    kinds = {str(kind): kind for kind in CompressionKind}
    kind = look_up("compression", name, kinds, f"one of {', '.join(kinds)}")
    try:
        return Compression(kind, float(density)) if density else Compression(kind)
    except ValueError:
        raise InputError(
            f"'{density}' is not a fraction", "write --compression top_k:0.01"
        ) from None


def _shared(global_batch: int, batch: int | None, replicas: int) -> int:
    if batch is not None:
        raise InputError("both --batch and --global-batch", "give one of them")
    if global_batch % replicas:
        raise InputError(
            f"a batch of {global_batch} does not divide by {replicas} replicas",
            f"take a multiple of {replicas}",
        )
    return global_batch // replicas
