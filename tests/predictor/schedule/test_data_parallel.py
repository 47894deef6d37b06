import pytest
from builders import data_parallel_step
from hypothesis import given
from hypothesis import strategies as st

from paceline.predictor.plan.sync_policy import SYNCHRONISATIONS, Synchronisation, synchronisation
from paceline.predictor.schedule.step_costs import LayerTime
from paceline.step import Phase, breakdown
from paceline.step.schedule import schedule

LAYERS = st.lists(
    st.builds(
        LayerTime,
        name=st.sampled_from("abc"),
        forward_seconds=st.floats(0, 0.1),
        backward_seconds=st.floats(0, 0.1),
        gradient_bytes=st.one_of(st.just(0.0), st.floats(1, 1e8)),
    ),
    min_size=1,
    max_size=12,
)
POLICIES = st.sampled_from(sorted(SYNCHRONISATIONS))


def affine(latency, seconds_per_byte):
    return lambda size: latency + seconds_per_byte * size


def compute_seconds(layers):
    return sum(layer.forward_seconds + layer.backward_seconds for layer in layers)


THREE = [
    LayerTime("conv1", 0.010, 0.020, 1e6),
    LayerTime("conv2", 0.010, 0.020, 1e6),
    LayerTime("fc", 0.005, 0.010, 8e6),
]


def test_naive_sgd_adds_the_sum_of_all_messages():
    step = data_parallel_step(THREE, synchronisation("none"), affine(0.001, 1e-9))
    assert step.seconds == pytest.approx(compute_seconds(THREE) + 3 * 0.001 + 10e6 * 1e-9)


def test_per_tensor_exposes_what_the_recurrence_says():
    step = data_parallel_step(THREE, synchronisation("per_tensor"), affine(0.001, 4e-9))
    # fc: 10..43 ms; conv2 ready at 30, sent 43..48; conv1 ready at 50, sent 50..55; backward 50.
    assert breakdown(step).exposed_communication_seconds == pytest.approx(0.005)


def test_prefetched_input_bounds_the_step_and_read_input_lengthens_it():
    sync, ring = synchronisation("bucketed"), affine(0, 0)
    assert data_parallel_step(THREE, sync, ring, input_seconds=1.0).seconds == pytest.approx(1.0)
    serial = data_parallel_step(THREE, sync, ring, input_seconds=1.0, input_overlapped=False)
    assert serial.seconds == pytest.approx(1.0 + compute_seconds(THREE))


def test_priority_lets_the_first_layer_overtake():
    big_last = [LayerTime("first", 0.01, 0.01, 1e6), LayerTime("last", 0.01, 0.01, 100e6)]
    step = data_parallel_step(big_last, synchronisation("priority"), affine(0, 1e-9))
    order = [task.layer for task, _ in step.on("network")]
    assert order.index("first") < len(order) - 1
    assert order[-1] == "last"


def test_split_gathers_under_forward():
    step = data_parallel_step(THREE, synchronisation("split"), affine(0.001, 1e-9))
    names = [task.name for task, _ in step.on("network")]
    assert [name.split()[0] for name in names] == ["all-gather"] * 2 + ["reduce-scatter"] * 2


def test_local_sgd_pays_its_messages_rarely():
    always = data_parallel_step(THREE, synchronisation("none"), affine(0.01, 0))
    rarely = data_parallel_step(
        THREE, Synchronisation(synchronisation("none").policy, every_steps=10), affine(0.01, 0)
    )
    assert rarely.seconds - compute_seconds(THREE) == pytest.approx(
        (always.seconds - compute_seconds(THREE)) / 10
    )


@given(LAYERS, POLICIES)
def test_one_worker_communicates_nothing(layers, name):
    step = data_parallel_step(layers, synchronisation(name), None, message_overhead_seconds=1.0)
    assert not [task for task in step.tasks if task.phase is Phase.COMMUNICATE]
    assert step.seconds == pytest.approx(compute_seconds(layers))


@given(LAYERS, POLICIES, st.floats(0, 1e-3), st.floats(0, 1e-8))
def test_never_below_compute_or_the_link_never_above_their_sum(layers, name, latency, rate):
    step = data_parallel_step(layers, synchronisation(name), affine(latency, rate))
    network = sum(task.seconds for task, _ in step.on("network"))
    slack = 1e-9
    assert step.seconds >= compute_seconds(layers) - slack
    assert step.seconds >= network - slack
    assert step.seconds <= compute_seconds(layers) + network + slack


@given(LAYERS, POLICIES, st.floats(1e-10, 1e-8), st.floats(1, 10))
def test_a_faster_link_never_slows_a_step(layers, name, rate, faster):
    sync = synchronisation(name)
    slow = data_parallel_step(layers, sync, affine(0, rate)).seconds
    # A priority queue cannot recall a piece that it began a moment before a better one came.
    slack = sync.piece_bytes * rate if name == "priority" else 0.0
    fast = data_parallel_step(layers, sync, affine(0, rate / faster)).seconds
    assert fast <= slow + slack + 1e-9


@given(LAYERS, POLICIES, st.floats(0.1, 10))
def test_scaling_every_time_scales_the_step(layers, name, k):
    sync = synchronisation(name)
    scaled = [
        LayerTime(x.name, x.forward_seconds * k, x.backward_seconds * k, x.gradient_bytes)
        for x in layers
    ]
    once = data_parallel_step(layers, sync, affine(1e-3, 1e-9), update_seconds=0.01)
    times = data_parallel_step(scaled, sync, affine(1e-3 * k, 1e-9 * k), update_seconds=0.01 * k)
    assert times.seconds == pytest.approx(k * once.seconds, rel=1e-6, abs=1e-9)


@given(LAYERS, st.floats(1e-5, 1e-3), st.floats(0, 1e-8), st.floats(0, 1e-3))
def test_merging_is_never_worse_than_sending_alone(layers, latency, rate, overhead):
    def seconds(name):
        return data_parallel_step(
            layers,
            synchronisation(name),
            affine(latency, rate),
            message_overhead_seconds=overhead,
        ).seconds

    assert seconds("merged") <= seconds("per_tensor") + 1e-9
    assert seconds("merged") <= seconds("one_message") + 1e-9
    assert seconds("merged") <= seconds("bucketed") + 1e-9


@given(LAYERS, POLICIES, st.floats(0, 1e-8), st.floats(0, 0.5))
def test_starts_are_those_of_the_scheduler(layers, name, rate, interference):
    step = data_parallel_step(
        layers,
        synchronisation(name),
        affine(1e-4, rate),
        input_seconds=0.01,
        update_seconds=0.01,
        message_overhead_seconds=1e-4,
        interference=interference,
    )
    assert step.starts == pytest.approx(schedule(step.tasks).starts)


@given(LAYERS, POLICIES, st.floats(0, 1e-8), st.floats(0, 0.5), st.floats(0, 0.5))
def test_interference_costs_at_most_its_share_of_computing(layers, name, rate, less, more):
    def seconds(interference):
        return data_parallel_step(
            layers, synchronisation(name), affine(1e-4, rate), interference=interference
        ).seconds

    assert seconds(0.0) - 1e-9 <= seconds(less)
    assert seconds(less + more) <= (1 + less + more) * seconds(0.0) + 1e-9
