"""Published studies of distributed training: their figures, predictions and local measurements.

A figure is a curve that a paper or its authors' material prints as numbers.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Any

from paceline.located_toml import TomlTable, shipped_toml
from paceline.topology import Place, parse_topology

_FOLDER = ("data", "studies")
_EPOCH_SECONDS = {"seconds/epoch": 1.0, "minutes/epoch": 60.0}
"""Quantities that decrease with the speed of training, in seconds."""
QUANTITIES = ("speed-up", "samples/s", *_EPOCH_SECONDS)
_NEEDED_STUDY_KEYS = ("schema", "letter", "paper", "question", "left_out")
_STUDY_KEYS = (*_NEEDED_STUDY_KEYS, "figure", "predicted", "sweep", "measured")
_NEEDED_FIGURE_KEYS = ("what", "quantity", "base", "places", "values", "source", "job")
_FIGURE_KEYS = (*_NEEDED_FIGURE_KEYS, "samples", "note", "why")
_NEEDED_CURVES_KEYS = ("what", "quantity", "places", "job", "lines")
_CURVES_KEYS = (*_NEEDED_CURVES_KEYS, "beside", "note")
_SWEEP_KEYS = ("what", "axis", "job")
_NEEDED_MEASURED_KEYS = ("study", "what", "short")
_MEASURED_KEYS = (*_NEEDED_MEASURED_KEYS, "needs", "by", "ways", "parity")


@dataclass(frozen=True)
class PublishedFigure:
    """A published curve: ``values`` of a ``quantity`` at ``places``, and one at ``base_place``.

    ``job`` has the keywords of `paceline.predict`. ``samples`` are those of an epoch. ``why`` is
    the reason known for what predictions miss.
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
    why: str = ""

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
class PredictedCurves:
    """What is predicted for the machines of a study though no curve of it was published.

    Each of ``lines`` has a label and the keywords that differ from ``job``. ``beside`` names the
    published figure whose values are drawn over them, where there is one.
    """

    what: str
    quantity: str
    places: tuple[Place, ...]
    job: Mapping[str, Any]
    lines: Mapping[str, Mapping[str, Any]]
    beside: str = ""
    note: str = ""


@dataclass(frozen=True)
class SweptAxis:
    """Data against model parallelism along an ``axis``, as `paceline.sweep` has it."""

    what: str
    axis: str
    job: Mapping[str, Any]


@dataclass(frozen=True)
class MeasuredPart:
    """What of a study is measured on this machine: a study file that comes with the package.

    ``short`` are settings of the short form. Without the frameworks that it ``needs`` the part
    cannot run at all. A part ``by`` model is explained network by network; one with ``ways``
    compares data and tensor parallelism; one with ``parity`` first shows that its frameworks
    train the same.
    """

    study: str
    what: str
    short: Mapping[str, Any]
    needs: tuple[str, ...] = ()
    by: str = ""
    ways: bool = False
    parity: bool = False


@dataclass(frozen=True)
class PublishedStudy:
    """A published study.

    ``left_out`` lists what cannot be reproduced or compared, with reasons.
    """

    name: str
    letter: str
    paper: str
    question: str
    figures: tuple[PublishedFigure, ...]
    left_out: tuple[str, ...]
    predicted: tuple[PredictedCurves, ...] = ()
    sweeps: tuple[SweptAxis, ...] = ()
    measured: tuple[MeasuredPart, ...] = ()


@dataclass(frozen=True)
class ReproducedPoint:
    """A published value and its prediction with a 90 % interval, in the figure's unit."""

    figure: PublishedFigure
    place: Place
    published: float
    predicted: float
    low: float
    high: float

    @property
    def error(self) -> float:
        """Relative error of the predicted speed; positive is too fast."""
        return self.figure.rate(self.predicted) / self.figure.rate(self.published) - 1.0

    @property
    def covered(self) -> bool:
        """Whether the published value is inside the interval."""
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
    """The studies of the package, by letter."""
    folder = resources.files("paceline").joinpath(*_FOLDER)
    names = (entry.name for entry in folder.iterdir() if entry.name.endswith(".toml"))
    found = (_study(name, shipped_toml(*_FOLDER, name)) for name in names)
    return sorted(found, key=lambda study: study.letter)


def _study(file: str, root: TomlTable) -> PublishedStudy:
    root.check_keys(_STUDY_KEYS, needed=_NEEDED_STUDY_KEYS)
    figures = tuple(map(_figure, root.array("figure")))
    titles = [figure.what for figure in figures]
    return PublishedStudy(
        file.removesuffix(".toml"),
        root.text_of("letter"),
        root.text_of("paper"),
        root.text_of("question"),
        figures,
        tuple(root.names("left_out")),
        tuple(_curves(table, titles) for table in root.array("predicted")),
        tuple(map(_sweep, root.array("sweep"))),
        tuple(map(_measured, root.array("measured"))),
    )


def _figure(table: TomlTable) -> PublishedFigure:
    table.check_keys(_FIGURE_KEYS, needed=_NEEDED_FIGURE_KEYS)
    base = table.table("base")
    base.check_keys(("place", "value"), needed=("place", "value"))
    return PublishedFigure(
        table.text_of("what"),
        table.text_of("quantity", allowed=QUANTITIES),
        parse_topology(base.text_of("place")),
        float(base.values["value"]),
        tuple(map(parse_topology, table.names("places"))),
        tuple(table.numbers("values")),
        dict(table.table("job").values),
        table.text_of("source"),
        table.parsed("samples", float),
        table.text_of("note"),
        table.text_of("why"),
    )


def _curves(table: TomlTable, figures: Sequence[str]) -> PredictedCurves:
    table.check_keys(_CURVES_KEYS, needed=_NEEDED_CURVES_KEYS)
    lines = {line.text_of("label"): line.values for line in table.array("lines")}
    return PredictedCurves(
        table.text_of("what"),
        table.text_of("quantity", allowed=("speed-up", "samples/s")),
        tuple(map(parse_topology, table.names("places"))),
        dict(table.table("job").values),
        {
            label: {key: value for key, value in words.items() if key != "label"}
            for label, words in lines.items()
        },
        table.text_of("beside", allowed=("", *figures)),
        table.text_of("note"),
    )


def _sweep(table: TomlTable) -> SweptAxis:
    table.check_keys(_SWEEP_KEYS, needed=_SWEEP_KEYS)
    job = dict(table.table("job").values)
    return SweptAxis(table.text_of("what"), table.text_of("axis"), job)


def _measured(table: TomlTable) -> MeasuredPart:
    table.check_keys(_MEASURED_KEYS, needed=_NEEDED_MEASURED_KEYS)
    return MeasuredPart(
        table.text_of("study"),
        table.text_of("what"),
        dict(table.table("short").values),
        tuple(table.names("needs")),
        table.text_of("by", allowed=("", "model")),
        table.flag("ways"),
        table.flag("parity"),
    )
