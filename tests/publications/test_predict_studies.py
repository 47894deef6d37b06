"""Published studies and predictions: figures are complete, units and errors are right."""

import json

import pytest

import paceline
from commandline import run
from paceline.errors import PacelineError
from paceline.publications.publication import PublishedFigure, ReproducedPoint, published_studies

FIGURE = PublishedFigure(
    "a curve", "minutes/epoch", (1, 1), 60.0, ((1, 2),), (30.0,), {}, "a paper", samples=3600
)


def test_the_five_studies_list_omitted_parts():
    studies = published_studies()
    assert [study.letter for study in studies] == list("ABCDE")
    for study in studies:
        assert study.question.endswith("?")
        assert study.figures or study.left_out
        for figure in study.figures:
            assert len(figure.topologies) == len(figure.values) > 0
            assert figure.source


def test_an_epoch_in_half_the_time_is_twice_the_speed():
    assert FIGURE.samples_per_second(60.0) == 1.0
    quicker = ReproducedPoint(FIGURE, (1, 2), published=30.0, predicted=15.0, low=10.0, high=20.0)
    assert quicker.error == pytest.approx(1.0)
    assert not quicker.covered


def test_study_a_is_predicted_from_one_device():
    (found,) = paceline.reproduce("A")
    first = found.reproduction.points[0]
    assert first.published == 10.11
    assert first.low < first.predicted < first.high
    assert 8.5 < first.predicted < 11.2


def test_the_command_prints_tables_and_the_same_as_json():
    text = run("paceline reproduce sgd2018")
    assert "GoogLeNet, merged messages (MG-WFBP)" in text
    assert "not reproduced:" in text
    (study,) = json.loads(run("paceline reproduce B --json"))["studies"]
    assert len(study["points"]) == 24
    assert all(point["low"] < point["predicted"] < point["high"] for point in study["points"])


def test_an_unknown_study_is_one_line_with_a_hint():
    with pytest.raises(PacelineError, match="no published study named 'Z'") as caught:
        paceline.reproduce("Z")
    assert "A (ccgrid2020)" in caught.value.hint
