"""Knobs of searches and sweeps: what they vary, compare and list."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Annotated, TypedDict

from paceline.spec.job_options import (
    ZERO,
    JobLists,
    OverlapOptions,
    TopologyOptions,
    VariedLists,
    VariedOptions,
    WorkloadOptions,
)
from paceline.spec.knob import Knob
from paceline.spec.training_options import TrainingOptions
from paceline.units import parse_count, parse_seconds

USUAL_PLANS, MOST_PLANS = 5, 50
USUAL_AXIS = "link=1gbit..100gbit"
_search = partial(Knob, group="Search")
_sweep = partial(Knob, group="Sweep")


class SearchOptions(TypedDict, total=False):
    """What a search lists and which training runs it accepts."""

    top: Annotated[
        int, _search("Number of plans to show.", low=1, high=MOST_PLANS, default=str(USUAL_PLANS))
    ]
    budget: Annotated[
        str | float | None,
        _search(
            "Maximum cost of the complete training run, such as 2M; requires a price.",
            metavar="AMOUNT",
            parse=parse_count,
        ),
    ]
    deadline: Annotated[
        str | float | None,
        _search(
            "Maximum time of the complete training run, such as 30d.",
            metavar="DURATION",
            parse=parse_seconds,
            low=1e-6,
            high=1e12,
        ),
    ]
    per_layer: Annotated[
        bool | None, _search("Choose data or model parallelism for each layer of a CNN.")
    ]


class AdviseLists(JobLists, TrainingOptions, total=False):
    """The keywords of `paceline.advise`."""


class _SweptPlan(WorkloadOptions, TopologyOptions, OverlapOptions, total=False):
    zero: Annotated[int, ZERO]


class SweepOptions(VariedOptions, _SweptPlan, total=False):
    """The keywords of a sweep, which varies the hardware and compares fixed plans."""


class SweepLists(VariedLists, _SweptPlan, total=False):
    """The keywords of several sweeps."""


class AxisOptions(TypedDict, total=False):
    """The axes of a sweep and the kinds of parallelism that it compares."""

    axes: Annotated[
        str | Sequence[str] | Mapping[str, Sequence[float]] | None,
        _sweep(
            "Axis batch, flops, memory, link or nodes with values FIRST..LAST[:COUNT] or A,B,C; "
            "may be given twice.",
            option="--axis",
            metavar="NAME=VALUES",
            repeated=True,
            default=USUAL_AXIS,
        ),
    ]
    compare: Annotated[
        str | Sequence[str] | None,
        _sweep(
            "Parallelism to compare: data (dp), model by filter (mp) or both.",
            metavar="dp,mp",
            choices=("dp", "mp"),
            several=True,
            default="dp,mp; dp with --zero",
        ),
    ]
