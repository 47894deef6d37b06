"""Knobs of a complete training run: its length, price, failures and checkpoints."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, TypedDict, cast

from paceline.errors import InputError
from paceline.spec.knob import Knob, check_options
from paceline.units import parse_count, parse_seconds, plural

if TYPE_CHECKING:
    from paceline.predictor.prediction import Prediction
    from paceline.predictor.training_run import TrainingRun

_run = partial(Knob, group="Training run")
_count = partial(_run, metavar="COUNT", parse=parse_count, low=1e-9, high=1e30)
_duration = partial(_run, metavar="DURATION", parse=parse_seconds, low=1e-6, high=1e12)
_LEAST_PRICE, _LARGEST_PRICE = 1e-9, 1e9


class TrainingOptions(TypedDict, total=False):
    """The amount of training and its operating conditions."""

    tokens: Annotated[str | float | None, _count("Tokens of a complete training run, such as 15T.")]
    epochs: Annotated[str | float | None, _count("Epochs of a complete training run.")]
    samples_per_epoch: Annotated[
        str | float | None, _count("Samples per epoch, such as 1.28M.", default="ImageNet-1k")
    ]
    price: Annotated[
        float | None,
        _run(
            "Price of a device per hour.",
            low=_LEAST_PRICE,
            high=_LARGEST_PRICE,
            default="the cluster's",
        ),
    ]
    nic_price: Annotated[
        float | Sequence[float] | None,
        _run(
            "Purchase price of a NIC with its switch port and cables: one for all links, or one "
            "for each --link.",
            metavar="X[,...]",
            low=0,
            high=_LARGEST_PRICE,
            several=True,
        ),
    ]
    electricity: Annotated[
        float | None,
        _run("Price of a kWh, added to --price.", low=0, high=_LARGEST_PRICE),
    ]
    mtbf: Annotated[
        str | float | None,
        _duration("Mean device time between failures, such as 30000h.", default="a prior"),
    ]
    checkpoint_time: Annotated[
        str | float | None,
        _duration("Time to write a checkpoint, such as 60s.", default="a prior"),
    ]
    restart_time: Annotated[
        str | float | None,
        _duration("Time to restart after a failure, such as 10min.", default="a prior", low=0),
    ]
    checkpoint_every: Annotated[
        str | float | None, _duration("Interval between checkpoints.", default="the optimum")
    ]
    no_failures: Annotated[bool | None, _run("Ignore failures and checkpoints.")]


def split_training_options(
    options: Mapping[str, Any],
) -> tuple[TrainingOptions, dict[str, Any]]:
    """Options of a training run, and the others."""
    own = {
        name: value for name, value in options.items() if name in TrainingOptions.__annotations__
    }
    others = {name: value for name, value in options.items() if name not in own}
    return cast(TrainingOptions, check_options(TrainingOptions, own, "training")), others


def asks_for_training(options: Mapping[str, Any]) -> bool:
    """Whether an amount of training is given; other options are rejected without one."""
    if options.get("tokens") is not None or options.get("epochs") is not None:
        return True
    for name, value in options.items():
        if name != "price" and value:
            option = name.replace("_", "-")
            raise InputError(
                f"--{option} needs --tokens or --epochs", "add --tokens 15T or --epochs 90"
            )
    return False


def training_of(prediction: "Prediction", options: TrainingOptions) -> "TrainingRun":
    """The training run of the options, from a predicted step."""
    from paceline.predictor.training_run import RunConditions, TrainingRun, samples_of

    given = check_options(TrainingOptions, options, "training")
    amount = (given.get(name) for name in ("tokens", "epochs", "samples_per_epoch"))
    samples = samples_of(prediction, *amount)
    conditions = RunConditions(
        given.get("mtbf"),
        given.get("checkpoint_time"),
        given.get("restart_time"),
        given.get("checkpoint_every"),
        given.get("price"),
        given.get("no_failures", False),
        _single_price(given.get("nic_price")),
        given.get("electricity"),
    )
    return TrainingRun(prediction, samples, conditions)


def _single_price(given: float | Sequence[float] | None) -> float | None:
    if given is None or isinstance(given, int | float):
        return given
    if len(given) > 1:
        raise InputError(
            f"{len(given)} NIC prices for one link", "give one, or as many values of --link"
        )
    return given[0]


def prices_by_link(options: Mapping[str, Any], link: Any) -> dict[Any, float | None]:
    """The NIC price of each value of ``link``."""
    links = list(link) if isinstance(link, list | tuple) else [link]
    given = options.get("nic_price")
    prices = list(given) if isinstance(given, list | tuple) else [given] * len(links)
    if len(prices) == 1:
        prices *= len(links)
    if len(prices) != len(links):
        raise InputError(
            f"{plural(len(prices), 'NIC price')} for {plural(len(links), 'link')}",
            "give one, or one for each --link",
        )
    return dict(zip(links, prices, strict=True))
