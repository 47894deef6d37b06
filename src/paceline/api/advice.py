"""advise: the best plans for a workload, from names and numbers as people write them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from paceline.api.plan_words import optimiser_state_of
from paceline.api.requests import JobWords, Model, cluster_of, job_words, workload_of
from paceline.errors import InputError
from paceline.hardware import Cluster
from paceline.plan.plan import Plan
from paceline.predictor.prediction import Prediction
from paceline.units import parse_seconds
from paceline.workload.workload import Workload

if TYPE_CHECKING:
    from paceline.api.training import TrainingWords
    from paceline.predictor.per_layer import PerLayerPlan
    from paceline.predictor.search import Advice, PlanSearch
    from paceline.predictor.training_run import TrainingRun


@dataclass(frozen=True)
class Advised:
    """The best plans of a search and what was searched; prints itself as tables."""

    search: "PlanSearch"
    advice: "Advice"

    @property
    def best(self) -> list[Prediction]:
        """Predictions of the best plans, the fastest first."""
        return [own.prediction for own in self.advice.best]

    def __str__(self) -> str:
        from paceline.report.tables.advice import advice_parts

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
    precision: str | None = None,
    **words: Any,
) -> Advised:
    """The ``top`` plans for ``global_batch`` samples per step, and why others are worse.

    ``nodes`` are the numbers of nodes to search [the cluster's]; ``price`` is per device and
    hour. ``precision`` is 16 bits for transformers where the device has them, else fp32. Further
    keywords are those of `predict` for a workload and a place, ``framework``,
    ``fused_attention`` and ``optimiser_state``.
    """
    from paceline.predictor.search import advise as search_plans

    search = _search(model, cluster, global_batch, nodes, price, precision, words)
    return Advised(search, search_plans(search, top))


def advise_within(
    model: Model,
    cluster: str | Path | Cluster | None = None,
    *,
    global_batch: int | None,
    nodes: int | Sequence[int] | None = None,
    budget: float | None = None,
    deadline: str | float | None = None,
    precision: str | None = None,
    training: "TrainingWords",
    **words: Any,
) -> "tuple[TrainingRun, ...]":
    """The best plan of each number of nodes that trains all within a budget and a deadline.

    ``training`` says how much is trained and what is known of running it (`Prediction.training`),
    ``budget`` is in the currency of the price, ``deadline`` seconds or text such as "30d". With a
    budget the fastest comes first, else the cheapest.
    """
    from paceline.api.training import asks_for_training, training_of
    from paceline.predictor.search.limits import Limits, within_limits

    if not asks_for_training(training):
        raise InputError(
            "a budget or a deadline is about a whole training",
            "say how much: --tokens 15T or --epochs 90",
        )
    limits = Limits(budget, None if deadline is None else parse_seconds(deadline))
    search = _search(model, cluster, global_batch, nodes, training.get("price"), precision, words)
    return within_limits(search, lambda found: training_of(found, training), limits)


def _search(
    model: Model,
    cluster: str | Path | Cluster | None,
    global_batch: int | None,
    nodes: int | Sequence[int] | None,
    price: float | None,
    precision: str | None,
    words: dict[str, Any],
) -> "PlanSearch":
    """What `advise` searches: everything named is resolved here."""
    from paceline.plan.tensor_parallel import is_transformer
    from paceline.predictor.search import PlanSearch

    job = job_words(words)
    counts = tuple(sorted([nodes] if isinstance(nodes, int) else nodes or ()))
    place = _priced(cluster_of(cluster, job), price)
    place = place.with_nodes(max(counts)) if counts else place
    workload = _searched(model, place, global_batch, precision, job)
    usual = "megatron-lm" if is_transformer(workload.graph) else None
    like = Plan(
        framework=job.get("framework") or usual,
        fused_attention=job.get("fused_attention", True),
        optimiser_state=optimiser_state_of(job),
    )
    return PlanSearch(workload, place, workload.batch, counts, like)


def advise_per_layer(
    model: Model,
    cluster: str | Path | Cluster | None = None,
    *,
    global_batch: int | None,
    precision: str | None = None,
    **words: Any,
) -> "PerLayerPlan":
    """Data or model parallelism for each layer of a network that is no transformer.

    ``global_batch`` is samples per step of all devices; memory is not checked. Keywords as in
    `advise`.
    """
    from paceline.predictor.per_layer import choose_per_layer

    job = job_words(words)
    place = cluster_of(cluster, job)
    workload = _searched(model, place, global_batch, precision, job)
    if workload.batch % place.devices:
        raise InputError(
            f"{workload.batch} samples do not divide among {place.devices} devices",
            f"take a multiple of {place.devices}",
        )
    own = workload.with_batch(workload.batch // place.devices)
    return choose_per_layer(
        own, place, Plan(framework=job.get("framework"), optimiser_state=optimiser_state_of(job))
    )


def _priced(cluster: Cluster, price: float | None) -> Cluster:
    if price is None:
        return cluster
    if not 0 < price < float("inf"):
        raise InputError(f"a price of {price:g} is impossible", "give it per device and hour")
    return replace(cluster, price_per_device_hour=price)


def _searched(
    model: Model,
    cluster: Cluster,
    global_batch: int | None,
    precision: str | None,
    job: JobWords,
) -> Workload:
    """The workload of a search, which any plan may divide: its batch is that of all devices."""
    if job.get("trace") is not None:
        raise InputError("a trace holds for one plan only", "name the network: --model resnet50")
    if global_batch is None:
        raise InputError(
            "advice needs the batch of all devices together", "give --global-batch, e.g. 1536"
        )
    job = {**job, "global_batch": global_batch, "precision": precision or "fp32"}
    workload = workload_of(model, 1, job).with_batch(global_batch)
    if precision is None and workload.graph.uses_sequence:
        known = cluster.device.peak_flops
        best = next((name for name in ("bf16", "fp16") if name in known), "fp32")
        workload = replace(workload, precision=best)
    return workload
