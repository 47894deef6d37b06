"""Whole trainings from numbers as people write them: ``15T`` tokens, ``30d``, ``25000h``."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypedDict

from paceline.errors import InputError
from paceline.units import parse_count, parse_seconds

if TYPE_CHECKING:
    from paceline.predictor.prediction import Prediction
    from paceline.predictor.training_run import TrainingRun

_TIMES = ("mtbf", "checkpoint_time", "restart_time", "checkpoint_every")


class TrainingWords(TypedDict, total=False):
    """How much is trained, and what is known of running it.

    ``tokens`` ("15T") or ``epochs`` of ``samples_per_epoch`` [ImageNet-1k for its networks];
    ``mtbf`` device-time between failures ("30000h"), ``checkpoint_time``, ``restart_time`` and
    ``checkpoint_every`` (seconds or text), ``no_failures`` to leave all that out; ``price`` per
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


def split_training_words(options: dict[str, Any]) -> tuple[TrainingWords, dict[str, Any]]:
    """Keywords of a whole training, and the others."""
    own = {key: value for key, value in options.items() if key in TrainingWords.__annotations__}
    return TrainingWords(**own), {key: v for key, v in options.items() if key not in own}  # type: ignore[typeddict-item]


def asks_for_training(words: Mapping[str, Any]) -> bool:
    """Whether an amount is given; what only such an amount needs is refused without it."""
    if words.get("tokens") is not None or words.get("epochs") is not None:
        return True
    for name, value in words.items():
        if name != "price" and value:
            option = name.replace("_", "-")
            raise InputError(
                f"--{option} is about a whole training", "say how much: --tokens 15T or --epochs 90"
            )
    return False


def training_of(prediction: "Prediction", words: TrainingWords) -> "TrainingRun":
    """The whole training that the words ask for, by predicted steps."""
    from paceline.predictor.training_run import RunConditions, TrainingRun, samples_of

    count = {
        name: None if (text := words.get(name)) is None else parse_count(str(text))
        for name in ("tokens", "epochs", "samples_per_epoch")
    }
    given = {name: words.get(name) for name in _TIMES}
    times = {
        name: parse_seconds(text) if isinstance(text, str | int | float) else None
        for name, text in given.items()
    }
    price = words.get("price")
    if price is not None and not 0 < price < float("inf"):
        raise InputError(f"a price of {price:g} is impossible", "give it per device and hour")
    conditions = RunConditions(
        times["mtbf"],
        times["checkpoint_time"],
        times["restart_time"],
        times["checkpoint_every"],
        price,
        words.get("no_failures", False),
    )
    return TrainingRun(prediction, samples_of(prediction, **count), conditions)
