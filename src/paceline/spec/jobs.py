"""Jobs of a call: its options checked, with one job for each combination of listed values."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from paceline.errors import InputError
from paceline.spec.job_options import JobArguments, JobOptions, VariedLists
from paceline.spec.knob import check_options
from paceline.topology import parse_topology

if TYPE_CHECKING:
    from paceline.hardware import Cluster
    from paceline.spec.resolve_model import Model

MOST_JOBS = 10_000
LOCAL = "a prediction for this machine"
_REASONS = {
    "sweep": (
        "it compares data parallelism with model parallelism",
        "omit it, or use 'paceline predict' for each point",
    ),
    LOCAL: ("it starts from launches of the same job", "omit it, or name a cluster or a device"),
}
"""Functions with fewer options than `predict`: why, and what to do."""


@dataclass(frozen=True)
class JobRequest:
    """A model on a cluster with checked options; ``options`` has no topology, but its parts."""

    model: "Model | None"
    cluster: "str | Path | Cluster | None"
    options: JobOptions


def check_job(
    options: Mapping[str, Any], function: str = "predict", spec: type = JobOptions
) -> JobOptions:
    """Checked options of a single job of ``function``, which has the knobs of ``spec``."""
    for name, value in options.items():
        if varies(name, value):
            raise InputError(
                f"{function} takes one value of {name} (got {len(value)})",
                f"call {function} once for each value",
            )
        if name in JobOptions.__annotations__ and name not in spec.__annotations__:
            reason, hint = _REASONS[function]
            raise InputError(f"{function} does not support {name}: {reason}", hint)
    job = check_options(spec, options, function)
    topology = job.pop("topology", None)
    if topology is not None:
        if job.keys() & {"nodes", "processes"}:
            raise InputError(
                "-j and --nodes or --processes are mutually exclusive", "give one, such as -j 2x8"
            )
        job["nodes"], job["processes"] = parse_topology(topology)
    return cast(JobOptions, job)


def jobs_of(
    model: Any,
    cluster: Any,
    options: Mapping[str, Any],
    function: str = "predict",
    spec: type = JobOptions,
) -> list[JobRequest]:
    """One job for each combination of values of options that are lists."""
    checked = check_options(JobArguments, {"model": model, "cluster": cluster, **options}, function)
    lists = {name: value for name, value in checked.items() if varies(name, value)}
    if (count := prod(map(len, lists.values()))) > MOST_JOBS:
        raise InputError(f"{count:,} combinations (maximum {MOST_JOBS:,})", "give fewer values")
    found = []
    for values in product(*lists.values()):
        job = {**checked, **dict(zip(lists, values, strict=True))}
        target = job.pop("model", None), job.pop("cluster", None)
        found.append(JobRequest(*target, check_job(job, function, spec)))
    return found


def has_lists(options: Mapping[str, Any]) -> bool:
    """Whether an option has several values."""
    return any(varies(name, value) for name, value in options.items())


def varies(name: str, value: Any) -> bool:
    """Whether ``value`` is a list of values of an option that may be varied."""
    is_list = isinstance(value, Sequence) and not isinstance(value, str)
    return is_list and name in (*VariedLists.__annotations__, "model", "cluster")
