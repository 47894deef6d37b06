"""Public function sweep: check options, resolve names, compare."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack, cast, overload

from paceline.errors import InputError
from paceline.hardware import Cluster
from paceline.predictor.plan.plan import Plan
from paceline.predictor.sweep.sweep_comparison import SweepComparison
from paceline.spec.defaults import complete_workload, refuse_fit
from paceline.spec.job_options import JobOptions, Many, SweepLists, SweepOptions
from paceline.spec.jobs import JobRequest, has_lists, jobs_of
from paceline.spec.keywords import with_keywords
from paceline.spec.resolve_cluster import cluster_of
from paceline.spec.resolve_model import Model
from paceline.spec.resolve_plan import plan_fields
from paceline.workload.workload import Workload

if TYPE_CHECKING:
    from paceline.parallel_map import Workers

Axes = Mapping[str, Sequence[float]] | Iterable[str] | str
Target = str | Path | Cluster
_SYNCHRONISED = ("framework", "overlap", "bucket")


@overload
def sweep(  # type: ignore[overload-overlap]  # a single value is no list: str is the exception
    model: Model,
    cluster: Target | None = None,
    axes: Axes = ...,
    *,
    compare: str | Sequence[str] = ...,
    workers: "Workers" = ...,
    **options: Unpack[SweepOptions],
) -> SweepComparison: ...


@overload
def sweep(
    model: Many[Model],
    cluster: Many[Target] | None = None,
    axes: Axes = ...,
    *,
    compare: str | Sequence[str] = ...,
    workers: "Workers" = ...,
    **options: Unpack[SweepLists],
) -> tuple[SweepComparison, ...]: ...


@with_keywords(SweepLists)
def sweep(
    model: Any,
    cluster: Any = None,
    axes: Axes = "link=1gbit..100gbit",
    *,
    compare: str | Sequence[str] = ("dp", "mp"),
    workers: "Workers" = 1,
    **options: Any,
) -> SweepComparison | tuple[SweepComparison, ...]:
    """Step seconds of data and model parallelism along one or two of five axes.

    ``axes`` are strings such as "link=1gbit..100gbit:40" or "nodes=2..64", or increasing values
    by name (batch in samples, flops in FLOP/s, memory and link in bytes per second, nodes). Other
    axes keep the values of workload and cluster. ``compare`` is dp, mp or both. Values of a second
    axis are distributed over ``workers``: processes, or the address of a cluster
    (tcp://host:8786 of Dask, ray://host:10001). Results are identical. Lists of other options give
    one sweep for each combination.
    """
    given = _axes(axes)
    jobs = swept_jobs(model, cluster, options)
    found = tuple(_sweep(job, given, compare, workers) for job in jobs)
    return found if has_lists({"model": model, "cluster": cluster, **options}) else found[0]


def swept_jobs(model: Any, cluster: Any, options: Mapping[str, Any]) -> list[JobRequest]:
    """The jobs of a `sweep`."""
    return jobs_of(model, cluster, options, "sweep", SweepOptions)


def swept_workload(job: JobRequest) -> Workload:
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
    compare: str | Sequence[str],
    workers: "Workers",
) -> SweepComparison:
    from paceline.predictor.sweep.parallel_sweep import compare_by_workers

    ways = compare.split(",") if isinstance(compare, str) else compare
    stated = {name: value for name, value in job.options.items() if name in _SYNCHRONISED}
    return compare_by_workers(
        swept_workload(job),
        cluster_of(job.cluster, job.options),
        axes,
        list(dict.fromkeys(way.strip() for way in ways)),
        workers=workers,
        plan=Plan(**plan_fields(cast(JobOptions, stated))),
        global_batch=job.options.get("global_batch"),
    )


def _axes(axes: Axes) -> dict[str, Sequence[float]]:
    from paceline.spec.axis_options import parse_axis

    if isinstance(axes, Mapping):
        return dict(axes)
    texts = [axes] if isinstance(axes, str) else list(axes)
    given: dict[str, Sequence[float]] = {}
    for name, values in map(parse_axis, texts):
        if name in given:
            raise InputError(f"duplicate axis '{name}'", "give each axis once")
        given[name] = values
    return given
