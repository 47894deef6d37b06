"""``paceline advise``: the best plans for a workload on a cluster."""

import time
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from paceline.cli.next_steps import next_line, same_job
from paceline.cli.options import places_given
from paceline.cli.output import emit_json, json_option, show
from paceline.cli.plan_options import place_options, workload_options
from paceline.cli.say import say
from paceline.errors import InputError
from paceline.places import parse_counts, place_words

if TYPE_CHECKING:
    from paceline.predictor.prediction import Prediction

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
@click.option(
    "--unfused-attention",
    "fused_attention",
    is_flag=True,
    flag_value=False,
    default=True,
    help="Attention writes its scores to memory.",
)
@click.option(
    "--top", type=click.IntRange(1, 50), default=5, show_default=True, help="Plans to show."
)
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
    from paceline.api.predictions import advise

    began = time.monotonic()
    if ctx.get_parameter_source("precision") is ParameterSource.DEFAULT:
        options["precision"] = None
    places, nodes = options.pop("places"), options.pop("nodes")
    place = places_given(places, nodes)[0]
    if per_layer:
        _per_layer({**options, **place}, nodes, as_json)
        return
    counts = parse_counts(nodes, "nodes", "--nodes") if nodes else None
    if counts is None and place:
        options["processes"], counts = place["processes"], [place["nodes"]]
    say("searching plans ...", err=True)
    found = advise(nodes=counts, top=top, price=price, **options)
    seconds = time.monotonic() - began
    from paceline.report.tables.advice import advice_json, advice_parts, searched_words

    if as_json:
        emit_json("advice", 1, advice_json(found.search, found.advice, seconds))
        return
    say(searched_words(found.search, found.advice, seconds))
    show(advice_parts(found.search, found.advice))
    next_line(same_job("predict", drop=("price",), **_plan_of(found.best[0])))


def _plan_of(best: "Prediction") -> dict[str, Any]:
    """The best plan as options of ``paceline predict``."""
    plan = best.plan
    chosen = {
        "places": place_words(best.cluster.nodes, best.cluster.devices_per_node),
        "nodes": None,
        "precision": best.workload.precision,
        "framework": plan.framework,
        "fused_attention": plan.fused_attention,
        "micro_batch": plan.micro_batch,
        "recompute": str(plan.recompute),
        "sequence_parallel": plan.sequence_parallel,
    }
    degrees = {name: getattr(plan, name) for name in ("tp", "pp", "interleave", "zero")}
    return {**chosen, **degrees}


def _per_layer(options: dict[str, Any], nodes: str | None, as_json: bool) -> None:
    from paceline.api.predictions import advise_per_layer
    from paceline.report.tables.per_layer import per_layer_json, per_layer_parts

    if nodes and len(parse_counts(nodes, "nodes", "--nodes")) > 1:
        raise InputError("--per-layer chooses on one cluster", "give one number of nodes")
    chosen = advise_per_layer(**options)
    if as_json:
        emit_json("per_layer_advice", 1, per_layer_json(chosen))
        return
    show(per_layer_parts(chosen))
    batch = chosen.costs.workload.batch
    axis = "link=1gbit..100gbit"
    next_line(same_job("sweep", drop=("global_batch",), batch=batch, axes=axis))
