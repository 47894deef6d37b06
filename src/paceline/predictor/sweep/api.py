"""Public function sweep: check options, resolve names, compare."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack, cast, overload

from paceline.errors import InputError
from paceline.hardware import Cluster
from paceline.predictor.plan.plan import Plan
from paceline.predictor.sweep.sweep_comparison import SweepComparison, SweepComparisons
from paceline.spec.defaults import complete_workload, refuse_fit
from paceline.spec.job_options import JobOptions, Many
from paceline.spec.jobs import JobRequest, has_lists, jobs_of
from paceline.spec.keywords import with_keywords
from paceline.spec.knob import check_options
from paceline.spec.resolve_cluster import cluster_of
from paceline.spec.resolve_model import Model
from paceline.spec.resolve_plan import plan_fields
from paceline.spec.search_options import USUAL_AXIS, AxisOptions, SweepLists, SweepOptions
from paceline.workload.workload import Workload

if TYPE_CHECKING:
    from paceline.parallel_map import Workers

Axes = Mapping[str, Sequence[float]] | Sequence[str] | str | None
Target = str | Path | Cluster
_PLAN = ("framework", "overlap", "bucket", "zero")


@overload
def sweep(  # type: ignore[overload-overlap]  # a single value is no list: str is the exception
    model: Model,
    cluster: Target | None = None,
    axes: Axes = ...,
    *,
    compare: str | Sequence[str] | None = ...,
    workers: "Workers" = ...,
    **options: Unpack[SweepOptions],
) -> SweepComparison: ...


@overload
def sweep(
    model: Many[Model],
    cluster: Many[Target] | None = None,
    axes: Axes = ...,
    *,
    compare: str | Sequence[str] | None = ...,
    workers: "Workers" = ...,
    **options: Unpack[SweepLists],
) -> SweepComparisons: ...


@with_keywords(SweepLists)
def sweep(
    model: Any,
    cluster: Any = None,
    axes: Axes = None,
    *,
    compare: str | Sequence[str] | None = None,
    workers: "Workers" = 1,
    **options: Any,
) -> SweepComparison | SweepComparisons:
    """Step seconds of data and model parallelism along one or two of five axes.

    ``axes`` are strings such as "link=1gbit..100gbit:40" or "nodes=2..64", or increasing values
    by name (batch in samples, flops in FLOP/s, memory and link in bytes per second, nodes)
    [link=1gbit..100gbit]. Other axes keep the values of workload and cluster. ``compare`` is dp, mp
    or both [both; dp with ``zero``]. Values of a second
    axis are distributed over ``workers``: processes, or the address of a cluster
    (tcp://host:8786 of Dask, ray://host:10001). Results are identical. Lists of other options give
    one sweep for each combination.
    """
    compare = compare.split(",") if isinstance(compare, str) else compare
    checked = check_options(AxisOptions, {"axes": axes, "compare": compare}, "sweep")
    given = _axes(checked.get("axes", USUAL_AXIS))
    jobs = jobs_of(model, cluster, options, "sweep", SweepOptions)
    ways = checked.get("compare")
    found = tuple(_sweep(job, given, ways, workers) for job in jobs)
    if has_lists({"model": model, "cluster": cluster, **options}):
        return SweepComparisons(found)
    return found[0]


def _swept_workload(job: JobRequest) -> Workload:
    """The workload of each replica in a sweep, with the defaults of `predict`."""
    options = {name: value for name, value in job.options.items() if name != "global_batch"}
    if job.options.get("global_batch") is not None and job.options.get("batch") is not None:
        raise InputError("--batch and --global-batch are mutually exclusive", "give only one")
    refuse_fit(job.options, "sweep")
    if job.model is None:
        raise InputError(
            "no model given", "give one: --model alexnet ('paceline catalog models' lists all)"
        )
    given = cast(JobOptions, options)
    return complete_workload(job.model, cluster_of(job.cluster, given), given)


def _sweep(
    job: JobRequest,
    axes: Mapping[str, Sequence[float]],
    compare: Sequence[str] | None,
    workers: "Workers",
) -> SweepComparison:
    from paceline.predictor.sweep.parallel_sweep import compare_by_workers

    usual = "dp" if job.options.get("zero") else "dp,mp"
    chosen = compare or usual
    ways = chosen.split(",") if isinstance(chosen, str) else chosen
    if job.options.get("zero") and "mp" in ways:
        raise InputError("model parallelism does not shard states (zero)", "use --compare dp")
    workload = _swept_workload(job)
    stated = {name: value for name, value in job.options.items() if name in _PLAN}
    found = compare_by_workers(
        workload,
        cluster_of(job.cluster, job.options),
        axes,
        list(dict.fromkeys(ways)),
        workers=workers,
        plan=Plan(**plan_fields(cast(JobOptions, stated))),
        global_batch=job.options.get("global_batch"),
    )
    cluster = job.cluster.name if isinstance(job.cluster, Cluster) else job.cluster
    named = {"model": workload.graph.name, "cluster": cluster and str(cluster)}
    whole = {} if job.options.get("global_batch") else {"batch": workload.batch}
    precision = {"precision": workload.precision}
    return replace(found, settings={**named, **job.options, **whole, **precision})


def _axes(axes: Axes) -> dict[str, Sequence[float]]:
    from paceline.spec.axis_options import parse_axis

    if isinstance(axes, Mapping):
        return dict(axes)
    texts = [axes] if isinstance(axes, str) else list(axes or ())
    given: dict[str, Sequence[float]] = {}
    for name, values in map(parse_axis, texts):
        if name in given:
            raise InputError(f"duplicate axis '{name}'", "give each axis once")
        given[name] = values
    return given
