import json
from dataclasses import replace

import pytest
from builders import study_launches
from emulated_lab import emulated_shard, predict_emulated

from paceline.analysis.configurations import describe_emulation, grouped, ran_natively
from paceline.calibration.emulation import (
    EmulatedDevice,
    emulated_device,
    emulated_job,
)
from paceline.errors import InputError
from paceline.hardware import catalogue
from paceline.measurement.job import Job
from paceline.measurement.run_job import run_job
from paceline.predictor.kernels.layer_traces import traced_graph
from paceline.predictor.schedule.step_costs import LayerTime
from paceline.step.layer_trace import LayerTrace, TracedLayer
from paceline.store import Status, Store
from paceline.study import StudySettings
from paceline.workload import zoo
from paceline.workload.blocks import blocks
from paceline.workload.workload import Workload

LAYERS = tuple(LayerTime(f"l{number}", 0.01, 0.02, 4e6) for number in range(4))
DEVICE = EmulatedDevice("slow one", LAYERS, 0.005)
TRACE = LayerTrace(
    tuple(TracedLayer(x.name, x.forward_seconds, x.backward_seconds, 4e6) for x in LAYERS)
)


def test_a_device_of_the_catalogue_takes_as_long_as_predicted():
    workload = Workload(zoo.build("resnet50"), 32)
    device = emulated_device(catalogue.device("v100"), workload, "torch-ddp")
    assert {layer.name for layer in device.layers} >= {"conv1", "fc"}
    assert 0.05 < device.step_seconds < 0.5
    slow = device.slower(10)
    assert slow.step_seconds == pytest.approx(10 * device.step_seconds)
    assert slow.time_scale == 10
    assert EmulatedDevice.of_job({"emulated": slow.for_job()}).step_seconds == slow.step_seconds


def test_too_short_steps_are_rejected_with_a_time_scale():
    with pytest.raises(InputError, match="an emulated step must take") as caught:
        DEVICE.slower(0.01).check()
    assert "--time-scale" in caught.value.hint
    with pytest.raises(InputError):
        DEVICE.slower(1e6).check()
    job = Job(model="m", graph={}, batch_per_rank=1, framework="jax")
    with pytest.raises(InputError, match="jax does not support"):
        emulated_job(job, DEVICE)


def test_emulated_predictions_use_layer_times_and_measured_messages():
    """One message after all of backward: nothing overlaps; with small buckets most does."""
    graph = traced_graph(TRACE)
    whole = predict_emulated(graph, DEVICE, 2, lambda size: size / 1e8, link=1e8, bucket_bytes=1e9)
    assert whole.step.seconds == pytest.approx(0.125 + 16e6 / 1e8, rel=0.01)
    pieces = predict_emulated(graph, DEVICE, 2, lambda size: size / 1e8, link=1e8, bucket_bytes=1e6)
    assert pieces.step.seconds == pytest.approx(0.04 + 0.02 + 4 * 0.04 + 0.005, rel=0.01)


def test_settings_of_a_study_name_device_scale_and_labs():
    settings = StudySettings.of(
        model="resnet20", batch=64, emulate="v100", time_scale=10.0, launcher="local"
    )
    (job,) = settings.jobs()
    assert job.emulated["device"] == "v100_sxm2_16gb" and job.emulated["time_scale"] == 10
    assert json.dumps(job.to_json())
    with pytest.raises(InputError, match="emulated device"):
        list(StudySettings.of(time_scale=2.0).jobs())
    with pytest.raises(InputError, match="launcher 'lab'"):
        list(StudySettings.of(launcher="local", labs=["link=1gbit"]).jobs())
    with pytest.raises(InputError, match="sleeps"):
        list(StudySettings.of(emulate="v100", batch=256, labs=["speed=0.5"]).jobs())


def test_emulated_launches_and_labs_are_not_evidence_for_this_machine():
    launch = study_launches("a study")[0]
    asleep = replace(launch, job={**launch.job, "emulated": DEVICE.for_job()})
    away = replace(launch, environment={**launch.environment, "lab": "1 Gbit/s"})
    assert len(grouped([launch, asleep, away])) == 3
    assert [ran_natively(one) for one in (launch, asleep, away)] == [True, False, False]


@pytest.mark.parametrize("network", ["resnet20", "alexnet", "gpt2-small"])
def test_workers_shard_the_blocks_of_predictions(network):
    graph = zoo.build(network)
    job = Job(model=network, graph=graph.to_json(), batch_per_rank=1, framework="torch-fsdp")
    names = [node.name for node in graph.nodes]
    units = [range(unit.first, unit.last) for unit in blocks(graph)]
    assert job.for_worker()["blocks"] == [[names[i] for i in unit] for unit in units]


def test_reduce_scatter_over_gloo_costs_an_all_reduce():
    """As PyTorch uses it, gloo sums a whole buffer and keeps a part of it."""
    prediction = predict_emulated(
        traced_graph(TRACE), DEVICE, 2, lambda size: size / 1e6, link=1e7, framework="torch-fsdp"
    )
    seconds = {
        name: {
            round(task.seconds, 1) for task in prediction.step.tasks if task.name.startswith(name)
        }
        for name in ("reduce-scatter", "all-gather")
    }
    assert seconds == {"reduce-scatter": {4.0}, "all-gather": {2.0}}


@pytest.mark.slow
def test_devices_of_one_replica_exchange_after_each_layer(tmp_path):
    """Model parallelism: messages are waited for, so that they add to the step."""
    graph = zoo.build("alexnet")
    shard = emulated_shard(catalogue.device("v100"), Workload(graph, 8), 2)
    assert {"conv2", "fc6"} <= set(shard.exchanges)
    slow = shard.slower(0.03 / shard.step_seconds)
    job = Job(
        model="alexnet",
        graph=graph.to_json(),
        batch_per_rank=8,
        world_size=2,
        steps=2,
        warmup_steps=1,
        synchronise=False,
    )
    with Store(tmp_path / "store.db") as store:
        launch = run_job(emulated_job(job, slow), store, "shards", timeout_seconds=120)
    assert launch.status is Status.FINISHED, launch.outcome.reason
    assert min(launch.outcome.ranks[0].wall_seconds) > slow.step_seconds


@pytest.mark.process
@pytest.mark.parametrize(
    "framework", ["torch-ddp", pytest.param("torch-fsdp", marks=pytest.mark.slow)]
)
def test_an_emulated_step_takes_no_less_than_its_device(framework, tmp_path):
    """Two ranks here, with the real wrapper and its messages."""
    graph = traced_graph(TRACE)
    job = Job(
        model="traced",
        graph=graph.to_json(),
        batch_per_rank=1,
        framework=framework,
        world_size=2,
        steps=2,
        warmup_steps=1,
    )
    with Store(tmp_path / "store.db") as store:
        launch = run_job(emulated_job(job, DEVICE), store, "asleep", timeout_seconds=120)
    assert launch.status is Status.FINISHED, launch.outcome.reason
    for rank in launch.outcome.ranks:
        assert min(rank.wall_seconds) >= 0.999 * DEVICE.step_seconds
    assert launch.outcome.facts["scheduler"] in ("real-time", "usual")
    assert launch.outcome.facts["late_seconds"] >= 0
    assert describe_emulation(launch) == "emulated slow one"
    assert "emulated slow one" in grouped([launch])[0].description
