from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.predictor.plan.sync_policy import synchronisation
from paceline.predictor.schedule.device_step import DeviceStep
from paceline.predictor.schedule.fsdp_step import schedule_fsdp, schedule_zero12
from paceline.predictor.schedule.step_costs import GradientExchange, LayerTime, StepCosts
from paceline.predictor.schedule.task_schedule import REPLICA_LINK, TaskSchedule
from paceline.step import Phase, breakdown

LAYERS = [LayerTime(f"layer{i}", 0.010, 0.020, 4e6) for i in range(6)]
WEIGHTS = [4e6] * 6
UNITS = [range(2), range(2, 4), range(4, 6)]
COMPUTE = 6 * 0.030


def exchange(rate, policy="bucketed"):
    return GradientExchange(
        synchronisation(policy),
        lambda size: 2e-4 + 2 * rate * size,
        lambda size: 1e-4 + rate * size,
        lambda size: 1e-4 + rate * size,
    )


def sharded_update_step(*told, **options):
    """Stages 1 and 2 as tasks."""
    builder = TaskSchedule()
    schedule_zero12(builder, *told, **options)
    return builder.build()


def fully_sharded_step(*told, **options):
    """Stage 3 as tasks."""
    builder = TaskSchedule()
    schedule_fsdp(builder, *told, **options)
    return builder.build()


def names(step, word):
    return [task.name for task, _ in step.on("network") if task.name.startswith(word)]


def test_stage_1_scatters_under_backward_and_gathers_after_the_update():
    costs = StepCosts(update_seconds=0.01)
    step = sharded_update_step(LAYERS, exchange(1e-10), costs, WEIGHTS, scatters_each=False)
    assert len(names(step, "reduce-scatter")) == 2
    (gather,) = [(task, start) for task, start in step.on("network") if "all-gather" in task.name]
    assert gather[0].size_bytes == 24e6
    (update,) = [
        start + task.seconds for task, start in step.on("compute") if task.phase is Phase.UPDATE
    ]
    assert gather[1] == pytest.approx(update)


def test_stage_2_scatters_in_every_micro_batch():
    def step(scatters_each):
        return sharded_update_step(
            LAYERS,
            exchange(1e-10),
            StepCosts(),
            WEIGHTS,
            scatters_each=scatters_each,
            micro_batches=4,
        )

    assert len(names(step(True), "reduce-scatter")) == len(names(step(False), "reduce-scatter")) + 3


def test_full_sharding_gathers_each_unit_before_forward_and_before_backward():
    step = fully_sharded_step(LAYERS, exchange(1e-10), StepCosts(), WEIGHTS, UNITS)
    assert len(names(step, "all-gather")) == 2 * len(UNITS)
    assert len(names(step, "reduce-scatter")) == len(UNITS)
    assert step.seconds == pytest.approx(COMPUTE, rel=0.02)


def test_on_a_slow_link_full_sharding_moves_half_as_much_again_as_plain():
    slow = 1e-7
    sharded = fully_sharded_step(LAYERS, exchange(slow), StepCosts(), WEIGHTS, UNITS)
    plain = DeviceStep(LAYERS, exchange(slow), StepCosts()).tasks()

    def sent(step):
        return sum(task.seconds for task, _ in step.on("network"))

    assert sent(sharded) / sent(plain) == pytest.approx(1.5, rel=0.01)


def test_only_two_units_are_held_at_a_time():
    step = fully_sharded_step(LAYERS, exchange(1e-12), StepCosts(), WEIGHTS, UNITS)
    gathers = [start for task, start in step.on("network") if "all-gather" in task.name]
    first_unit_done = 2 * 0.010
    assert gathers[2] >= first_unit_done - 1e-9, "the third waits for the first to be let go"


@pytest.mark.parametrize(("most", "begins"), [(16e6, 0), (15e6, 1)])
def test_a_unit_is_gathered_ahead_only_within_the_limit_of_the_program(most, begins):
    """Units of 8 MB: two of them exceed 15 MB, so each waits for the end of the one before."""
    link = replace(exchange(1e-10), most_gathered_bytes=most)
    step = fully_sharded_step(LAYERS, link, StepCosts(), WEIGHTS, UNITS)
    gathers = [start for task, start in step.on("network") if "all-gather" in task.name]
    gather = link.gather(8e6)
    assert gathers[1] == pytest.approx(gather + begins * 2 * 0.010)
    assert step.seconds >= COMPUTE + begins * 2 * len(UNITS) * gather - 1e-12


def test_recomputation_by_tensor_gathers_each_unit_twice_in_backward():
    once, twice = (
        fully_sharded_step(
            LAYERS, replace(exchange(1e-7), backward_gathers=n), StepCosts(), WEIGHTS, UNITS
        )
        for n in (1, 2)
    )
    gather = exchange(1e-7).gather(8e6)
    assert twice.seconds - once.seconds == pytest.approx(len(UNITS) * gather, rel=1e-6)


@given(st.integers(1, 5), st.floats(0, 1e-8))
def test_micro_batches_multiply_the_work_of_full_sharding(micro_batches, rate):
    step = fully_sharded_step(
        LAYERS, exchange(rate), StepCosts(), WEIGHTS, UNITS, micro_batches=micro_batches
    )
    one = fully_sharded_step(LAYERS, exchange(rate), StepCosts(), WEIGHTS, UNITS)
    assert step.seconds == pytest.approx(micro_batches * one.seconds, rel=1e-6)


@pytest.mark.parametrize("micro_batches", [2, 4, 8])
def test_accumulation_multiplies_every_phase_of_full_sharding(micro_batches):
    link = exchange(1e-9)
    one, many = (
        breakdown(fully_sharded_step(LAYERS, link, StepCosts(), WEIGHTS, UNITS, micro_batches=n))
        for n in (1, micro_batches)
    )
    for phase, seconds in one.exposed.items():
        assert many.exposed[phase] == pytest.approx(micro_batches * seconds)
    assert many.hidden_communication_seconds == pytest.approx(
        micro_batches * one.hidden_communication_seconds
    )


def test_accumulation_sends_gradients_once():
    once = DeviceStep(LAYERS, exchange(1e-9), StepCosts(), micro_batches=4).tasks()
    assert len(names(once, "all-reduce")) == 2
    assert once.seconds >= 4 * COMPUTE


def test_exchanges_within_a_replica_are_waited_for():
    exchanging = [
        LayerTime("a", 0.01, 0.02, 0.0, 0.005, 0.003, 0.004),
        LayerTime("b", 0.01, 0.02),
    ]
    step = DeviceStep(exchanging, None, StepCosts()).tasks()
    assert step.seconds == pytest.approx(0.06 + 0.005 + 0.003 + 0.004)


def test_exchanges_of_all_micro_batches_are_on_their_link():
    """Three micro-batches through two layers: 3 x 2 x (0.25 + 0.5) s, whatever gradients take."""
    layers = [LayerTime(f"l{i}", 1.0, 2.0, 8.0, 0.0, 0.25, 0.5) for i in range(2)]
    sent = GradientExchange(synchronisation("bucketed"), lambda size: size)
    step = fully_sharded_step(
        layers, sent, StepCosts(), [8.0, 8.0], [range(1), range(1, 2)], micro_batches=3
    )
    within = sum(task.seconds for task, _ in step.on(REPLICA_LINK))
    assert within == pytest.approx(3 * 2 * 0.75)
    assert breakdown(step).exposed_communication_seconds > within
