"""Published studies of distributed training: the figures they print, and what was made of them.

A figure is a curve that a paper or the authors' own material prints as numbers.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from typing import Any

from paceline.located_toml import TomlTable, shipped_toml
from paceline.places import Place, parse_place

_FOLDER = ("data", "studies")
_EPOCH_SECONDS = {"seconds/epoch": 1.0, "minutes/epoch": 60.0}
"""Quantities that get less as training gets faster, in seconds."""
QUANTITIES = ("speed-up", "samples/s", *_EPOCH_SECONDS)
_STUDY_KEYS = ("schema", "letter", "paper", "question", "left_out", "figure")
_FIGURE_KEYS = (
    *("what", "quantity", "base", "places", "values", "source", "job"),
    *("samples", "note"),
)


@dataclass(frozen=True)
class PublishedFigure:
    """A published curve: ``values`` of a ``quantity`` at ``places``, and one at ``base_place``.

    ``job`` has the keywords of `paceline.predict`. ``samples`` are those of an epoch.
    """

    what: str
    quantity: str
    base_place: Place
    base_value: float
    places: tuple[Place, ...]
    values: tuple[float, ...]
    job: Mapping[str, Any]
    source: str
    samples: float | None = None
    note: str = ""

    def rate(self, value: float) -> float:
        """What grows with the speed of training: the value itself, or one over an epoch's time."""
        return 1.0 / value if self.quantity in _EPOCH_SECONDS else value

    def samples_per_second(self, value: float) -> float | None:
        """The throughput that a value stands for; None where the paper does not say."""
        if self.quantity == "samples/s":
            return value
        unit = _EPOCH_SECONDS.get(self.quantity)
        return None if unit is None or self.samples is None else self.samples / (unit * value)


@dataclass(frozen=True)
class PublishedStudy:
    """One of the studies that Paceline should have been able to do.

    ``left_out`` says what of it cannot be set beside a prediction, and why.
    """

    name: str
    letter: str
    paper: str
    question: str
    figures: tuple[PublishedFigure, ...]
    left_out: tuple[str, ...]


@dataclass(frozen=True)
class ReproducedPoint:
    """A published value beside the predicted one with its 90 % interval, in the figure's unit."""

    figure: PublishedFigure
    place: Place
    published: float
    predicted: float
    low: float
    high: float

    @property
    def error(self) -> float:
        """How much faster training is predicted than it was, as a part of the published speed."""
        return self.figure.rate(self.predicted) / self.figure.rate(self.published) - 1.0

    @property
    def covered(self) -> bool:
        """Whether the published value lies in the interval."""
        return self.low <= self.published <= self.high


@dataclass(frozen=True)
class Reproduction:
    """A study with every point that could be predicted."""

    study: PublishedStudy
    points: tuple[ReproducedPoint, ...]

    @property
    def mean_error(self) -> float | None:
        """Mean absolute error of speeds; None without points."""
        errors = [abs(point.error) for point in self.points]
        return sum(errors) / len(errors) if errors else None


def published_studies() -> list[PublishedStudy]:
    """The studies that come with the package, by letter."""
    folder = resources.files("paceline").joinpath(*_FOLDER)
    names = (entry.name for entry in folder.iterdir() if entry.name.endswith(".toml"))
    found = (_study(name, shipped_toml(*_FOLDER, name)) for name in names)
    return sorted(found, key=lambda study: study.letter)


def _study(file: str, root: TomlTable) -> PublishedStudy:
    root.check_keys(_STUDY_KEYS, needed=_STUDY_KEYS[:-2])
    return PublishedStudy(
        file.removesuffix(".toml"),
        root.text_of("letter"),
        root.text_of("paper"),
        root.text_of("question"),
        tuple(map(_figure, root.array("figure"))),
        tuple(root.names("left_out")),
    )


def _figure(table: TomlTable) -> PublishedFigure:
    table.check_keys(_FIGURE_KEYS, needed=_FIGURE_KEYS[:-2])
    base = table.table("base")
    base.check_keys(("place", "value"), needed=("place", "value"))
    return PublishedFigure(
        table.text_of("what"),
        table.text_of("quantity", allowed=QUANTITIES),
        parse_place(base.text_of("place")),
        float(base.values["value"]),
        tuple(map(parse_place, table.names("places"))),
        tuple(table.numbers("values")),
        dict(table.table("job").values),
        table.text_of("source"),
        table.parsed("samples", float),
        table.text_of("note"),
    )
