"""Public functions of advise: check options, resolve names, search."""

import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Unpack, cast

from paceline.errors import InputError
from paceline.hardware import Cluster
from paceline.predictor.plan.plan import Plan
from paceline.predictor.prediction import Prediction
from paceline.render.result import Part, PublicResult
from paceline.spec.default_batch import given_global_batch, usual_global_batch
from paceline.spec.defaults import complete_workload, refuse_fit
from paceline.spec.job_options import JobLists, JobOptions, Many, MeasuredOptions
from paceline.spec.jobs import JobRequest, check_job, jobs_of
from paceline.spec.keywords import with_keywords
from paceline.spec.knob import knobs_of
from paceline.spec.program_defaults import MEGATRON
from paceline.spec.resolve_cluster import cluster_of
from paceline.spec.resolve_model import Model, graph_of
from paceline.spec.resolve_plan import plan_fields, program_of
from paceline.spec.resolve_workload import inputs_of
from paceline.spec.search_options import USUAL_PLANS, AdviseLists, SearchOptions
from paceline.spec.training_options import (
    TrainingOptions,
    asks_for_training,
    prices_by_link,
    split_training_options,
    training_of,
)
from paceline.units import format_count, parse_seconds, plural
from paceline.workload.workload import Workload

if TYPE_CHECKING:
    from paceline.predictor.per_layer import PerLayerPlan
    from paceline.predictor.search import Advice, PlanSearch
    from paceline.predictor.training_run import TrainingRun

Target = str | Path | Cluster


@dataclass(frozen=True)
class Searched:
    """One search, its advice, and the training run with its best plan if an amount is given."""

    search: "PlanSearch"
    advice: "Advice"
    run: "TrainingRun | None" = None

    @property
    def prediction(self) -> Prediction:
        """The prediction of the best plan."""
        return self.advice.best[0].prediction


@dataclass(frozen=True)
class NotPossible:
    """A combination of options without a plan, and the reason."""

    job: str
    reason: str


@dataclass(frozen=True, repr=False)
class Advised(PublicResult):
    """The best plans of each search; prints as tables.

    Several searches of one model are ordered by throughput, the best one first.
    """

    schema: ClassVar[str] = "advice/1"
    searches: tuple[Searched, ...]
    not_possible: tuple[NotPossible, ...] = ()
    note: str = ""

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
        """Predictions of the best plans of each search, the fastest one first."""
        return [own.prediction for one in self.searches for own in one.advice.best]

    def parts(self) -> list[Part]:
        """The best plans, and faster ones that do not fit."""
        from paceline.predictor.search.advice_tables import advice_parts

        return list(advice_parts(self))

    def summary(self) -> str:
        """The number of plans tried, and the best one."""
        best = f"best: {self.best[0].summary()}" if self.best else "none fits"
        return f"{plural(self.advice.tried, 'plan')}; {best}"

    def to_dict(self) -> dict[str, Any]:
        """The fields of ``advise --json``; the time of the search is unknown."""
        from paceline.predictor.search.advice_tables import advice_json

        return advice_json(self.searches, math.nan)

    def rows(self) -> list[dict[str, Any]]:
        """One row per plan, the fastest of each search first."""
        return [one.to_dict() for one in self.best]


@with_keywords(AdviseLists)
def advise(
    model: Many[Model],
    cluster: Many[Target] | None = None,
    *,
    top: int = USUAL_PLANS,
    **options: Unpack[AdviseLists],
) -> Advised:
    """Search the ``top`` plans for ``global_batch`` samples per step, the fastest first.

    Options of the plan constrain the search: ``tp=8`` searches plans with 8 tensor-parallel
    devices. Lists of other options (nodes, links, ...) give one search for each combination.
    ``tokens`` or ``epochs`` add time and cost of a training run with the best plan of each.
    """
    from paceline.predictor.search import advise as search_plans

    most = knobs_of(SearchOptions)["top"].check(top)
    training, others = split_training_options(options)
    asked = asks_for_training(training)
    jobs = jobs_of(model, cluster, others, "advise")
    prices = prices_by_link(training, others.get("link"))
    found: list[Searched] = []
    failed: list[NotPossible] = []
    note = ""
    for job in _distinct(jobs):
        try:
            search, note = _search(job, training.get("price"))
            advice = search_plans(search, most)
        except InputError as error:
            if len(jobs) == 1:
                raise
            failed.append(NotPossible(_job_text(job), error.message))
            continue
        own = {**training, "nic_price": prices.get(job.options.get("link"))}
        best = advice.best[0].prediction
        run = training_of(best, cast(TrainingOptions, own)) if asked else None
        found.append(Searched(search, advice, run))
    if not found:
        raise InputError(
            f"no combination has a plan that fits: {failed[0].job}: {failed[0].reason}",
            "use more nodes, devices with more memory, or a smaller model",
        )
    return Advised(tuple(_best_first(found)), tuple(failed), note)


