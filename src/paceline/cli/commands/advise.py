"""``paceline advise``: the best plans for a workload on a cluster."""

from typing import TYPE_CHECKING, Any

import click

from paceline.cli.output import emit_json, json_option, next_line
from paceline.cli.plan_options import Request, place_options, workload_options
from paceline.errors import InputError

if TYPE_CHECKING:
    from paceline.hardware import Cluster
    from paceline.predictor.search import Advice, PlanSearch
    from paceline.workload.workload import Workload

EXAMPLE = """
\b
Examples:
  paceline advise --model gpt3_175b --cluster dgx-a100 --nodes 64 --global-batch 1536
  paceline advise --model llama2_7b --seq 4096 --cluster dgx-h100 --nodes 1..8 \\
      --global-batch 256 --price 2.5
  paceline advise --model resnet50 --cluster hkbu-v100-pcie --nodes 8 --global-batch 1024
  paceline advise --per-layer --model alexnet --cluster hkbu-v100-pcie -j 8x1 --global-batch 256
"""


@click.command(epilog=EXAMPLE)
@workload_options
@place_options
@click.option("--framework", help="A profile [default: megatron-lm for transformers].")
@click.option("--unfused-attention", is_flag=True, help="Scores are written to memory.")
@click.option("--top", type=click.IntRange(1, 50), default=5, show_default=True)
@click.option("--price", type=float, help="Price of a device and hour, in place of the cluster's.")
@click.option(
    "--per-layer", is_flag=True, help="Data or model parallel for each layer of a CNN instead."
)
@json_option
@click.pass_context
def command(
    ctx: click.Context,
    /,
    per_layer: bool,
    framework: str | None,
    unfused_attention: bool,
    top: int,
    price: float | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Find the best plans for a workload on a cluster.

    Every combination of tensor, pipeline and data parallel degrees, micro-batch, pipeline
    chunks, recomputation, shard stage and sequence parallelism is evaluated; the scheduler
    predicts the best of each layout. --nodes 1..64 searches every number of nodes too.
    Precision is 16 bits for transformers unless given.

    --per-layer chooses data or model parallelism (by filter) for each layer of a network that
    is no transformer, with what changing over between them costs; memory is not checked.
    """
    import time

    began = time.monotonic()
    nodes = _node_counts(options["nodes"])
    cluster = _cluster(options, nodes, price)
    if ctx.get_parameter_source("precision") is click.core.ParameterSource.DEFAULT:
        options["precision"] = None
    workload, global_batch = _workload(options, cluster)
    if per_layer:
        if len(nodes) > 1:
            raise InputError("--per-layer chooses on one cluster", "give one number of nodes")
        _per_layer(workload, cluster, global_batch, framework, as_json)
        return
    from paceline.predictor.search import advise

    search = _search(workload, cluster, global_batch, nodes, framework, unfused_attention)
    click.echo(f"searching plans for up to {cluster.devices} devices ...", err=True)
    advice = advise(search, top)
    seconds = time.monotonic() - began
    if as_json:
        from paceline.cli.advice_tables import advice_json

        emit_json("advice", 1, advice_json(search, advice, seconds))
        return
    _print(search, advice, seconds)


def _cluster(options: dict[str, Any], nodes: tuple[int, ...], price: float | None) -> "Cluster":
    from dataclasses import replace

    if nodes and options["places"]:
        raise InputError("-j and --nodes both say where", "give one of them")
    cluster = Request({**options, "nodes": None}).clusters()[0]
    if price is not None:
        if price <= 0:
            raise InputError(f"a price of {price:g} is impossible", "give it per device and hour")
        cluster = replace(cluster, price_per_device_hour=price)
    return cluster.with_nodes(max(nodes)) if nodes else cluster


def _node_counts(text: str | None) -> tuple[int, ...]:
    """Numbers of nodes of ``64``, ``8,16`` or ``1..64``; none where nothing is given."""
    if text is None:
        return ()
    hint = "write --nodes 64, --nodes 8,16 or --nodes 1..64"
    counts: set[int] = set()
    for part in text.split(","):
        first, dots, last = part.partition("..")
        try:
            counts.update(range(int(first), int(last if dots else first) + 1))
        except ValueError:
            raise InputError(f"'{text}' is not a number of nodes", hint) from None
    if not counts or min(counts) < 1:
        raise InputError(f"no number of nodes lies in {text}", hint)
    return tuple(sorted(counts))


def _workload(options: dict[str, Any], cluster: "Cluster") -> "tuple[Workload, int]":
    """What is trained, and samples per step of all replicas together."""
    from dataclasses import replace

    if options["trace_name"] is not None:
        raise InputError("a trace holds for one plan only", "name the network: --model resnet50")
    if options["global_batch"] is None:
        raise InputError(
            "advice needs the batch of all devices together", "give --global-batch, e.g. 1536"
        )
    chosen = options["precision"]
    workload = Request({**options, "precision": chosen or "fp32"}).workload(1)
    if chosen is None and workload.graph.uses_sequence:
        known = cluster.device.peak_flops
        best = next((name for name in ("bf16", "fp16") if name in known), "fp32")
        workload = replace(workload, precision=best)
    return workload, options["global_batch"]


def _per_layer(
    workload: "Workload",
    cluster: "Cluster",
    global_batch: int,
    framework: str | None,
    as_json: bool,
) -> None:
    from paceline.cli.per_layer_tables import per_layer_json, per_layer_lines, per_layer_table
    from paceline.plan.plan import Plan
    from paceline.predictor.per_layer import choose_per_layer
    from paceline.report.terminal import print_table

    if global_batch % cluster.devices:
        raise InputError(
            f"{global_batch} samples do not divide among {cluster.devices} devices",
            f"take a multiple of {cluster.devices}",
        )
    own = workload.with_batch(global_batch // cluster.devices)
    chosen = choose_per_layer(own, cluster, Plan(framework=framework))
    if as_json:
        emit_json("per_layer_advice", 1, per_layer_json(chosen))
        return
    name, shape = workload.graph.name, f"{cluster.nodes}x{cluster.devices_per_node}"
    title = f"{name}, global batch {global_batch} on {cluster.name} {shape}"
    print_table(per_layer_table(chosen, title))
    for line in per_layer_lines(chosen):
        click.echo(line)
    next_line(
        f"paceline sweep --model {name} --cluster {cluster.name} -j {shape} "
        f"--batch {own.batch} --axis link=1gbit..100gbit"
    )


def _search(
    workload: "Workload",
    cluster: "Cluster",
    global_batch: int,
    nodes: tuple[int, ...],
    framework: str | None,
    unfused_attention: bool,
) -> "PlanSearch":
    from paceline.plan.plan import Plan
    from paceline.plan.tensor_parallel import is_transformer
    from paceline.predictor.search import PlanSearch

    usual = "megatron-lm" if is_transformer(workload.graph) else None
    like = Plan(framework=framework or usual, fused_attention=not unfused_attention)
    return PlanSearch(workload, cluster, global_batch, nodes, like)


def _print(search: "PlanSearch", advice: "Advice", seconds: float) -> None:
    from paceline.cli.advice_tables import advice_table, closing_line, infeasible_table, reasons
    from paceline.report.terminal import print_table
    from paceline.units import format_bytes

    memory = format_bytes(search.cluster.device.known_memory_bytes)
    click.echo(
        f"{search.cluster.devices} devices, {advice.tried:,} plans tried in {seconds:.1f} s, "
        f"{advice.fitting:,} fit in {memory}"
    )
    print_table(advice_table(search, advice))
    click.echo("Why not better: what the first loses, what the others lose more")
    for line in reasons(advice):
        click.echo(line)
    if advice.infeasible:
        click.echo()
        print_table(infeasible_table(advice))
    click.echo(closing_line(advice))
    next_line(_predict_line(search, advice))


def _predict_line(search: "PlanSearch", advice: "Advice") -> str:
    best = advice.best[0].prediction
    plan = best.plan
    words = [
        f"paceline predict --model {search.workload.graph.name} --cluster {search.cluster.name}",
        f"-j {best.cluster.nodes}x{best.cluster.devices_per_node}",
        f"--global-batch {search.global_batch} --precision {search.workload.precision}",
        f"--tp {plan.tp} --pp {plan.pp} --micro-batch {plan.micro_batch}",
        f"--interleave {plan.interleave} --recompute {plan.recompute} --zero {plan.zero}",
    ]
    words += [f"--seq {search.workload.sequence}"] if search.workload.sequence else []
    words += ["--sequence-parallel"] if plan.sequence_parallel else []
    words += [] if plan.fused_attention else ["--unfused-attention"]
    words += [f"--framework {plan.framework}"] if plan.framework else []
    return " ".join(words)
