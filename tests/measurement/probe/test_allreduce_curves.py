import json
from pathlib import Path

import pytest

import paceline
from paceline.calibration.machine_evidence import with_curve
from paceline.errors import InputError
from paceline.hardware.machine_profile import CollectivePoint
from paceline.measurement.probe.allreduce_curves import CollectiveCurve, read_curve
from paceline.predictor.evidence import NO_EVIDENCE

LOGS = Path(__file__).parents[2] / "fixtures" / "logs"
POINTS = tuple(CollectivePoint(size, size / 1e8, size / 1e8, size / 1e8) for size in (1e4, 1e6))
CURVE = CollectiveCurve(4, 4, POINTS, "a test")


def test_curve_round_trips_through_its_file(tmp_path):
    path = tmp_path / "curve.json"
    path.write_text(json.dumps(CURVE.to_json()))
    assert read_curve(path) == CURVE
    assert CURVE.bus_bandwidth(POINTS[1]) == pytest.approx(1.5e8)


def test_logs_are_curves():
    nccl, osu = (read_curve(LOGS / name) for name in ("nccl_all_reduce.log", "osu_allreduce.log"))
    assert (nccl.ranks, nccl.nodes) == (4, 2)
    assert (osu.ranks, len(osu.points)) == (0, 4)
    assert osu.bus_bandwidth(osu.points[0]) is None


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "{}",
        '{"schema": "paceline/curve/1", "ranks": -1, "nodes": 1, "source": "", "points": []}',
        '{"schema": "paceline/curve/1", "ranks": 2, "nodes": 1, "source": "", "points": []}',
        "nothing of the kind",
    ],
)
def test_invalid_curve_is_rejected(text, tmp_path):
    path = tmp_path / "curve.json"
    path.write_text(text)
    with pytest.raises(InputError) as caught:
        read_curve(path)
    assert caught.value.hint


def test_a_log_of_training_is_no_curve():
    with pytest.raises(InputError, match="no all-reduce"):
        read_curve(LOGS / "caffe_train_recorded.log")


def test_curve_of_other_ranks_is_scaled_with_a_note():
    same = with_curve(NO_EVIDENCE, CURVE, 4)
    other = with_curve(NO_EVIDENCE, CURVE, 8)
    assert other.all_reduce[8](1e6) == pytest.approx(same.all_reduce[4](1e6) * (7 / 8) / (3 / 4))
    assert "scaled to 8" in other.source and "scaled" not in same.source
    assert with_curve(NO_EVIDENCE, CURVE, 1) is NO_EVIDENCE


def test_prediction_uses_the_times_of_the_curve():
    """Neither another link nor published results change a measured curve."""
    steps = [
        paceline.predict("vgg16", device="v100", nodes=4, link=link, allreduce_curve=CURVE).step
        for link in ("eth_1g", "eth_100g")
    ]
    for step in steps:
        sent = [task for task in step.tasks if task.name.startswith("all-reduce")]
        assert sum(task.seconds for task in sent) == pytest.approx(
            sum(task.size_bytes for task in sent) / 1e8, rel=1e-3
        )


def test_curve_without_a_topology_is_rejected():
    with pytest.raises(InputError, match="does not support allreduce_curve"):
        paceline.predict("vgg16", allreduce_curve=CURVE)
