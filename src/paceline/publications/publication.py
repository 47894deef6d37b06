"""Published studies of distributed training: their figures, predictions and local measurements.

A figure is a curve that a paper or its authors' material prints as numbers.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Any

from paceline.located_toml import TomlTable, shipped_toml
from paceline.topology import Topology, parse_topology

_FOLDER = ("data", "studies")
_EPOCH_SECONDS = {"seconds/epoch": 1.0, "minutes/epoch": 60.0}
"""Quantities that decrease with the speed of training, in seconds."""
QUANTITIES = ("speed-up", "samples/s", *_EPOCH_SECONDS)
_NEEDED_STUDY_KEYS = ("schema", "letter", "paper", "question", "left_out")
_STUDY_KEYS = (*_NEEDED_STUDY_KEYS, "figure", "predicted", "sweep", "measured")
_NEEDED_FIGURE_KEYS = ("what", "quantity", "base", "topologies", "values", "source", "job")
_FIGURE_KEYS = (*_NEEDED_FIGURE_KEYS, "samples", "note", "why")
_NEEDED_CURVES_KEYS = ("what", "quantity", "topologies", "job", "lines")
_CURVES_KEYS = (*_NEEDED_CURVES_KEYS, "published_figure", "note")
_SWEEP_KEYS = ("what", "axis", "job")
_NEEDED_MEASURED_KEYS = ("study", "what", "short")
_MEASURED_KEYS = (*_NEEDED_MEASURED_KEYS, "needs", "by", "dp_vs_tp", "parity")


@dataclass(frozen=True)
class PublishedFigure:
    """A published curve: ``values`` at ``topologies``, and the one at ``base_topology``.

    ``job`` has the keywords of `paceline.predict`. ``samples`` is the number of samples per epoch.
    ``why`` is the known reason for errors of the predictions.
    """

    what: str
    quantity: str
    base_topology: Topology
    base_value: float
    topologies: tuple[Topology, ...]
    values: tuple[float, ...]
    job: Mapping[str, Any]
    source: str
    samples: float | None = None
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


@dataclass(frozen=True)
class PredictedCurves:
    """Predictions for the machines of a study for which it published no curve.

    Each of ``lines`` has a label and the keywords that differ from ``job``. The values of
    ``published_figure``, if it is named, are drawn in the same figure.
    """

    what: str
    quantity: str
    topologies: tuple[Topology, ...]
    job: Mapping[str, Any]
    lines: Mapping[str, Mapping[str, Any]]
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
    by: str = ""
    dp_vs_tp: bool = False
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
    def mean_error(self) -> float | None:
        """Mean absolute error of speeds; None without points."""
        errors = [abs(point.error) for point in self.points]
        return sum(errors) / len(errors) if errors else None


def published_studies() -> list[PublishedStudy]:
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
    base.check_keys(("topology", "value"), needed=("topology", "value"))
    return PublishedFigure(
        table.text_of("what"),
        table.text_of("quantity", allowed=QUANTITIES),
        parse_topology(base.text_of("topology")),
        float(base.values["value"]),
        tuple(map(parse_topology, table.names("topologies"))),
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
        tuple(map(parse_topology, table.names("topologies"))),
        dict(table.table("job").values),
        {
            label: {key: value for key, value in keywords.items() if key != "label"}
            for label, keywords in lines.items()
        },
        table.text_of("published_figure", allowed=("", *figures)),
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
        table.flag("dp_vs_tp"),
        table.flag("parity"),
    )
