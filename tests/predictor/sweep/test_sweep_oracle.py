"""Crossovers and tables of a comparison of two lines that cross at a known point."""

import csv
import io
import math

import numpy as np
import pytest

from paceline.hardware import catalogue
from paceline.predictor.plan.plan import Plan
from paceline.predictor.predict import predict
from paceline.predictor.sweep import AXES, ModelParallelSweep, Points, SweepComparison
from paceline.predictor.sweep.crossover import Crossing, crossings
from paceline.predictor.sweep.sweep_tables import (
    crossing_lines,
    describe_axis,
    surface_lines,
    sweep_csv,
    sweep_figure,
    sweep_json,
    sweep_table,
)
from paceline.workload.workload import Workload


def found(axis, values, first, second):
    lines = ([first(x) for x in values], [second(x) for x in values])
    return crossings(axis, values, ("dp", "mp"), lines, (first, second))


def test_a_crossing_between_two_values():
    """x and 12 / x cross at sqrt(12)."""
    (own,) = found("link", [1.0, 2.0, 8.0], lambda x: x, lambda x: 12 / x)
    assert own.value == pytest.approx(math.sqrt(12), rel=1e-9)
    assert own.step_seconds == pytest.approx(math.sqrt(12), rel=1e-9)
    assert (own.faster_below, own.faster_beyond) == ("dp", "mp")
    (back,) = found("link", [1.0, 2.0, 8.0], lambda x: 12 / x, lambda x: x)
    assert (back.faster_below, back.faster_beyond) == ("mp", "dp")


def test_the_first_integer_from_which_the_other_is_faster():
    (own,) = found("batch", [1.0, 2.0, 8.0], lambda x: x, lambda x: 12 / x)
    assert own.value == 4.0
    assert own.step_seconds == 4.0


def test_lines_that_do_not_cross():
    assert found("link", [1.0, 2.0, 8.0], lambda x: x, lambda x: 2 * x) == []
    assert found("link", [1.0], lambda x: x, lambda x: 2 * x) == []
    # Equal at the first value: no change of order was seen.
    assert found("link", [2.0, 8.0], lambda x: x, lambda x: 4 / x) == []
    several = found("link", [1.0, 2.0, 4.0, 8.0], lambda x: 3.0, lambda x: 3 + math.sin(2 * x))
    assert [own.faster_beyond for own in several] == ["mp", "dp", "mp"]


BATCHES = np.array([1.0, 2.0, 4.0, 8.0])
ONE = SweepComparison(
    {"batch": BATCHES},
    {"dp": np.array([1.0, 1.5, 3.0, 8.0]), "mp": np.array([2.0, 2.0, 2.0, 2.0])},
    16 * BATCHES,
    ((Crossing(3.0, 2.0, "dp", "mp"),),),
)
LINKS = np.array([1.25e9, 12.5e9])
TWO = SweepComparison(
    {"batch": BATCHES, "link": LINKS},
    {
        "dp": np.array([[1.0, 1.0], [1.5, 1.0], [3.0, 1.99], [8.0, 2.0]]),
        "mp": np.full((4, 2), 2.0),
    },
    np.stack([16 * BATCHES] * 2, axis=1),
    ((Crossing(3.0, 2.0, "dp", "mp"),), ()),
)


def test_throughput():
    assert ONE.samples_per_second("dp") == pytest.approx([16, 16 * 2 / 1.5, 16 * 4 / 3, 16])
    assert ONE.samples_per_second("mp") == pytest.approx([8, 16, 32, 64])


def test_table_of_one_axis():
    table = sweep_table([ONE], "title")
    assert [column.title for column in table.columns] == [
        *("batch", "dp step", "mp step", "dp", "mp", "faster")
    ]
    assert [row[-1] for row in table.rows] == ["dp", "dp", "mp", "mp"]
    assert [row[0] for row in table.rows] == ["1", "2", "4", "8"]
    assert [row[1] for row in table.rows] == [1.0, 1.5, 3.0, 8.0]
    many = np.arange(1.0, 101.0)
    long = SweepComparison({"batch": many}, {"dp": many}, many, ())
    rows = sweep_table([long], "").rows
    assert len(rows) == 24
    assert (rows[0][0], rows[-1][0]) == ("1", "100")
    assert len(rows[0]) == 3, "one method: nothing is faster"


