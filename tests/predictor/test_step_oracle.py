"""Whole steps by hand: a network of three matrices on devices with round numbers.

Every device computes 100 TFLOP/s in bf16 and moves 1 TB/s; kernels reach both, launches are free,
the framework adds nothing; NCCL takes LAUNCH seconds of the device per message. A matrix of 4096 x
4096 on 8192 rows takes t = 2.749 ms forward and 2 t backward (t for the first, which needs no input
gradient).
"""

from dataclasses import replace

import pytest

from paceline.hardware import Cluster, Device, Link
from paceline.predictor.comm.collective_cost import collective_cost
from paceline.predictor.comm.library import library
from paceline.predictor.comm.rank_group import Group
from paceline.predictor.evidence import Colocated, Evidence
from paceline.predictor.framework_profiles import framework
from paceline.predictor.kernels.efficiency import Efficiency, UnitEfficiency
from paceline.predictor.plan.plan import Plan
from paceline.predictor.plan.plan_choices import PipelineSchedule, Recompute
from paceline.predictor.plan.sync_policy import Synchronisation, synchronisation
from paceline.predictor.predict import predict, prepare
from paceline.predictor.prediction_tables import prediction_table
from paceline.predictor.prediction_text import bound_by, rate_text
from paceline.predictor.uncertainty.applied_corrections import colocated_processes
from paceline.predictor.uncertainty.intervals import ThroughputInterval
from paceline.predictor.uncertainty.step_corrections import StepCorrections
from paceline.workload import Graph, InputSpec, Node, ops
from paceline.workload.workload import Workload

ROWS, WIDTH = 8192, 4096
T = 2 * ROWS * WIDTH * WIDTH / 100e12
PARAMETERS = 3 * WIDTH * WIDTH
UNIT = UnitEfficiency(
    *(1.0, 1.0, 0.0, 0.0, 0.0, 128.0, 1e9, 0.0, 1.0, 0.0, 1.0, 0.0, 0.0, 1.0, 1.0, 0.1)
)
IDEAL = Efficiency(
    matrix=UNIT,
    vector=UNIT,
    processor=UNIT,
    products={},
    memory={"other": 1.0},
    half_bytes={"accelerator": 0.0, "processor": 0.0},
    launch_seconds={"accelerator": 0.0, "processor": 0.0},
)
DEVICE = Device("gpu", "nvidia", "gpu", {"bf16": 100e12}, 80e9, 1e12, frozenset({"bf16"}))
CLUSTER = Cluster(
    "c",
    DEVICE,
    4,
    intra=Link("nv", "intra", 100e9, technology="nvlink"),
    inter=Link("ib", "inter", 10e9, "node", technology="infiniband", transport="rdma"),
)
BARE = replace(
    framework("torch-ddp"),
    dispatch_seconds=0.0,
    step_overhead_seconds=0.0,
    message_overhead_seconds=0.0,
    message_latency_seconds=0.0,
    tensor_overhead_seconds=0.0,
    pointwise_traffic=1.0,
)
NOTHING = StepCorrections(variation=0.0, unhidden_share=0.0)


def matrices():
    nodes = tuple(
        Node(f"layer.{i}.matrix", ops.Linear(WIDTH, bias=False), (source,))
        for i, source in enumerate(("x", "layer.0.matrix", "layer.1.matrix"))
    )
    return Graph("matrices", {"x": InputSpec((ROWS, WIDTH))}, nodes, nodes[-1].name)


def predicted(plan=None, cluster=None, batch=1, corrections=NOTHING, **options):
    own = plan or Plan()
    where = cluster or CLUSTER.shaped(1, own.devices)
    workload = Workload(matrices(), batch, precision="bf16", optimizer="sgd")
    return predict(
        workload,
        where,
        replace(own, framework=own.framework or BARE),
        corrections=corrections,
        efficiency=IDEAL,
        **options,
    )


UPDATE = PARAMETERS * (2 + 2 * 2 + 2 * 4) / 1e12
"""SGD in bf16 reads a gradient, reads and writes a weight and its fp32 master copy."""
GRADIENTS = 2 * PARAMETERS
LAUNCH = library("nccl").message_overhead_seconds
"""Seconds of the computing device to start a message."""


def test_one_device():
    """3 t forward, t + 2 t + 2 t backward, update."""
    found = predicted()
    assert found.step_seconds == pytest.approx(8 * T + UPDATE)
    assert found.compute_seconds == pytest.approx(8 * T + UPDATE)
    assert found.training_flops == pytest.approx(8 * T * 100e12)
    assert found.utilisation == pytest.approx(8 * T / (8 * T + UPDATE))
    assert found.efficiency == pytest.approx(1.0)
    assert found.losses["network"] == 0.0