def _distinct(jobs: list[JobRequest]) -> list[JobRequest]:
    """The jobs without those of one node that differ by the network between nodes only."""
    found: dict[tuple[Any, ...], JobRequest] = {}
    for number, job in enumerate(jobs):
        alone = job.options.get("nodes") == 1
        others = tuple((name, str(v)) for name, v in job.options.items() if name != "link")
        key = (str(job.model), str(job.cluster), others) if alone else (number,)
        found.setdefault(key, job)
    return list(found.values())


def _best_first(found: list[Searched]) -> list[Searched]:
    """Searches by throughput, those of one model together."""
    order = list(dict.fromkeys(one.search.workload.graph.name for one in found))
    return sorted(
        found,
        key=lambda one: (
            order.index(one.search.workload.graph.name),
            -(one.prediction.tokens_per_second or one.prediction.samples_per_second),
        ),
    )


def _job_text(job: JobRequest) -> str:
    """The cluster, topology and network of a job."""
    options = job.options
    nodes = options.get("nodes")
    topology = [plural(nodes, "node")] if nodes else []
    parts = [str(job.model), str(job.cluster or options.get("device"))]
    return ", ".join([*parts, *topology, *([str(options["link"])] if options.get("link") else [])])


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
    found = advise(model, cluster, **cast(AdviseLists, {**options, **training}))
    return within_limits([one.run for one in found.searches if one.run is not None], limits)


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
            f"--per-layer does not support {', '.join(refused)}: it divides layers one by one",
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


def _search(job: JobRequest, price: float | None) -> "tuple[PlanSearch, str]":
    """Resolve all names and options of a search, and a note on defaults."""
    from paceline.predictor.search import PlanSearch
    from paceline.predictor.search.plan_constraints import split_plan_fields

    options = _searchable(job.options)
    refuse_fit(options, "advise")
    if job.model is None:
        raise InputError(
            "no model given", "give one: --model resnet50 ('paceline catalog models' lists all)"
        )
    target = _priced(cluster_of(job.cluster, options), price)
    workload = _searched(job.model, target, options)
    usual = _usual_plan(job.model, workload, target, options)
    fields = plan_fields(options)
    shared, fixed = split_plan_fields(fields)
    framework = usual.framework if usual is not None else None
    search = PlanSearch(
        workload,
        target,
        workload.batch,
        like=Plan(**{"framework": framework, **shared}),
        program=program_of(options),
        fixed=fixed,
        known=()
        if usual is None or usual.framework != shared.get("framework", framework)
        else (usual,),
    )
    return search, _defaults_note(search, options)


def _usual_plan(
    model: Model, workload: Workload, cluster: Cluster, options: JobOptions
) -> Plan | None:
    """The plan that `predict` chooses for a transformer, so that advice is never slower."""
    from paceline.predictor.partition.tensor_parallel import is_transformer
    from paceline.spec.default_plan import choose_plan

    if not is_transformer(workload.graph):
        return None
    if isinstance(model, Workload):
        return Plan(framework=MEGATRON)
    graph = graph_of(model, inputs_of(options), options.get("seq"))
    given = cast(JobOptions, {"precision": workload.precision, **options})
    found = choose_plan(graph, cluster, given, workload.batch)
    return Plan(framework=MEGATRON) if found is None else found.plan


def _defaults_note(search: "PlanSearch", options: JobOptions) -> str:
    """Defaults that the user may override."""
    usual = {
        "global_batch": f"global batch {search.global_batch}",
        "framework": f"framework {search.like.framework}" if search.like.framework else "",
        "precision": search.workload.precision,
    }
    if search.workload.sequence:
        tokens = format_count(search.global_batch * search.workload.sequence)
        usual["global_batch"] += f" ({tokens} tokens)"
    if options.get("link") and search.cluster.nics_per_node and search.cluster.nodes > 1:
        usual["nics"] = f"{plural(search.cluster.nics_per_node, 'NIC')} per node"
    chosen = {name: text for name, text in usual.items() if text and options.get(name) is None}
    override = ", ".join(f"--{name.replace('_', '-')}" for name in chosen)
    return f"chosen: {', '.join(chosen.values())}; override with {override}" if chosen else ""


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
    """The workload of a search; its batch is that of all devices [by model size].

    A batch per device, as in `predict`, is that of a plan without model parallelism.
    """
    graph = model.graph if isinstance(model, Workload) else None
    graph = graph or graph_of(cast(Any, model), inputs_of(job), job.get("seq"))
    given, each = given_global_batch(job, graph, cluster.devices), job.get("batch")
    if given is not None and each is not None:
        raise InputError("--batch and --global-batch are mutually exclusive", "give only one")
    given = given if each is None else each * cluster.devices
    samples = given or usual_global_batch(graph, job, cluster.devices)
    if isinstance(model, Workload):
        return model.with_batch(samples)
    alone = {name: value for name, value in job.items() if name != "global_batch"}
    return complete_workload(graph, cluster, cast(JobOptions, alone)).with_batch(samples)
