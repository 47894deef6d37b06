"""Work that is shared out has the same answers, in the same order, wherever it was done."""

import operator
import os

import numpy as np
import pytest

import paceline
from paceline import parallel_map as sharing_out
from paceline.errors import EnvironmentUnusableError, InputError
from paceline.launch.ports import free_port
from paceline.parallel_map import parallel_map, parse_workers


@pytest.fixture(scope="module")
def dask_cluster():
    from distributed import LocalCluster

    with LocalCluster(
        n_workers=2,
        threads_per_worker=1,
        processes=False,
        protocol="tcp",
        host="127.0.0.1",
        dashboard_address=None,
    ) as cluster:
        yield cluster.scheduler_address


@pytest.fixture
def axes():
    return {"batch": [1.0, 4.0, 16.0, 64.0], "link": [1e8, 3e8, 1e9, 3e9, 1e10]}


def swept(axes, workers):
    return paceline.sweep("alexnet", "hkbu-v100-pcie", axes, nodes=8, processes=1, workers=workers)


def same(one, other):
    return (
        one.crossings == other.crossings
        and all(np.array_equal(one.axes[name], other.axes[name]) for name in other.axes)
        # NumPy adds in an order that depends on the length of the array: the last bit may differ.
        and all(
            np.allclose(one.seconds[way], other.seconds[way], 1e-14, 0) for way in other.seconds
        )
        and np.array_equal(one.samples, other.samples)
    )


@pytest.mark.parametrize("workers", [1, "2"])
def test_answers_have_the_order_of_the_parts(workers):
    told = []
    assert parallel_map(operator.neg, range(9), workers, told.append) == [-n for n in range(9)]
    assert sorted(told) == list(range(9))


def test_a_sweep_does_not_depend_on_the_number_of_processes(axes):
    alone = swept(axes, 1)
    assert any(alone.crossings)
    assert same(swept(axes, 2), alone)


def test_a_sweep_on_a_dask_cluster_is_that_of_one_process(axes, dask_cluster):
    assert same(swept(axes, dask_cluster), swept(axes, 1))


def test_a_sweep_of_one_axis_stays_here(axes):
    del axes["batch"]
    assert same(swept(axes, 2), swept(axes, 1))


def test_mistakes_of_a_part_come_back_from_a_cluster(dask_cluster):
    with pytest.raises(ZeroDivisionError):
        parallel_map((1).__truediv__, [1, 0], dask_cluster)


def test_a_cluster_that_is_not_there_is_named(monkeypatch):
    monkeypatch.setattr(sharing_out, "CONNECT_SECONDS", 1)
    address = f"tcp://127.0.0.1:{free_port()}"
    with pytest.raises(InputError, match=f"no Dask cluster answers at {address}") as caught:
        parallel_map(operator.neg, [1], address)
    assert "dask scheduler" in caught.value.hint


def test_a_cluster_with_another_paceline_is_refused(dask_cluster, monkeypatch):
    monkeypatch.setattr(paceline, "__version__", "0.0.1")
    monkeypatch.setattr(sharing_out, "_version", "0.0.2".strip)
    with pytest.raises(EnvironmentUnusableError, match=r"have Paceline 0\.0\.2, not 0\.0\.1"):
        parallel_map(operator.neg, [1], dask_cluster)


@pytest.mark.parametrize("workers", [0, -1, "0", 4 * (os.cpu_count() or 1) + 1])
def test_impossible_numbers_of_workers_are_refused(workers):
    with pytest.raises(InputError, match="--workers must be between"):
        parse_workers(workers)


@pytest.mark.parametrize("workers", ["many", "host:8786", "http://host", "1.5"])
def test_what_is_neither_a_number_nor_an_address_is_refused(workers):
    with pytest.raises(InputError, match="--workers: expected an integer") as caught:
        parse_workers(workers)
    assert "tcp://host:8786" in caught.value.hint
