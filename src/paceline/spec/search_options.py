"""Knobs of a search for plans: how many to list, and limits of the training run."""

from functools import partial
from typing import Annotated, TypedDict

from paceline.spec.job_options import JobLists
from paceline.spec.knob import Knob
from paceline.spec.training_options import TrainingOptions
from paceline.units import parse_count, parse_seconds

USUAL_PLANS, MOST_PLANS = 5, 50
_search = partial(Knob, group="Search")


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
        ),
    ]


class AdviseLists(JobLists, TrainingOptions, total=False):
    """The keywords of `paceline.advise`."""
