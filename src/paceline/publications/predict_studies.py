"""Predictions of the results of published studies.

The smallest point of each figure is the measured baseline; the others are predicted.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from paceline.naming import look_up
from paceline.predictor.api import prepared_job
from paceline.predictor.evidence import Baseline, Evidence
from paceline.predictor.predict import model_step, predict_job, predict_step
from paceline.predictor.prediction import Prediction
from paceline.predictor.prediction_inputs import PredictionInputs
from paceline.publications.publication import (
    PredictedCurves,
    PublishedFigure,
    PublishedStudy,
    ReproducedPoint,
    Reproduction,
    published_studies,
)
from paceline.publications.reproduction_result import PredictedLine
from paceline.spec.jobs import check_job
from paceline.topology import Topology


def chosen_studies(names: str | Sequence[str] = ()) -> list[PublishedStudy]:
    """Studies by name or letter, by letter [all]."""
    studies = published_studies()
    known = {study.name: study for study in studies} | {study.letter: study for study in studies}
    requested = [names] if isinstance(names, str) else list(names)
    hint = f"use one of {', '.join(f'{study.letter} ({study.name})' for study in studies)}"
    chosen = [look_up("published study", name, known, hint) for name in requested] or studies
    return [study for study in studies if study in chosen]


def predicted_lines(curves: PredictedCurves) -> list[PredictedLine]:
    """Each line of predicted curves; of speed-ups the interval is that of scaling alone."""
    found = []
    for label, differing in curves.lines.items():
        job, evidence = {**curves.job, **differing}, None
        if curves.quantity == "speed-up":
            base = model_step(_prepared(job, curves.topologies[0]))
            evidence = Evidence(baseline=Baseline(base, predict_step(base).step_seconds))
        points = [(at, predict_job(_prepared(job, at, evidence))) for at in curves.topologies]
        found.append(PredictedLine(label, points))
    return found


def reproduced(study: PublishedStudy) -> Reproduction:
    """Every value of a study that can be predicted."""
    points = [point for figure in study.figures for point in _points(figure)]
    return Reproduction(study, tuple(points))


def _points(figure: PublishedFigure) -> list[ReproducedPoint]:
    """Every further value of a figure, predicted from its smallest one."""
    base = model_step(_prepared(figure.job, figure.base_topology))
    published = figure.samples_per_second(figure.base_value)
    predicted = predict_step(base)
    samples = predicted.samples_per_step
    seconds = predicted.step_seconds if published is None else samples / published
    evidence = Evidence(baseline=Baseline(base, seconds))
    found = []
    for topology, value in zip(figure.topologies, figure.values, strict=True):
        prediction = predict_job(_prepared(figure.job, topology, evidence))
        found.append(_point(figure, topology, value, prediction, samples / seconds))
    return found


def _prepared(
    job: Mapping[str, Any], topology: Topology, evidence: Evidence | None = None
) -> PredictionInputs:
    nodes, processes = topology
    options = {**job, "nodes": nodes, "processes": processes}
    model, cluster = options.pop("model", None), options.pop("cluster", None)
    return prepared_job(model, cluster, None, check_job(options), evidence)


def _point(
    figure: PublishedFigure, topology: Topology, value: float, prediction: Prediction, base: float
) -> ReproducedPoint:
    times = prediction.samples_per_second / base

    def in_unit(factor: float) -> float:
        return figure.rate(figure.rate(figure.base_value) * times * factor)

    bounds = prediction.interval.low, prediction.interval.high
    low, high = sorted(map(in_unit, bounds))
    return ReproducedPoint(figure, topology, value, in_unit(1.0), low, high)
