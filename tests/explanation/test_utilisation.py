"""MFU: reached, attainable, predicted, and what others reached."""

from dataclasses import replace

import pytest
from builders import timed_launch

import paceline as pl
from paceline.analysis.configurations import grouped
from paceline.errors import InputError
from paceline.explanation.utilisation import explain_utilisation
from paceline.spec.resolve_cluster import cluster_of
from paceline.workload import zoo


def trained(seconds=0.2, **changes):
    given = {"model": "resnet50", "batch_per_rank": 64, "framework": "pytorch_ddp", **changes}
    (group,) = grouped([timed_launch(1, *[[seconds] * 4] * 2, **given)])
    return group


@pytest.fixture
def cluster():
    return cluster_of(None, {"device": "v100_sxm2_16gb", "processes": 2})


def test_achieved_mfu_is_flop_over_peak(cluster):
    found = explain_utilisation(trained(), cluster)
    flops = float(zoo.build("resnet50").cost(1).training_flops)
    # Winograd executes a quarter of the FLOPs of windows of 3 x 3, half of those of ResNet-50.
    executed = pl.predict("resnet50", cluster, batch=64).executed_share
    assert 0.5 < executed < 0.75
    reached = executed * 64 * flops / 0.2 / cluster.device.peak("fp32")
    assert found.achieved == pytest.approx(reached)
    assert 1.0 > found.attainable >= found.predicted > 0


def test_published_rows_are_of_the_same_network_and_list_differences(cluster):
    found = explain_utilisation(trained(), cluster)
    assert len(found.published) == 3
    for row in found.published:
        assert row.description.startswith("resnet50 on ")
        assert 0 < row.utilisation <= 1
        assert row.source
        assert any("(here " in words for words in row.differences)


def test_more_than_the_peak_is_an_error(cluster):
    with pytest.raises(InputError, match="MFU above 100 %"):
        explain_utilisation(trained(seconds=0.001), cluster)


def test_a_network_without_a_graph_has_no_flop(cluster):
    with pytest.raises(InputError, match="unknown FLOP of 'mine'"):
        explain_utilisation(trained(model="mine"), cluster)


def test_an_unknown_precision_is_noted(cluster):
    (group,) = grouped([replace(trained().first, precision="unknown")])
    assert "fp32 is assumed" in explain_utilisation(group, cluster).notes[0]
