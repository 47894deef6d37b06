"""``paceline advise``: search for the fastest plans for a workload on a cluster."""

import time
from typing import TYPE_CHECKING, Any

import click

from paceline.cli.echo import echo
from paceline.cli.help_sections import SectionedCommand
from paceline.cli.knob_options import options_of
from paceline.cli.next_steps import next_line, same_job, single_values
from paceline.cli.output import emit_json, json_option, show
from paceline.errors import InputError
from paceline.spec.job_options import EmitOptions, JobArguments
from paceline.spec.search_options import USUAL_PLANS, SearchOptions
from paceline.spec.training_options import TrainingOptions
from paceline.topology import format_topology
from paceline.units import parse_count, parse_seconds

if TYPE_CHECKING:
    from paceline.predictor.prediction import Prediction
    from paceline.predictor.search.api import Advised
    from paceline.predictor.search.budget import Limits
    from paceline.predictor.training_run import TrainingRun

_PRICES = ("price", "nic_price", "electricity")
EXAMPLE = """
\b
Examples:
  paceline advise --model llama3_8b --cluster dgx-h100 --nodes 1,2,4 --tokens 1T --price 2.5
  paceline advise --model llama3_8b --cluster dgx-h100 --nodes 4 --link ib_ndr_400g,eth_100g
  paceline advise --model gpt3_175b --cluster dgx-a100 --nodes 64 --global-batch 4Mtok
  paceline advise --model llama2_7b --seq 4096 --cluster dgx-h100 --nodes 1..8 \\
      --global-batch 256 --price 2.5
  paceline advise --model llama2_7b --seq 4096 --cluster p5.48xlarge --nodes 2,4,8,16 \\
      --global-batch 1024 --tokens 300B --deadline 30d
  paceline advise --model llama2_7b --seq 4096 --cluster dgx-h100 --nodes 2 --global-batch 256 \\
      --top 2 --emit torchtitan
  paceline advise --model resnet50 --cluster hkbu-v100-pcie --nodes 8 --global-batch 1024
  paceline advise --per-layer --model alexnet --cluster hkbu-v100-pcie -j 8x1 --global-batch 256
"""


@click.command(cls=SectionedCommand, epilog=EXAMPLE)
@options_of(JobArguments, TrainingOptions, SearchOptions, EmitOptions)
@json_option
def command(
    per_layer: bool | None,
    top: int | None,
    emit: str | None,
    budget: str | None,
    deadline: str | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Search for the fastest plans for a workload on a cluster.

    The search evaluates every combination of tensor, pipeline and data parallelism, micro-batch
    size, model chunks, recomputation, ZeRO stage and sequence parallelism. The best plans of each
    layout are predicted in full, with variations: context and expert parallelism, recomputation
    of some blocks, sharding inside each node, uneven stages. The fastest plan comes first.

    Lists of nodes, links, clusters or other options print one row for each combination: the best
    plan, throughput, and the ratio to the best row with its own interval. --tokens or --epochs add
    time and cost of a complete training run; --price, --nic-price and --electricity set prices.
    Options of the plan, such as --tp or --zero, constrain the search.

    --per-layer chooses data or model parallelism (by filter) for each layer of a CNN, including
    the cost of redistributing activations; memory is not checked.

    With --budget or --deadline, the command lists the combinations that complete --tokens or
    --epochs within these limits.
    """
    from paceline.predictor.search.api import advise, advise_within
    from paceline.predictor.search.budget import Limits
    from paceline.spec.training_options import split_training_options

    began = time.monotonic()
    training, others = split_training_options(options)
    limited = budget is not None or deadline is not None
    if per_layer:
        unused = {"emit": emit, "top": top, "budget": budget, "deadline": deadline}
        _refuse("--per-layer", {**training, **unused})
        _per_layer(others, as_json)
        return
    echo("searching plans ...", err=True)
    if limited:
        _refuse("--budget and --deadline", {"emit": emit, "top": top})
        most = None if budget is None else parse_count(budget)
        runs = advise_within(budget=most, deadline=deadline, training=training, **others)
        _limited(runs, Limits(most, None if deadline is None else parse_seconds(deadline)), as_json)
        return
    found = advise(top=top or USUAL_PLANS, **options)
    _show(found, time.monotonic() - began, emit, as_json)


def _refuse(mode: str, options: dict[str, Any]) -> None:
    """Reject options that ``mode`` does not use."""
    for name, value in options.items():
        if value is not None:
            option = name.replace("_", "-")
            raise InputError(f"{mode} does not support --{option}", f"omit --{option}")


def _show(found: "Advised", seconds: float, emit: str | None, as_json: bool) -> None:
    from paceline.predictor.emit.emit_tables import flags_lines
    from paceline.predictor.search.advice_tables import advice_json, advice_parts, describe_search

    if as_json:
        emit_json("advice", 1, advice_json(found.searches, seconds, emit))
        return
    echo(describe_search(found, seconds))
    show(advice_parts(found))
    if emit is not None:
        several = len(found.searches) > 1
        shown = [one.prediction for one in found.searches] if several else found.best
        for number, own in enumerate(shown, 1):
            echo("\n".join(flags_lines(own, emit, number)))
    best = _options_of(found.searches[0].prediction)
    next_line(same_job("predict", drop=_PRICES, **{**single_values(0), **best}))


def _limited(runs: "tuple[TrainingRun, ...]", limits: "Limits", as_json: bool) -> None:
    """Print the numbers of nodes that meet the limits, best first."""
    from paceline.predictor.training_run_tables import (
        describe_limits,
        training_json,
        training_parts,
    )

    if as_json:
        surely = [limits.are_met(run, surely=True) for run in runs]
        fields = [
            {**training_json(run), "surely": sure} for run, sure in zip(runs, surely, strict=True)
        ]
        emit_json("limited_advice", 1, {"within_limits": fields})
        return
    show(training_parts(runs))
    echo(describe_limits(runs[0], limits))
    next_line(same_job("predict", **{**single_values(0), **_options_of(runs[0].prediction)}))


def _options_of(best: "Prediction") -> dict[str, Any]:
    """A plan as options of ``paceline predict``."""
    from paceline.spec.resolve_plan import plan_options

    given = click.get_current_context().params
    shared = {"link": best.cluster.inter.name} if given.get("link") and best.cluster.inter else {}
    return {
        **shared,
        **plan_options(best.plan),
        "topology": format_topology(best.cluster.nodes, best.cluster.devices_per_node),
        "nodes": None,
        "processes": None,
        "global_batch": best.samples_per_step,
        "precision": best.workload.precision,
    }


def _per_layer(options: dict[str, Any], as_json: bool) -> None:
    from paceline.predictor.per_layer.per_layer_tables import per_layer_json, per_layer_parts
    from paceline.predictor.search.api import advise_per_layer

    chosen = advise_per_layer(**options)
    if as_json:
        emit_json("per_layer_advice", 1, per_layer_json(chosen))
        return
    show(per_layer_parts(chosen))
    batch = chosen.costs.workload.batch
    axis = "link=1gbit..100gbit"
    next_line(same_job("sweep", drop=("global_batch",), batch=batch, axes=axis))