def test_micro_batches():
    found = predicted(Plan(micro_batches=3), batch=3)
    assert found.step_seconds == pytest.approx(3 * 8 * T + UPDATE)
    assert found.samples_per_second == pytest.approx(3 / found.step_seconds)


def collective(operation, size, ranks):
    where = CLUSTER.shaped(1, ranks)
    return float(collective_cost(operation, Group(ranks, 4), where, "nccl").seconds(size))


def all_reduce(size, ranks):
    return collective("all_reduce", size, ranks)


def test_gradients_after_backward():
    """One message: nothing is hidden."""
    plan = Plan(dp=4, synchronisation=synchronisation("one_message"))
    found = predicted(plan)
    message = all_reduce(GRADIENTS, 4)
    assert found.step_seconds == pytest.approx(8 * T + UPDATE + LAUNCH + message)
    assert found.exposed_communication_seconds == pytest.approx(message)
    assert found.breakdown.hidden_communication_seconds == pytest.approx(0.0)
    assert found.losses["network"] == pytest.approx(message)
    assert found.efficiency == pytest.approx((8 * T + UPDATE) / found.step_seconds)
    assert found.samples_per_step == 4


def test_gradients_of_each_layer_hide_under_earlier_ones():
    """Wait-free: the last layer's message starts 2 t into backward; the first one's at its end."""
    plan = Plan(dp=4, synchronisation=synchronisation("per_tensor"))
    found = predicted(plan)
    message = all_reduce(GRADIENTS / 3, 4)
    assert message < T
    assert found.step_seconds == pytest.approx(8 * T + UPDATE + 3 * LAUNCH + message)
    assert found.breakdown.hidden_communication_seconds == pytest.approx(2 * message)
    slow = CLUSTER.with_nodes(4)
    across = predicted(replace(plan, dp=16), slow)
    message = float(
        collective_cost("all_reduce", Group(16, 4), slow, "nccl").seconds(GRADIENTS / 3)
    )
    assert message > 2 * T
    # The link is the bottleneck from the first gradient on.
    assert across.step_seconds == pytest.approx(5 * T + LAUNCH + 3 * message + UPDATE)


def test_buckets():
    """A first bucket of one tensor, then one of two, which is ready at the end of backward."""
    size = GRADIENTS / 3
    own = Synchronisation(first_bytes=size, bucket_bytes=2 * size)
    found = predicted(Plan(dp=4, synchronisation=own))
    last = all_reduce(2 * size, 4)
    assert found.step_seconds == pytest.approx(8 * T + UPDATE + 2 * LAUNCH + last)
    assert found.breakdown.hidden_communication_seconds == pytest.approx(all_reduce(size, 4))


def test_matrices_divided_by_their_outputs():
    """tp 2: half of each product; the inputs of the second and third matrix are gathered."""
    found = predicted(Plan(tp=2))
    tensor = ROWS * WIDTH * 2
    gathered = 2 * collective("gather_features", tensor, 2)
    scattered = 2 * collective("scatter_features", tensor, 2)
    assert found.step_seconds == pytest.approx(4 * T + UPDATE / 2 + gathered + scattered)
    assert found.losses["links within a replica"] == pytest.approx(gathered + scattered)
    assert float(found.memory.weights_bytes) == PARAMETERS


@pytest.mark.parametrize("zero", [1, 2])
def test_sharded_optimizer(zero):
    """Reduce-scatter, update of a quarter, all-gather of the weights."""
    plan = Plan(dp=4, zero=zero, synchronisation=synchronisation("one_message"))
    both = collective("reduce_scatter", GRADIENTS, 4) + collective("all_gather", GRADIENTS, 4)
    expected = 8 * T + LAUNCH + UPDATE / 4 + both
    assert predicted(plan).step_seconds == pytest.approx(expected)
    hidden = replace(plan, synchronisation=synchronisation("per_tensor"))
    scatter = collective("reduce_scatter", GRADIENTS / 3, 4)
    expected = 8 * T + 3 * LAUNCH + UPDATE / 4 + scatter + collective("all_gather", GRADIENTS, 4)
    assert predicted(hidden).step_seconds == pytest.approx(expected)


def test_sharded_weights():
    """The first gather and the last reduce-scatter are exposed, all others hide."""
    found = predicted(Plan(dp=4, zero=3))
    gather = collective("all_gather", GRADIENTS / 3, 4)
    scatter = collective("reduce_scatter", GRADIENTS / 3, 4)
    expected = gather + 8 * T + 3 * LAUNCH + scatter + UPDATE / 4
    assert found.step_seconds == pytest.approx(expected)
    assert found.exposed_communication_seconds == pytest.approx(gather + scatter)
    # Each weight is gathered twice.
    assert found.breakdown.hidden_communication_seconds == pytest.approx(5 * gather + 2 * scatter)


