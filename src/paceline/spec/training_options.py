"""Options of a training run: ``15T`` tokens, ``30d``, ``25000h``."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypedDict

from paceline.errors import InputError
from paceline.units import parse_count, parse_seconds

if TYPE_CHECKING:
    from paceline.predictor.prediction import Prediction
    from paceline.predictor.training_run import TrainingRun

_TIMES = ("mtbf", "checkpoint_time", "restart_time", "checkpoint_every")


class TrainingOptions(TypedDict, total=False):
    """The amount of training and its operating conditions.

    ``tokens`` ("15T") or ``epochs`` of ``samples_per_epoch`` [ImageNet-1k for its networks];
    ``mtbf`` device-time between failures ("30000h"), ``checkpoint_time``, ``restart_time`` and
    ``checkpoint_every`` (seconds or string), ``no_failures`` to ignore failures; ``price`` per
    device and hour.
    """

    tokens: str | float | None
    epochs: str | float | None
    samples_per_epoch: str | float | None
    mtbf: str | float | None
    checkpoint_time: str | float | None
    restart_time: str | float | None
    checkpoint_every: str | float | None
    no_failures: bool
    price: float | None


def split_training_options(options: dict[str, Any]) -> tuple[TrainingOptions, dict[str, Any]]:
    """Options of a training run, and the others."""
    own = {key: value for key, value in options.items() if key in TrainingOptions.__annotations__}
    return TrainingOptions(**own), {key: v for key, v in options.items() if key not in own}  # type: ignore[typeddict-item]


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

    count = {
        name: None if (text := options.get(name)) is None else parse_count(str(text))
        for name in ("tokens", "epochs", "samples_per_epoch")
    }
    given = {name: options.get(name) for name in _TIMES}
    times = {
        name: parse_seconds(text) if isinstance(text, str | int | float) else None
        for name, text in given.items()
    }
    price = options.get("price")
    if price is not None and not 0 < price < float("inf"):
        raise InputError(
            f"price must be positive (got {price:g})", "give a price per device and hour"
        )
    conditions = RunConditions(
        times["mtbf"],
        times["checkpoint_time"],
        times["restart_time"],
        times["checkpoint_every"],
        price,
        options.get("no_failures", False),
    )
    return TrainingRun(prediction, samples_of(prediction, **count), conditions)
