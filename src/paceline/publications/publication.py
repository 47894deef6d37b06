"""Published studies of distributed training: their figures, predictions and local measurements.

A figure is a curve that a paper or its authors' material prints as numbers.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Annotated, Any

from paceline.file_keys import NOT_IN_FILE, Key, quantity
from paceline.located_toml import shipped_toml
from paceline.topology import Topology, parse_topology
from paceline.typed_toml import read_file

_FOLDER = ("data", "studies")
_EPOCH_SECONDS = {"seconds/epoch": 1.0, "minutes/epoch": 60.0}
"""Quantities that decrease with the speed of training, in seconds."""
QUANTITIES = ("speed-up", "samples/s", *_EPOCH_SECONDS)
Topologies = tuple[Annotated[Topology, Key(parse=parse_topology)], ...]


@dataclass(frozen=True)
class PublishedFigure:
    """A published curve: ``values`` at ``topologies``, and the one at ``base_topology``.

    ``job`` has the keywords of `paceline.predict`. ``samples`` is the number of samples per epoch.
    ``why`` is the known reason for errors of the predictions.
    """

    what: str
    quantity: Annotated[str, Key(choices=QUANTITIES)]
    base_topology: Annotated[Topology, Key(key="base.topology", parse=parse_topology)]
    base_value: Annotated[float, Key(key="base.value")]
    topologies: Topologies
    values: tuple[float, ...]
    job: Mapping[str, Any]
    source: str
    samples: Annotated[float | None, quantity(float)] = None
    note: str = ""
    why: str = ""

    def rate(self, value: float) -> float:
        """A speed: the value itself, or the inverse of the time of an epoch."""
        return 1.0 / value if self.quantity in _EPOCH_SECONDS else value

    def samples_per_second(self, value: float) -> float | None:
        """The throughput of a value; None if the paper does not give the samples per epoch."""
        if self.quantity == "samples/s":
            return value
        unit = _EPOCH_SECONDS.get(self.quantity)
        return None if unit is None or self.samples is None else self.samples / (unit * value)


def _lines(tables: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    return {
        one["label"]: {key: value for key, value in one.items() if key != "label"} for one in tables
    }


@dataclass(frozen=True)
class PredictedCurves:
    """Predictions for the machines of a study for which it published no curve.

    Each of ``lines`` has a label and the keywords that differ from ``job``. The values of
    ``published_figure``, if it is named, are drawn in the same figure.
    """

    what: str
    quantity: Annotated[str, Key(choices=("speed-up", "samples/s"))]
    topologies: Topologies
    job: Mapping[str, Any]
    lines: Annotated[Mapping[str, Mapping[str, Any]], Key(parse=_lines)]
    published_figure: str = ""
    note: str = ""


@dataclass(frozen=True)
class SweptAxis:
    """Data against model parallelism along an ``axis`` of `paceline.sweep`."""

    what: str
    axis: str
    job: Mapping[str, Any]


@dataclass(frozen=True)
class MeasuredPart:
    """A part of a study that is measured on this machine, from a study file of the package.

    ``short`` are settings of the short form. The part cannot run without the frameworks in
    ``needs``. A part ``by`` model is explained network by network; one with ``dp_vs_tp`` compares
    data and tensor parallelism; one with ``parity`` begins with a parity check.
    """

    study: str
    what: str
    short: Mapping[str, Any]
    needs: tuple[str, ...] = ()
    by: Annotated[str, Key(choices=("", "model"))] = ""
    dp_vs_tp: bool = False
    parity: bool = False


@dataclass(frozen=True)
class PublishedStudy:
    """A published study.

    ``left_out`` lists parts that cannot be reproduced or compared, with reasons. ``needed`` says
    which published numbers a comparison would need, if there are none.
    """

    name: Annotated[str, NOT_IN_FILE]
    schema: str
    letter: str
    paper: str
    question: str
    left_out: tuple[str, ...]
    needed: str = ""
    figures: Annotated[tuple[PublishedFigure, ...], Key(key="figure")] = ()
    predicted: tuple[PredictedCurves, ...] = ()
    sweeps: Annotated[tuple[SweptAxis, ...], Key(key="sweep")] = ()
    measured: tuple[MeasuredPart, ...] = ()


@dataclass(frozen=True)
class ReproducedPoint:
    """A published value and its prediction with a 90 % interval, in the figure's unit."""

    figure: PublishedFigure
    topology: Topology
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
    def covered_curves(self) -> tuple[int, int]:
        """Curves with all points inside their intervals, and all curves."""
        curves: dict[int, bool] = {}
        for point in self.points:
            curves[id(point.figure)] = curves.get(id(point.figure), True) and point.covered
        return sum(curves.values()), len(curves)

    @property
    def mean_error(self) -> float | None:
        """Mean absolute error of speeds; None without points."""
        return mean_error(self.points) if self.points else None


def mean_error(points: Sequence[ReproducedPoint]) -> float:
    """Mean absolute error of the speeds of one or more points."""
    return sum(abs(point.error) for point in points) / len(points)


def published_studies() -> list[PublishedStudy]:
    folder = resources.files("paceline").joinpath(*_FOLDER)
    names = (entry.name for entry in folder.iterdir() if entry.name.endswith(".toml"))
    found = (
        read_file(shipped_toml(*_FOLDER, name), PublishedStudy, name=name.removesuffix(".toml"))
        for name in names
    )
    return sorted(found, key=lambda study: study.letter)
