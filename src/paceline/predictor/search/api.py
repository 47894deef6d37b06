"""Public functions of advise: resolve names and options, then search."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from paceline.errors import InputError
from paceline.hardware import Cluster
from paceline.predictor.plan.plan import Plan
from paceline.predictor.prediction import Prediction
from paceline.spec.defaults import MEGATRON, complete_workload
from paceline.spec.job_options import (
    JobOptions,
    TopologyOptions,
    VariedOptions,
    WorkloadOptions,
)
from paceline.spec.jobs import check_job
from paceline.spec.resolve_cluster import cluster_of
from paceline.spec.resolve_model import Model
from paceline.spec.resolve_plan import plan_fields, program_of
from paceline.units import parse_seconds
from paceline.workload.workload import Workload

if TYPE_CHECKING:
    from paceline.predictor.per_layer import PerLayerPlan
    from paceline.predictor.search import Advice, PlanSearch
    from paceline.predictor.training_run import TrainingRun
    from paceline.spec.training_options import TrainingOptions


@dataclass(frozen=True)
class Advised:
    """The search and its best plans; prints as tables."""

    search: "PlanSearch"
    advice: "Advice"

    @property
    def best(self) -> list[Prediction]:
        """Predictions of the best plans, the fastest first."""
        return [own.prediction for own in self.advice.best]

    def __str__(self) -> str:
        from paceline.predictor.search.advice_tables import advice_parts

        return "\n".join(map(str, advice_parts(self.search, self.advice)))

    __repr__ = __str__


def advise(
    model: Model,
    cluster: str | Path | Cluster | None = None,
    *,
    global_batch: int | None,
    nodes: int | Sequence[int] | None = None,
    top: int = 5,
    price: float | None = None,
    **options: Any,
) -> Advised:
    """Search the ``top`` plans for ``global_batch`` samples per step.

    ``nodes`` are the numbers of nodes to search [those of the cluster]; ``price`` is per device and
    hour. Further keywords are those of `predict` for workload and cluster, ``framework``,
    ``tuning``, ``fused_attention`` and ``optimizer_state``. Options of a plan are rejected because
    plans are searched.
    """
    from paceline.predictor.search import advise as search_plans

    search = _search(model, cluster, global_batch, nodes, price, options)
    return Advised(search, search_plans(search, top))


def advise_within(
    model: Model,
    cluster: str | Path | Cluster | None = None,
    *,
    global_batch: int | None,
    nodes: int | Sequence[int] | None = None,
    budget: float | None = None,
    deadline: str | float | None = None,
    training: "TrainingOptions",
    **options: Any,
) -> "tuple[TrainingRun, ...]":
    """The best plan for each number of nodes that meets a budget and a deadline.

    ``training`` gives the amount of training and its conditions (`Prediction.training`), ``budget``
    is in the currency of the price, ``deadline`` in seconds or a string such as "30d". With a
    budget the fastest plan comes first, else the cheapest.
    """
    from paceline.predictor.search.budget import Limits, within_limits
    from paceline.spec.training_options import asks_for_training, training_of

    if not asks_for_training(training):
        raise InputError(
            "--budget and --deadline need --tokens or --epochs",
            "add --tokens 15T or --epochs 90",
        )
    limits = Limits(budget, None if deadline is None else parse_seconds(deadline))
    search = _search(model, cluster, global_batch, nodes, training.get("price"), options)
    return within_limits(search, lambda found: training_of(found, training), limits)


def _search(
    model: Model,
    cluster: str | Path | Cluster | None,
    global_batch: int | None,
    nodes: int | Sequence[int] | None,
    price: float | None,
    options: dict[str, Any],
) -> "PlanSearch":
    """Resolve all names and options of a search."""
    from paceline.predictor.partition.tensor_parallel import is_transformer
    from paceline.predictor.search import PlanSearch

    job = _searchable(options)
    given = job.get("nodes") if nodes is None else nodes
    counts = tuple(sorted([given] if isinstance(given, int) else given or ()))
    target = _priced(cluster_of(cluster, job), price)
    target = target.with_nodes(max(counts)) if counts else target
    workload = _searched(model, target, global_batch, job)
    usual = MEGATRON if is_transformer(workload.graph) else None
    like = Plan(
        **{"framework": usual, **plan_fields(job)},
    )
    return PlanSearch(workload, target, workload.batch, counts, like, program=program_of(job))


def advise_per_layer(
    model: Model,
    cluster: str | Path | Cluster | None = None,
    *,
    global_batch: int | None,
    **options: Any,
) -> "PerLayerPlan":
    """Choose data or model parallelism for each layer; not for transformers.

    ``global_batch`` is samples per step of all devices; memory is not checked. Keywords as in
    `advise`.
    """
    from paceline.predictor.per_layer import choose_per_layer

    job = _searchable(options)
    target = cluster_of(cluster, job)
    workload = _searched(model, target, global_batch, job)
    if workload.batch % target.devices:
        raise InputError(
            f"global batch {workload.batch} is not a multiple of {target.devices} devices",
            f"use a multiple of {target.devices}",
        )
    own = workload.with_batch(workload.batch // target.devices)
    return choose_per_layer(own, target, Plan(**plan_fields(job)))


_SEARCHABLE = {
    *VariedOptions.__annotations__,
    *WorkloadOptions.__annotations__,
    *TopologyOptions.__annotations__,
    *("framework", "tuning", "fused_attention", "optimizer_state"),
}


def _searchable(options: dict[str, Any]) -> JobOptions:
    """Options of a search; unsupported ones are rejected."""
    job = check_job(options, "advise")
    refused = [name for name in job if name not in _SEARCHABLE]
    if refused:
        raise InputError(
            f"advise does not support {', '.join(refused)}: it searches the plan",
            "omit them, or predict one plan with 'paceline predict'",
        )
    link = job.get("link")
    if link and "," in link:
        raise InputError(f"advise supports one --link (got '{link}')", "give one --link")
    return job


def _priced(cluster: Cluster, price: float | None) -> Cluster:
    if price is None:
        return cluster
    if not 0 < price < float("inf"):
        raise InputError(
            f"price must be positive (got {price:g})", "give a price per device and hour"
        )
    return replace(cluster, price_per_device_hour=price)


def _searched(
    model: Model,
    cluster: Cluster,
    global_batch: int | None,
    job: JobOptions,
) -> Workload:
    """The workload of a search; its batch is that of all devices."""
    if job.get("trace") is not None:
        raise InputError(
            "advise does not support --trace", "give a network instead: --model resnet50"
        )
    if global_batch is None:
        raise InputError(
            "advise needs --global-batch", "give the batch of all devices: --global-batch 1536"
        )
    job = {**job, "global_batch": global_batch}
    return complete_workload(model, cluster, job).with_batch(global_batch)
