"""Clocks against tasks: the same telling takes the same time, of numbers and of arrays."""

from functools import partial

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from paceline.predictor.plan.sync_policy import SYNCHRONISATIONS, synchronisation
from paceline.predictor.schedule.array_schedule import ArraySchedule
from paceline.predictor.schedule.ddp_step import schedule_ddp
from paceline.predictor.schedule.fsdp_step import schedule_fsdp, schedule_zero12
from paceline.predictor.schedule.step_costs import GradientExchange, LayerTime, StepCosts
from paceline.predictor.schedule.task_schedule import COMPUTE, NETWORK, TaskSchedule
from paceline.step import Phase

SECONDS = st.floats(0.0, 2.0)
LAYERS = st.lists(
    st.tuples(SECONDS, SECONDS, st.sampled_from([0.0, 1e6, 4e7]), SECONDS, SECONDS, SECONDS),
    min_size=1,
    max_size=6,
)
STATIC = ("bucketed", "none", "one_message", "per_tensor")
"""Policies whose messages are the same whatever the times."""


def exchange_of(policy, rate, pull=None, copies=None):
    return GradientExchange(
        synchronisation(policy),
        lambda size: 0.01 + 2 * rate * size,
        lambda size: 0.01 + rate * size,
        lambda size: 0.01 + rate * size,
        pull=pull,
        copies_sum=copies,
        shards=1 if copies is None else 2,
        sums_overlap=copies is not None,
    )


def tell(builder, stage, layers, exchange, costs, micro_batches):
    """A step of any shard stage; each layer is a unit and has as many weights as gradients."""
    weights = [layer.gradient_bytes for layer in layers]
    if stage == 0 or exchange is None:
        schedule_ddp(builder, layers, exchange, costs, micro_batches=micro_batches)
    elif stage == 3:
        units = [range(number, number + 1) for number in range(len(layers))]
        told = (builder, layers, exchange, costs, weights, units)
        schedule_fsdp(*told, micro_batches=micro_batches)
    else:
        told = (builder, layers, exchange, costs, weights)
        schedule_zero12(*told, scatters_each=stage == 2, micro_batches=micro_batches)


def by_tasks(stage, layers, exchange, costs, micro_batches):
    builder = TaskSchedule(costs.interference)
    tell(builder, stage, layers, exchange, costs, micro_batches)
    return builder.build().seconds


def by_clocks(stage, layers, exchange, costs, micro_batches):
    clocks = ArraySchedule(costs.interference)
    tell(clocks, stage, layers, exchange, costs, micro_batches)
    return clocks.seconds


@settings(max_examples=300, deadline=None)
@given(
    layers=LAYERS,
    policy=st.sampled_from(sorted(SYNCHRONISATIONS)),
    stage=st.integers(0, 3),
    rate=st.sampled_from([0.0, 1e-9, 1e-7]),
    way=st.sampled_from(["alone", "reduced", "served", "in groups"]),
    micro_batches=st.integers(1, 4),
    interference=st.sampled_from([0.0, 0.03, 0.5]),
    overlapped=st.booleans(),
    beside=st.tuples(SECONDS, SECONDS, SECONDS, SECONDS, st.sampled_from([0.0, 0.02])),
)
@example(  # No gradients at all: nothing is sent, the next input follows backward.
    layers=[(1.0, 2.0, 0.0, 0.0, 0.0, 0.0)],
    policy="priority",
    stage=0,
    rate=1e-9,
    way="reduced",
    micro_batches=1,
    interference=0.0,
    overlapped=False,
    beside=(0.5, 0.0, 0.0, 0.0, 0.0),
)
def test_clocks_end_when_tasks_do(
    layers, policy, stage, rate, way, micro_batches, interference, overlapped, beside
):
    input_seconds, copy, update, overhead, launch = beside
    costs = StepCosts(input_seconds, copy, overlapped, update, launch, overhead, interference)
    exchange = {
        "alone": None,
        "reduced": exchange_of(policy, rate),
        "served": exchange_of(policy, rate, pull=lambda size: rate * size),
        "in groups": exchange_of(policy, rate, copies=lambda size: rate * size),
    }[way]
    timed = [LayerTime(f"layer{n}", *own) for n, own in enumerate(layers)]
    told = (stage, timed, exchange, costs, micro_batches)
    assert by_clocks(*told) == pytest.approx(by_tasks(*told), rel=1e-9, abs=1e-12)


@settings(max_examples=100, deadline=None)
@given(
    columns=st.lists(LAYERS.filter(lambda own: len(own) >= 3), min_size=2, max_size=4),
    policy=st.sampled_from(STATIC),
    stage=st.integers(0, 3),
    rates=st.lists(st.floats(0.0, 1e-7), min_size=4, max_size=4),
    counts=st.lists(st.integers(1, 4), min_size=4, max_size=4),
    interference=st.sampled_from([0.0, 0.3]),
)
@pytest.mark.thorough
def test_arrays_are_the_numbers_they_are_made_of(
    columns, policy, stage, rates, counts, interference
):
    sizes = [own[2] for own in columns[0][:3]]
    steps = [
        [
            LayerTime("", own[0], own[1], size, *own[3:])
            for own, size in zip(each[:3], sizes, strict=True)
        ]
        for each in columns
    ]
    costs = StepCosts(0.1, 0.2, False, 0.3, 0.01, 0.4, interference)
    fields = ("forward_seconds", "backward_seconds", "gradient_bytes", "recompute_seconds")
    fields += ("forward_exchange_seconds", "backward_exchange_seconds")

    def column(number, field):
        if field == "gradient_bytes":
            return sizes[number]
        return np.array([[getattr(each[number], field)] for each in steps])

    together = [LayerTime("", *(column(number, field) for field in fields)) for number in range(3)]
    links, batches = np.array([rates]), np.array([counts])
    found = by_clocks(stage, together, exchange_of(policy, links), costs, batches)
    found = np.broadcast_to(found, (len(steps), 4))
    for (row, place), seconds in np.ndenumerate(found):
        alone = (stage, steps[row], exchange_of(policy, rates[place]), costs, counts[place])
        assert seconds == pytest.approx(by_tasks(*alone), rel=1e-9, abs=1e-12)


def test_many_configurations_are_worked_through_in_blocks():
    works, links = np.linspace(0.1, 2.0, 300)[:, None], np.linspace(0.0, 1.0, 200)[None, :]
    layers = [LayerTime("", works, 2 * works, 1e6) for _ in range(4)]

    def sent_on(link, size):
        return link + size / 1e7

    exchange = GradientExchange(synchronisation("per_tensor"), partial(sent_on, links))
    found = by_clocks(0, layers, exchange, StepCosts(interference=0.2), 1)
    assert found.shape == (300, 200)
    for row, place in ((0, 0), (41, 7), (150, 199), (299, 100)):
        work = float(works[row, 0])
        alone = [LayerTime("", work, 2 * work, 1e6) for _ in range(4)]
        one = GradientExchange(
            synchronisation("per_tensor"), partial(sent_on, float(links[0, place]))
        )
        assert found[row, place] == pytest.approx(
            by_tasks(0, alone, one, StepCosts(interference=0.2), 1)
        )


def test_what_is_ready_before_now_leaves_before_now():
    clocks = ArraySchedule()
    early = clocks.compute("", Phase.FORWARD, 1.0)
    clocks.compute("", Phase.FORWARD, 5.0)
    clocks.send("", 2.0, 0.0, (early,))
    assert clocks.free_at(NETWORK) == pytest.approx(3.0)
    assert clocks.free_at(COMPUTE) == pytest.approx(6.0)
