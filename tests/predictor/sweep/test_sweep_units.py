"""The axis of a sweep is drawn in the unit of its table."""

import paceline as pl
from paceline.predictor.sweep.sweep_tables import sweep_figure, sweep_json


def test_links_are_drawn_in_gbit_and_json_stays_in_bytes():
    found = pl.sweep("vgg16", "hkbu-v100-pcie", ("link=1gbit..100gbit:5",), nodes=4, batch=64)
    info = sweep_figure([found])
    assert info.x_title == "link between nodes (Gbit/s)"
    assert [round(x, 6) for x, _ in info.series[0].points][::4] == [1, 100]
    document = sweep_json(found)
    assert document["axes"]["link"][0] == 1e9 / 8
    assert document["axis_units"]["link"] == "link between nodes, B/s"