def test_recomputation_repeats_forward():
    found = predicted(Plan(recompute=Recompute.FULL))
    assert found.step_seconds == pytest.approx(8 * T + 3 * T + UPDATE)
    assert found.losses["recomputation"] == pytest.approx(3 * T)
    assert found.ideal_seconds == pytest.approx(8 * T + UPDATE)


def test_corrections_of_computing_overhead_and_bandwidth():
    plan = Plan(dp=4, synchronisation=synchronisation("one_message"))
    message = all_reduce(GRADIENTS, 4)
    own = StepCorrections(1.5, 0.0, None, 0.0, 0.5, 0.25)
    found = predicted(plan, corrections=own)
    expected = 1.5 * 8 * T + UPDATE + LAUNCH + 2 * message + 0.25
    assert found.step_seconds == pytest.approx(expected)


def test_unhidden_communication():
    """Half of the hidden 2 messages lengthens the step."""
    plan = Plan(dp=4, synchronisation=synchronisation("per_tensor"))
    calm = predicted(plan).step_seconds
    shown = predicted(plan, corrections=replace(NOTHING, unhidden_share=0.5)).step_seconds
    message = all_reduce(GRADIENTS / 3, 4)
    assert shown - calm == pytest.approx(2 * message * 0.5)


@pytest.mark.parametrize(
    ("schedule", "hops"), [(PipelineSchedule.GPIPE, 4), (PipelineSchedule.ONE_F_ONE_B, 6)]
)
def test_pipeline_of_three_stages(schedule, hops):
    """Forward t, backward t, 2 t, 2 t; three micro-batches; drawn by hand.

    GPipe: 2 t to the last stage, its 3 t forward and 6 t backward, 2 t and t back. 1F1B takes 14 t
    too, but its longest path turns around twice: the third forward of the second stage waits for
    the first backward.
    """
    found = predicted(Plan(pp=3, micro_batch=1, pipeline=schedule), CLUSTER.shaped(1, 3), batch=3)
    hop = collective("point_to_point", ROWS * WIDTH * 2, 2)
    assert hop < T / 3
    assert found.step_seconds == pytest.approx(14 * T + hops * hop + UPDATE / 3)
    assert found.losses["pipeline bubble"] > 0
    assert float(found.memory.weights_bytes) == pytest.approx(2 * PARAMETERS / 3)


@pytest.mark.parametrize(
    "schedule", [PipelineSchedule.ONE_F_ONE_B, PipelineSchedule.ZERO_BUBBLE, PipelineSchedule.GPIPE]
)
def test_gradients_of_a_pipeline_are_sent_once(schedule):
    """One message per stage, after the last micro-batch."""
    plan = Plan(dp=2, pp=2, micro_batch=1, pipeline=schedule)
    plan = replace(plan, synchronisation=synchronisation("one_message"))
    found = predicted(plan, CLUSTER.shaped(1, 4), batch=4)
    sent = [task for task in found.step.tasks if task.resource == "network"]
    assert sorted(task.size_bytes for task in sent) == [GRADIENTS / 3, GRADIENTS * 2 / 3]
    ends = [start + task.seconds for task, start in found.step.on("network")]
    assert max(ends) > 0.9 * found.step_seconds - UPDATE


@pytest.mark.parametrize(("last", "fullest"), [(1, 2), (3, 3)])
def test_pipeline_stages_of_unequal_blocks(last, fullest):
    """Blocks that cost 1, 1, 1, 1 are cut 2 + 2; 1, 1, 1, 3 are cut 3 + 1."""
    sources = ("x", *(f"layer.{i}.matrix" for i in range(3)))
    nodes = tuple(
        Node(
            f"layer.{i}.matrix",
            ops.Linear(WIDTH * (last if i == 3 else 1), bias=False),
            (source,),
        )
        for i, source in enumerate(sources)
    )
    graph = Graph("unequal", {"x": InputSpec((ROWS, WIDTH))}, nodes, nodes[-1].name)
    found = predict(
        Workload(graph, 4, precision="bf16", optimizer="sgd"),
        CLUSTER.shaped(1, 2),
        Plan(pp=2, micro_batch=1, framework=BARE),
        corrections=NOTHING,
        efficiency=IDEAL,
    )
    assert float(found.memory.weights_bytes) == pytest.approx(fullest * WIDTH * WIDTH * 2)


