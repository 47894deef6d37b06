"""Public functions of advise: check options, resolve names, search."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Unpack

from paceline.errors import InputError
from paceline.hardware import Cluster
from paceline.predictor.plan.plan import Plan
from paceline.predictor.prediction import Prediction
from paceline.render.result import Part, PublicResult
from paceline.spec.default_plan import MEGATRON
from paceline.spec.defaults import complete_workload
from paceline.spec.job_options import JobLists, JobOptions, Many, MeasuredOptions
from paceline.spec.jobs import JobRequest, check_job, jobs_of
from paceline.spec.keywords import with_keywords
from paceline.spec.knob import knobs_of
from paceline.spec.resolve_cluster import cluster_of
from paceline.spec.resolve_model import Model
from paceline.spec.resolve_plan import plan_fields, program_of
from paceline.spec.search_options import USUAL_PLANS, SearchOptions
from paceline.spec.training_options import TrainingOptions, asks_for_training, training_of
from paceline.units import parse_seconds
from paceline.workload.workload import Workload

if TYPE_CHECKING:
    from paceline.predictor.per_layer import PerLayerPlan
    from paceline.predictor.search import Advice, PlanSearch
    from paceline.predictor.training_run import TrainingRun

Target = str | Path | Cluster


@dataclass(frozen=True)
class Searched:
    """One search and its advice."""

    search: "PlanSearch"
    advice: "Advice"


@dataclass(frozen=True, repr=False)
class Advised(PublicResult):
    """The best plans of each search; prints as tables."""

    schema: ClassVar[str] = "advice/1"
    searches: tuple[Searched, ...]

    @property
    def search(self) -> "PlanSearch":
        """The first search."""
        return self.searches[0].search

    @property
    def advice(self) -> "Advice":
        """The advice of the first search."""
        return self.searches[0].advice

    @property
    def best(self) -> list[Prediction]:
        """Predictions of the best plans of each search, the recommended one first."""
        return [own.prediction for one in self.searches for own in one.advice.best]

    def parts(self) -> list[Part]:
        """The best plans, and faster ones that do not fit."""
        from paceline.predictor.search.advice_tables import advice_parts

        return list(advice_parts(self.searches))

    def summary(self) -> str:
        """The number of plans tried, and the best one."""
        best = f"best: {self.best[0].summary()}" if self.best else "none fits"
        return f"{self.advice.tried:,} plans; {best}"

    def to_dict(self) -> dict[str, Any]:
        """The fields of ``advise --json``; the time of the search is unknown."""
        from paceline.predictor.search.advice_tables import advice_json

        return advice_json(self.searches, math.nan)

    def rows(self) -> list[dict[str, Any]]:
        """One row per plan, the fastest of each search first."""
        return [one.to_dict() for one in self.best]


@with_keywords(JobLists)
def advise(
    model: Many[Model],
    cluster: Many[Target] | None = None,
    *,
    top: int = USUAL_PLANS,
    price: float | None = None,
    **options: Unpack[JobLists],
) -> Advised:
    """Search the ``top`` plans for ``global_batch`` samples per step.

    ``nodes`` are the numbers of nodes to search [those of the cluster]; ``price`` is per device and
    hour. Options of the plan constrain the search: ``tp=8`` searches plans with 8 tensor-parallel
    devices. Lists of other options give one search for each combination.
    """
    from paceline.predictor.search import advise as search_plans

    most = knobs_of(SearchOptions)["top"].check(top)
    searches = _searches(model, cluster, options, price)
    return Advised(tuple(Searched(search, search_plans(search, most)) for search in searches))


def advise_within(
    model: Many[Model],
    cluster: Many[Target] | None = None,
    *,
    budget: float | None = None,
    deadline: str | float | None = None,
    training: TrainingOptions,
    **options: Unpack[JobLists],
) -> "tuple[TrainingRun, ...]":
    """The best plan for each number of nodes that meets a budget and a deadline.

    ``training`` gives the amount of training and its conditions, ``budget`` is in the currency of
    the price, ``deadline`` in seconds or a string such as "30d". With a budget the fastest plan
    comes first, else the cheapest. Other arguments as in `advise`.
    """
    from paceline.predictor.search.budget import Limits, within_limits

    if not asks_for_training(training):
        raise InputError(
            "--budget and --deadline need --tokens or --epochs",
            "add --tokens 15T or --epochs 90",
        )
    limits = Limits(budget, None if deadline is None else parse_seconds(deadline))
    searches = _searches(model, cluster, options, training.get("price"))
    if len(searches) > 1:
        raise InputError(
            f"--budget and --deadline search one job (got {len(searches)})",
            "give one value of each option; --nodes may be a list",
        )
    return within_limits(searches[0], lambda found: training_of(found, training), limits)


def advise_per_layer(
    model: Model, cluster: Target | None = None, **options: Unpack[JobOptions]
) -> "PerLayerPlan":
    """Choose data or model parallelism for each layer; not for transformers.

    ``global_batch`` is samples per step of all devices; memory is not checked. Other arguments as
    in `advise`, except that options of the plan are limited to ``framework``, ``overlap``,
    ``bucket`` and ``optimizer_state``.
    """
    from paceline.predictor.per_layer import choose_per_layer

    job = _searchable(check_job(options, "advise"))
    fields = plan_fields(job)
    refused = sorted(fields.keys() - {"framework", "synchronisation", "optimizer_state"})
    if refused:
        raise InputError(
            f"--per-layer does not support {', '.join(refused)}: it divides single layers",
            "omit them, or search whole plans without --per-layer",
        )
    target = cluster_of(cluster, job)
    workload = _searched(model, target, job)
    if workload.batch % target.devices:
        raise InputError(
            f"global batch {workload.batch} is not a multiple of {target.devices} devices",
            f"use a multiple of {target.devices}",
        )
    own = workload.with_batch(workload.batch // target.devices)
    return choose_per_layer(own, target, Plan(**fields))


def _searches(
    model: Any, cluster: Any, options: Mapping[str, Any], price: float | None
) -> "list[PlanSearch]":
    """One search for each combination of listed options; a search covers all ``nodes``."""
    nodes = knobs_of(JobLists)["nodes"].check(options.get("nodes"))
    counts = [nodes] if isinstance(nodes, int) else list(nodes or ())
    others = {name: value for name, value in options.items() if name != "nodes"}
    whole = {"nodes": max(counts)} if counts else {}
    jobs = jobs_of(model, cluster, {**others, **whole}, "advise")
    return [_search(job, counts, price) for job in jobs]


def _search(job: JobRequest, nodes: Sequence[int], price: float | None) -> "PlanSearch":
    """Resolve all names and options of a search."""
    from paceline.predictor.partition.tensor_parallel import is_transformer
    from paceline.predictor.search import PlanSearch
    from paceline.predictor.search.plan_constraints import split_plan_fields

    options = _searchable(job.options)
    if job.model is None:
        raise InputError(
            "no model given", "give one: --model resnet50 ('paceline catalog models' lists all)"
        )
    target = _priced(cluster_of(job.cluster, options), price)
    workload = _searched(job.model, target, options)
    usual = MEGATRON if is_transformer(workload.graph) else None
    shared, fixed = split_plan_fields(plan_fields(options))
    given = options.get("nodes")
    counts = tuple(sorted(nodes)) or (() if given is None else (given,))
    return PlanSearch(
        workload,
        target,
        workload.batch,
        counts,
        Plan(**{"framework": usual, **shared}),
        program=program_of(options),
        fixed=fixed,
    )


def _searchable(job: JobOptions) -> JobOptions:
    """Options of a search; measurements of one plan are rejected."""
    refused = sorted(job.keys() & (MeasuredOptions.__annotations__.keys() - {"tuning"}))
    if refused:
        raise InputError(
            f"advise does not support {', '.join(refused)}: a measurement belongs to one plan",
            "omit it, or predict one plan with 'paceline predict'",
        )
    return job


def _priced(cluster: Cluster, price: float | None) -> Cluster:
    checked = knobs_of(TrainingOptions)["price"].check(price)
    return cluster if checked is None else replace(cluster, price_per_device_hour=checked)


def _searched(model: Model, cluster: Cluster, job: JobOptions) -> Workload:
    """The workload of a search; its batch is that of all devices."""
    global_batch = job.get("global_batch")
    if global_batch is None:
        raise InputError(
            "advise needs --global-batch", "give the batch of all devices: --global-batch 1536"
        )
    return complete_workload(model, cluster, job).with_batch(global_batch)
