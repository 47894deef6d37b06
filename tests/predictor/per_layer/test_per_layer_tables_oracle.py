"""Segments of AlexNet: times of both ways add up to whole steps without overlap."""

import pytest

from paceline.hardware import catalogue
from paceline.predictor.per_layer import Way, choose_per_layer
from paceline.predictor.per_layer.per_layer_tables import per_layer_json, per_layer_table
from paceline.workload import zoo
from paceline.workload.workload import Workload


@pytest.fixture(scope="module")
def plan():
    place = catalogue.cluster("hkbu-v100-pcie").shaped(8, 1)
    return choose_per_layer(Workload.of("alexnet", 32), place)


def test_rows(plan):
    document = per_layer_json(plan)
    rows = document["parts"]
    assert sum(row["gradient_bytes"] for row in rows) == pytest.approx(
        4 * zoo.build("alexnet").profile().parameters
    )
    assert document["global_batch"] == 256
    # Model parallelism gathers the input of each segment but the first, of all samples.
    fc8 = next(row for row in rows if row["first_layer"] == "fc8")
    assert fc8["gathered_bytes"] == 256 * 4096 * 4
    assert rows[0]["gathered_bytes"] == 0
    assert fc8["gradient_bytes"] == 4 * (4096 * 1000 + 1000)
    assert fc8["way"] == "model"
    assert fc8["model_seconds"] < fc8["data_seconds"]
    assert document["step_seconds"] <= document["all_data_step_seconds"]


def test_times_of_segments(plan):
    costs = plan.costs
    exchange = costs.data.gradients
    for way in Way:
        layers = costs.layers([way] * len(plan.segments))
        expected = sum(x.whole_forward_seconds + x.whole_backward_seconds for x in layers)
        if way is Way.DATA:
            sizes = [x.gradient_bytes for x in layers if x.gradient_bytes > 0]
            expected += sum(float(exchange.message(size)) for size in sizes)
        found = [costs.segment_seconds(number, way) for number in range(len(plan.segments))]
        assert sum(found) == pytest.approx(expected)


def test_table(plan):
    table = per_layer_table(plan, "title")
    chosen = [row[-1] for row in table.rows]
    assert chosen == [str(way) for way in plan.ways]
    assert [row[0] for row in table.rows] == [own.name for own in plan.segments]