def test_memory_by_hand():
    """bf16 weights and gradients, fp32 master copy; inputs of the three matrices."""
    memory = predicted().memory
    assert float(memory.weights_bytes) == 2 * PARAMETERS
    assert float(memory.gradients_bytes) == 2 * PARAMETERS
    assert float(memory.optimizer_bytes) == 4 * PARAMETERS
    assert float(memory.activations_bytes) == pytest.approx(3 * ROWS * WIDTH * 2)
    sharded = predicted(Plan(dp=4, zero=3)).memory
    assert float(sharded.weights_bytes) == pytest.approx(2 * PARAMETERS / 4)
    assert float(sharded.gradients_bytes) == pytest.approx(2 * PARAMETERS / 4)
    assert float(sharded.optimizer_bytes) == pytest.approx(4 * PARAMETERS / 4)


# Numbers of a prediction.


def test_rates_of_a_prediction():
    found = replace(
        predicted(Plan(dp=4)),
        step_seconds=0.5,
        interval=ThroughputInterval(0.8, 1.25, 0.1),
        training_flops=100e12,
    )
    vars(found)["step_losses"] = replace(found.step_losses, ideal=0.4)
    assert found.samples_per_second == 8.0
    assert found.samples_per_second_interval == pytest.approx((6.4, 10.0))
    assert found.step_interval_seconds == pytest.approx((0.4, 0.625))
    assert found.perfect_samples_per_second == pytest.approx(10.0)
    assert found.efficiency == pytest.approx(0.8)
    assert found.utilisation == pytest.approx(200 / 400)
    half = replace(found)
    vars(half)["executed_share"] = 0.5
    assert half.utilisation == pytest.approx(0.25)
    assert found.tokens_per_second is None
    assert found.price_per_million_samples is None
    # 4 devices at 9 per hour are 0.01 per second, 8 samples per second.
    assert found.with_price(9.0).price_per_million_samples == pytest.approx(0.01 / 8 * 1e6)
    hidden = found.breakdown.hidden_communication_seconds
    assert found.unhidden_samples_per_second == pytest.approx(4 / (0.5 + hidden))


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (17_912.0, "17,900"),
        (8.834, "8.83"),
        (88.34, "88.3"),
        (999.6, "1,000"),
        (0.01234, "0.0123"),
        (0.0, "0.0"),
        (123.4, "123"),
    ],
)
def test_three_digits(value, text):
    assert rate_text(value) == text


def test_bound_by_arithmetic_from_ninety_percent():
    found = predicted(Plan(dp=4, synchronisation=synchronisation("one_message")))
    for efficiency, bound in ((0.9, "arithmetic"), (0.899, "network")):
        slower = replace(found, step_seconds=found.ideal_seconds / efficiency)
        assert bound_by(slower).startswith(bound)


def test_table_names_plans_that_do_not_fit():
    found = predicted(Plan(dp=4))
    large = replace(found, memory=replace(found.memory, weights_bytes=1e12))

    def titles(*predictions):
        return [column.title for column in prediction_table(predictions).columns]

    assert "fits" not in titles(found, found)
    assert "fits" in titles(found, large)
    assert (found.fits, large.fits) == (True, False)
    assert "price / 1M samples" not in titles(found)
    assert "price / 1M samples" in titles(found, found.with_price(2.0))
    assert "tokens/s" not in titles(found)
    assert "does NOT fit" in str(large)
    assert all(len(line) <= 100 and line == line.rstrip() for line in str(large).splitlines())
    assert "does NOT fit" not in str(found)


def test_memory_of_an_unknown_device():
    unknown = replace(CLUSTER, device=replace(DEVICE, memory_bytes=None)).shaped(1, 1)
    found = predict(Workload(matrices(), 1, None, "bf16"), unknown, Plan())
    text = str(found)
    assert (found.fits, found.fits_probability) == (None, None)
    assert "device memory unknown" in text
    assert "fit" not in text.replace("benefit", "")


def test_two_devices_have_a_link():
    assert "links       nv in a node" in str(predicted(Plan(dp=2)))
    assert "links" not in str(predicted(Plan()))


def test_contention_counts_the_processes_of_the_plan():
    """Two processes on a node of four devices contend as two, not as four."""
    two, four = Colocated(1.5), Colocated(4.0)
    measured = Evidence(colocation={2: two, 4: four})
    job = prepare(Workload(matrices(), 1, precision="bf16"), CLUSTER.shaped(1, 2), Plan(dp=2))
    on_four = replace(job, cluster=CLUSTER.shaped(1, 4), evidence=measured)
    assert colocated_processes(on_four) is two
    assert colocated_processes(replace(on_four, plan=Plan(dp=8))) is four
