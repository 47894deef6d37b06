"""``paceline advise``: the best plans for a workload on a cluster."""

import time
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from paceline.cli.next_steps import next_line, same_job
from paceline.cli.options import places_given
from paceline.cli.output import emit_json, json_option, show
from paceline.cli.plan_options import (
    emit_option,
    optimiser_state_option,
    place_options,
    training_options,
    workload_options,
)
from paceline.cli.say import say
from paceline.errors import InputError
from paceline.places import parse_counts, place_words
from paceline.units import parse_count, parse_seconds

if TYPE_CHECKING:
    from paceline.api.advice import Advised
    from paceline.predictor.prediction import Prediction
    from paceline.predictor.search.limits import Limits
    from paceline.predictor.training_run import TrainingRun

EXAMPLE = """
\b
Examples:
  paceline advise --model gpt3_175b --cluster dgx-a100 --nodes 64 --global-batch 1536
  paceline advise --model llama2_7b --seq 4096 --cluster dgx-h100 --nodes 1..8 \\
      --global-batch 256 --price 2.5
  paceline advise --model llama2_7b --seq 4096 --cluster p5.48xlarge --nodes 2,4,8,16 \\
      --global-batch 1024 --tokens 300B --deadline 30d
  paceline advise --model llama2_7b --seq 4096 --cluster dgx-h100 --nodes 2 --global-batch 256 \\
      --top 2 --emit torchtitan
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
@optimiser_state_option
@click.option(
    "--top", type=click.IntRange(1, 50), default=5, show_default=True, help="Plans to show."
)
@training_options
@emit_option
@click.option("--budget", help="Most to pay for a whole training, as in 2M; needs a price.")
@click.option("--deadline", help="Most time for a whole training, as in 30d.")
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
    emit: str | None,
    budget: str | None,
    deadline: str | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Find the best plans for a workload on a cluster.

    Every combination of tensor, pipeline and data parallel degrees, micro-batch, pipeline
    chunks, recomputation, shard stage and sequence parallelism is evaluated; the scheduler
    predicts the best of each layout, and variations with context or expert parallelism,
    recomputation of some blocks, weights sharded inside each node, and uneven stages. Of plans
    that cannot be told apart the simplest comes first.
    --nodes 1..64 searches every number of nodes too.
    Precision is 16 bits for transformers unless given.

    --per-layer chooses data or model parallelism (by filter) for each layer of a network that
    is no transformer, with what changing over between them costs; memory is not checked.

    --budget and --deadline ask which number of nodes trains --tokens or --epochs within them.
    """
    from paceline.api.advice import advise, advise_within
    from paceline.api.training import asks_for_training, split_training_words
    from paceline.predictor.search.limits import Limits

    began = time.monotonic()
    if ctx.get_parameter_source("precision") is ParameterSource.DEFAULT:
        options["precision"] = None
    places, nodes = options.pop("places"), options.pop("nodes")
    place = places_given(places, nodes)[0]
    training, options = split_training_words(options)
    if per_layer:
        _per_layer({**options, **place}, nodes, as_json)
        return
    counts = parse_counts(nodes, "nodes", "--nodes") if nodes else None
    if counts is None and place:
        options["processes"], counts = place["processes"], [place["nodes"]]
    say("searching plans ...", err=True)
    if budget is not None or deadline is not None:
        most = None if budget is None else parse_count(budget)
        runs = advise_within(
            nodes=counts, budget=most, deadline=deadline, training=training, **options
        )
        _limited(runs, Limits(most, None if deadline is None else parse_seconds(deadline)), as_json)
        return
    if asks_for_training(training):
        raise InputError(
            "how long may the whole training take, or cost?",
            "give --deadline 30d or --budget 2M, or ask 'paceline predict' about one plan",
        )
    found = advise(nodes=counts, top=top, price=training.get("price"), **options)
    _show(found, time.monotonic() - began, emit, as_json)


def _show(found: "Advised", seconds: float, emit: str | None, as_json: bool) -> None:
    """The plans that were found, after a search of so many ``seconds``."""
    from paceline.report.tables.advice import advice_json, advice_parts, searched_words
    from paceline.report.tables.program_flags import flags_lines

    if as_json:
        emit_json("advice", 1, advice_json(found.search, found.advice, seconds, emit))
        return
    say(searched_words(found.search, found.advice, seconds))
    show(advice_parts(found.search, found.advice))
    if emit is not None:
        for number, own in enumerate(found.advice.best, 1):
            say("\n".join(flags_lines(own.prediction, emit, number)))
    next_line(same_job("predict", drop=("price",), **_plan_of(found.best[0])))


def _limited(runs: "tuple[TrainingRun, ...]", limits: "Limits", as_json: bool) -> None:
    """Numbers of nodes that meet limits, the best first."""
    from paceline.report.tables.training import limits_words, training_json, training_parts

    if as_json:
        surely = [limits.are_met(run, surely=True) for run in runs]
        fields = [
            {**training_json(run), "surely": sure} for run, sure in zip(runs, surely, strict=True)
        ]
        emit_json("limited_advice", 1, {"within_limits": fields})
        return
    show(training_parts(runs))
    say(limits_words(runs[0], limits))
    next_line(same_job("predict", **_plan_of(runs[0].prediction)))


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
        "recompute": plan.recompute_word,
        "sequence_parallel": plan.sequence_parallel,
        "shard_group": plan.shard_group,
        "optimiser_state": str(plan.optimiser_state),
    }
    degrees = {name: getattr(plan, name) for name in ("tp", "pp", "cp", "ep", "interleave", "zero")}
    return {**chosen, **degrees}


def _per_layer(options: dict[str, Any], nodes: str | None, as_json: bool) -> None:
    from paceline.api.advice import advise_per_layer
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