def test_crossings_as_text():
    assert crossing_lines(ONE) == ["dp is faster below batch 3, mp from there"]
    assert crossing_lines(TWO) == ["link 10 Gbit/s: dp is faster below batch 3, mp from there"]
    none = SweepComparison(ONE.axes, {"dp": BATCHES, "mp": 2 * BATCHES}, BATCHES, ((),))
    assert crossing_lines(none) == ["no crossover: dp is faster everywhere"]
    alone = SweepComparison(ONE.axes, {"dp": BATCHES}, BATCHES, ())
    assert crossing_lines(alone) == []


def test_surface_of_two_axes():
    """dp over mp: 0.5, 0.75, 1.5, 4 on the slow link; 0.5, 0.5, 0.995, 1 on the fast one."""
    lines = surface_lines(TWO, 80)
    rows = [line.split("  ")[-1] for line in lines[1:3]]
    assert rows == ["ddmM", "dd=="]
    half = SweepComparison(
        TWO.axes,
        {"dp": np.full((4, 2), 0.99), "mp": np.full((4, 2), 2.0)},
        TWO.samples,
        (),
    )
    assert surface_lines(half, 80)[1].endswith("DDDD")


def test_units_of_axes():
    assert describe_axis("link", 1.25e9) == "10 Gbit/s"
    assert describe_axis("link", 12.5e9) == "100 Gbit/s"
    assert describe_axis("link", 150e9) == "1,200 Gbit/s"
    assert describe_axis("link", 0.1234e9) == "0.987 Gbit/s"
    assert describe_axis("batch", 64.0) == "64"
    assert describe_axis("flops", 312e12) == "312 TFLOP/s"
    assert describe_axis("memory", 2e12) == "2.00 TB/s"


def test_json_csv_and_figure():
    text = sweep_csv([ONE])
    rows = list(csv.DictReader(io.StringIO(text)))
    assert [float(row["batch"]) for row in rows] == BATCHES.tolist()
    assert [float(row["dp_step_seconds"]) for row in rows] == [1.0, 1.5, 3.0, 8.0]
    assert float(rows[3]["mp_samples_per_second"]) == 64.0
    wide = list(csv.DictReader(io.StringIO(sweep_csv([TWO]))))
    assert len(wide) == 8
    assert [float(wide[3][key]) for key in ("batch", "link", "dp_step_seconds")] == [2, 12.5e9, 1]
    document = sweep_json(ONE)
    assert document["step_seconds"]["mp"] == [2.0] * 4
    assert document["crossovers"] == [
        [{"value": 3.0, "step_seconds": 2.0, "faster_below": "dp", "faster_beyond": "mp"}]
    ]
    figure = sweep_figure([ONE])
    assert [point[0] for point in figure.series[0].points] == BATCHES.tolist()
    # 16 x 3 samples in 2 s.
    assert sweep_figure([ONE]).crossovers[0].y == pytest.approx(24.0)


@pytest.mark.parametrize("nodes", [1, 2])
def test_model_parallelism_on_nodes_of_four(nodes):
    """All devices of all nodes share each layer, and train the samples of all workers."""
    place = catalogue.cluster("hkbu-v100-pcie").with_nodes(nodes)
    sweep = ModelParallelSweep(Workload.of("vgg16", 8), place)
    values = {**sweep.base, "nodes": float(nodes), "batch": 8.0}
    point = Points(*(np.array([values[name]]) for name in AXES))
    plan = Plan(tp=4 * nodes)
    expected = predict(
        Workload.of("vgg16", 8 * 4 * nodes), place, plan, corrections=sweep.job.corrections
    )
    assert sweep.at(point)[0] == pytest.approx(expected.step_seconds, rel=0.01)


def test_rows_of_points():
    rows = TWO.rows()
    assert len(rows) == 8
    assert rows[3] == {
        "batch": 2.0,
        "link": 12.5e9,
        "dp_step_seconds": 1.0,
        "mp_step_seconds": 2.0,
    }
    assert ONE.rows()[2] == {"batch": 4.0, "dp_step_seconds": 3.0, "mp_step_seconds": 2.0}


def test_large_surfaces_are_thinned():
    """At most 24 rows, and as many columns as the width allows; first and last are shown."""
    xs, ys = np.arange(1.0, 101.0), np.arange(1.0, 61.0)
    ratio = np.where(xs[:, None] > 50, 4.0, 0.1) * np.ones_like(ys)
    wide = SweepComparison(
        {"batch": xs, "nodes": ys},
        {"dp": ratio, "mp": np.ones_like(ratio)},
        np.ones_like(ratio),
        (),
    )
    lines = surface_lines(wide, 44)
    rows = lines[1:-2]
    assert len(rows) == 24
    assert (rows[0].split()[0], rows[-1].split()[0]) == ("1", "60")
    assert all(row.split()[1] == "D" * 20 + "M" * 20 for row in rows)
