"""Arrays against tasks: sweeps against the scheduler."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paceline.errors import InputError
from paceline.hardware import catalogue
from paceline.predictor.plan.plan import Plan
from paceline.predictor.plan.sync_policy import synchronisation
from paceline.predictor.sweep import AXES, SWEPT, DataParallelSweep, Grid, Points, grid_around
from paceline.workload.workload import Workload

NETWORKS = ("alexnet", "resnet44", "resnet50", "googlenet")
CLUSTERS = ("dgx-1", "hkbu-v100-pcie", "hkbu-k80", "knl-opa")


def sweep_of(network="resnet50", cluster="dgx-1", policy="bucketed", **options):
    plan = Plan(synchronisation=synchronisation(policy))
    return DataParallelSweep(Workload.of(network, 32), catalogue.cluster(cluster), plan, **options)


def around(base, batch, flops, memory, link, nodes):
    """A configuration at multiples of where workload and cluster lie."""
    return {
        "batch": float(batch),
        "flops": base["flops"] * flops,
        "memory": base["memory"] * memory,
        "link": base["link"] * link,
        "nodes": float(nodes),
    }


def points(*configurations):
    return Points(*(np.array([c[name] for c in configurations]) for name in AXES))


FACTOR = st.floats(0.05, 20.0)


@settings(max_examples=60, deadline=None)
@given(
    network=st.sampled_from(NETWORKS),
    cluster=st.sampled_from(CLUSTERS),
    policy=st.sampled_from([str(policy) for policy in SWEPT]),
    batch=st.integers(1, 512),
    flops=FACTOR,
    memory=FACTOR,
    link=st.floats(0.005, 20.0),
    nodes=st.integers(1, 300),
    jitter=st.sampled_from([None, 0.05]),
    input_seconds=st.sampled_from([0.0, 0.3]),
)
def test_the_fast_engine_says_what_the_scheduler_says(
    network, cluster, policy, batch, flops, memory, link, nodes, jitter, input_seconds
):
    sweep = sweep_of(network, cluster, policy, jitter=jitter, input_seconds=input_seconds)
    values = around(sweep.base, batch, flops, memory, link, nodes)
    scheduled = sweep.scheduled(values).step_seconds
    assert sweep.at(points(values))[0] == pytest.approx(scheduled, rel=0.01)


@pytest.mark.parametrize("policy", SWEPT)
def test_a_grid_holds_the_configurations_it_is_made_of(policy):
    sweep = sweep_of("resnet44", policy=policy)
    base = sweep.base
    grid = Grid(
        np.array([8, 32]),
        base["flops"] * np.array([0.5, 1.0, 4.0]),
        base["memory"] * np.array([0.5, 2.0]),
        base["link"] * np.array([0.01, 0.1, 1.0]),
        np.array([1, 2, 3, 64]),
    )
    seconds = sweep.on_grid(grid)
    assert seconds.shape == grid.shape == (2, 3, 2, 3, 4)
    rows = np.meshgrid(*(getattr(grid, name) for name in AXES), indexing="ij")
    one_by_one = sweep.at(Points(*(row.ravel() for row in rows)))
    np.testing.assert_allclose(seconds.ravel(), one_by_one, rtol=1e-9)


@pytest.mark.parametrize("axis", ["flops", "memory", "link"])
@pytest.mark.parametrize("policy", SWEPT)
def test_no_faster_part_makes_a_step_slower(axis, policy):
    sweep = sweep_of("alexnet", "hkbu-v100-pcie", policy)
    faster = sweep.base[axis] * np.geomspace(0.01, 100, 60)
    grid = grid_around(sweep.workload, sweep.cluster.with_nodes(8), **{axis: faster})
    assert (np.diff(sweep.on_grid(grid).ravel()) <= 1e-12).all()


def test_all_rates_twice_as_fast_halve_what_is_not_overhead():
    sweep = sweep_of("resnet50", "dgx-1")
    once = around(sweep.base, 64, 1, 1, 1, 8)
    rates = {**once, **{name: 2 * once[name] for name in ("flops", "memory", "link")}}
    slow, fast = sweep.at(points(once, rates))
    assert 0.5 * slow <= fast <= 0.52 * slow


def test_buckets_under_backward_are_no_slower_than_messages_after_it():
    for link in (0.01, 0.1, 1.0):
        bucketed, after = (
            sweep_of(policy=policy, cluster="hkbu-v100-pcie") for policy in ("bucketed", "none")
        )
        values = points(around(bucketed.base, 64, 1, 1, link, 8))
        assert bucketed.at(values)[0] <= after.at(values)[0]


def test_policies_whose_messages_depend_on_times_are_refused_with_a_hint():
    with pytest.raises(InputError, match="merged") as caught:
        sweep_of(policy="merged")
    assert "predict" in caught.value.hint


def test_an_axis_without_numbers_is_refused():
    sweep = sweep_of()
    with pytest.raises(InputError, match="link"):
        grid_around(sweep.workload, sweep.cluster, link=[1e9, -1.0])
