"""Training runs by hand: Young (1974) and Daly (2006), steps, price and energy."""

import math
from dataclasses import replace

import pytest

import paceline
from paceline.constants import number
from paceline.errors import InputError
from paceline.predictor.search.budget import Limits
from paceline.predictor.target_efficiency import BandwidthNeeded
from paceline.predictor.training_run import (
    IMAGENET_SAMPLES,
    Interruptions,
    RunConditions,
    TrainingRun,
    samples_of,
)
from paceline.predictor.training_run_tables import (
    bandwidth_parts,
    describe_limits,
    training_json,
    training_table,
)
from paceline.predictor.uncertainty.intervals import ThroughputInterval
from paceline.spec.knob import check_options
from paceline.spec.training_options import TrainingOptions

HOUR, DAY = 3600.0, 86400.0


# Checkpoints.


def test_daly_s_higher_order_interval():
    """Daly 2006: sqrt(2 c M) (1 + sqrt(c/2M)/3 + (c/2M)/9) - c.

    c = 60 s, M = 1 day: c/2M = 3.4722e-4, so 3219.938 * (1 + 6.2113e-3 + 3.858e-5) - 60.
    """
    assert Interruptions(DAY, 60.0, 0.0).best_interval == pytest.approx(3180.06, abs=0.01)


@pytest.mark.parametrize(("checkpoint", "expected"), [(200.0, 100.0), (300.0, 100.0)])
def test_checkpoints_longer_than_twice_the_time_between_failures(checkpoint, expected):
    """From c = 2 M on, Daly's optimum is M."""
    assert Interruptions(100.0, checkpoint, 0.0).best_interval == expected
    just_below = Interruptions(100.0, 199.9, 0.0).best_interval
    assert just_below == pytest.approx(200 * (1 + 1 / 3 + 1 / 9) - 200, rel=0.01)


def test_goodput_of_daly_s_model():
    """M e^(R/M) (e^((tau + c)/M) - 1) of wall time for tau of training."""
    stops = Interruptions(1000.0, 10.0, 50.0)
    expected = 100.0 / (1000.0 * math.exp(0.05) * (math.exp(0.11) - 1.0))
    assert stops.goodput(100.0) == pytest.approx(expected)
    assert stops.goodput() == stops.goodput(stops.best_interval)


def test_jobs_that_never_finish():
    assert Interruptions(1.0, 0.1, 501.0).goodput(1.0) == 0.0
    assert Interruptions(1.0, 0.1, 0.0).goodput(501.0) == 0.0
    assert Interruptions(1.0, 0.1, 499.0).goodput(1.0) > 0.0


@pytest.mark.parametrize("value", [0.0, -1.0, math.inf, math.nan, 1e-320])
@pytest.mark.parametrize(
    "name",
    [
        *("mtbf", "checkpoint_time", "restart_time", "checkpoint_every"),
        *("tokens", "epochs", "samples_per_epoch"),
    ],
)
def test_times_and_amounts_must_be_positive(name, value):
    if name == "restart_time" and value in (0.0, 1e-320):
        assert check_options(TrainingOptions, {name: value}, "training") == {name: value}
    else:
        with pytest.raises(InputError, match=name):
            check_options(TrainingOptions, {name: value}, "training")


# Runs: a step of 2 s on 4 x 8 devices, 256 sequences of 512 tokens.


def a_prediction(**changes):
    found = paceline.predict(
        "gpt_h1024_l4_a16", "p4d.24xlarge", batch=8, seq=512, precision="bf16", nodes=4
    )
    known = {"step_seconds": 2.0, "interval": ThroughputInterval(0.8, 1.25, 0.1)}
    return replace(found, **{**known, **changes})


CALM = RunConditions(without_failures=True, price=3.0)


def test_steps_time_and_price_without_failures():
    run = TrainingRun(a_prediction(), 256_001.0, CALM)
    assert run.steps == 1001, "the last one is partial"
    assert run.tokens == 256_001 * 512
    assert run.seconds.value == pytest.approx(2002.0)
    assert (run.seconds.low, run.seconds.high) == pytest.approx((2002 / 1.25, 2002 / 0.8))
    assert run.device_hours.value == pytest.approx(2002 * 32 / 3600)
    assert run.price.value == pytest.approx(3 * 2002 * 32 / 3600)
    assert run.price.high / run.price.value == pytest.approx(1.25)
    assert (run.failures, run.checkpoint_every_seconds) == (0.0, None)
    assert run.goodput.value == run.goodput.low == run.goodput.high == 1.0
    assert "ignores failures" in run.notes[0]


def test_energy():
    """Rated power of 32 devices times hosts and cooling; the interval is wider than time's."""
    found = a_prediction()
    run = TrainingRun(found, 256_000.0, CALM)
    watts = 32 * found.cluster.device.power_watts * number("operation.power.overhead")
    assert run.energy_joules.value == pytest.approx(watts * 2000.0)
    wide = 1.645 * number("operation.power.spread")
    upper = math.hypot(math.log(1.25), wide)
    assert run.energy_joules.high / run.energy_joules.value == pytest.approx(math.exp(upper))
    lower = math.hypot(math.log(1.25), wide)
    assert run.energy_joules.value / run.energy_joules.low == pytest.approx(math.exp(lower))
    device = replace(found.cluster.device, power_watts=None)
    unknown = replace(found, cluster=replace(found.cluster, device=device))
    assert TrainingRun(unknown, 256_000.0, CALM).energy_joules is None


GIVEN = RunConditions(
    device_time_between_failures=32 * DAY, checkpoint=60.0, restart=600.0, price=1.0
)


def test_failures_of_a_job():
    run = TrainingRun(a_prediction(), 256_000.0, GIVEN)
    assert run.interruptions == Interruptions(DAY, 60.0, 600.0)
    assert run.checkpoint_every_seconds == pytest.approx(3180.06, abs=0.01)
    goodput = run.interruptions.goodput()
    assert run.goodput.value == run.goodput.low == run.goodput.high == pytest.approx(goodput)
    assert run.seconds.value == pytest.approx(2000.0 / goodput)
    assert run.failures == pytest.approx(2000.0 / goodput / DAY)
    assert not any("assumes" in note for note in run.notes)
    every = replace(GIVEN, checkpoint_every=600.0)
    other = TrainingRun(a_prediction(), 256_000.0, every)
    assert other.checkpoint_every_seconds == 600.0
    assert other.goodput.value == pytest.approx(Interruptions(DAY, 60.0, 600.0).goodput(600.0))


def test_assumed_failures_widen_the_interval():
    run = TrainingRun(a_prediction(), 256_000.0, replace(GIVEN, device_time_between_failures=None))
    between = number("operation.failures.device_time") / 32
    assert run.interruptions.between_failures == pytest.approx(between)
    spread = math.exp(1.645 * number("operation.failures.spread"))
    every = run.interruptions.best_interval
    low, high = (
        Interruptions(between * factor, 60.0, 600.0).goodput(every)
        for factor in (1 / spread, spread)
    )
    assert (run.goodput.low, run.goodput.high) == pytest.approx((low, high))
    value = run.goodput.value
    assert run.seconds.high / run.seconds.value == pytest.approx(
        math.exp(math.hypot(math.log(1.25), math.log(value / low)))
    )
    assert run.seconds.value / run.seconds.low == pytest.approx(
        math.exp(math.hypot(math.log(1.25), math.log(high / value)))
    )
    assert "one failure in" in run.notes[0]


def test_checkpoint_of_weights_and_state():
    """bf16 weights and Adam: 2 + 12 bytes per parameter, written at the rate of all nodes."""
    found = a_prediction()
    run = TrainingRun(found, 1000.0, replace(GIVEN, checkpoint=None))
    size = 14 * found.workload.profile.parameters
    assert run.checkpoint_bytes == size
    rate = 4 * number("operation.checkpoint.bandwidth_of_a_node")
    expected = number("operation.checkpoint.least") + size / rate
    assert run.interruptions.checkpoint == pytest.approx(expected)


def test_jobs_that_only_restart():
    with pytest.raises(InputError, match="less than 1 %"):
        TrainingRun(a_prediction(), 1.0, replace(GIVEN, restart=100 * DAY))


def test_amount_of_training():
    text = a_prediction()
    assert samples_of(text, 5120.0, None, None) == 10.0
    assert samples_of(text, None, 2.0, 100.0) == 200.0
    for tokens, epochs in ((None, None), (1.0, 1.0)):
        with pytest.raises(InputError, match="missing or ambiguous"):
            samples_of(text, tokens, epochs, 1.0)
    with pytest.raises(InputError, match="samples per epoch is unknown"):
        samples_of(text, None, 1.0, None)
    images = paceline.predict("resnet50", "dgx-1", batch=32)
    assert samples_of(images, None, 90.0, None) == 90 * IMAGENET_SAMPLES == 90 * 1_281_167
    with pytest.raises(InputError, match="does not train on tokens"):
        samples_of(images, 1e9, None, None)
    small = paceline.predict("resnet20", "dgx-1", batch=32)
    with pytest.raises(InputError, match="samples per epoch is unknown"):
        samples_of(small, None, 90.0, None)


# Tables.


def cell(table, title, row=0):
    index = [column.title for column in table.columns].index(title)
    return table.texts_of(index)[row]


def test_table_of_a_run():
    table = training_table([TrainingRun(a_prediction(), 256_000.0, CALM)])
    assert cell(table, "nodes x GPUs") == "4x8"
    assert cell(table, "goodput") == "100.0"
    assert cell(table, "failures") == "0.0"
    assert cell(table, "checkpoint every") == "never"
    assert "1,000 steps" in table.title
    assert "131 M tokens" in table.title
    assert "steps" not in [column.title for column in table.columns]
    assert "h" in [column.unit for column in table.columns]


def test_long_runs_are_in_days():
    """More than three days of the longest run."""
    for days, unit in ((2.9, "h"), (3.1, "days")):
        runs = [TrainingRun(a_prediction(), 256.0 * DAY / 2 * d, CALM) for d in (0.5, days)]
        table = training_table(runs)
        assert unit in [column.unit for column in table.columns]
        assert "steps" in [column.title for column in table.columns]


def test_runs_that_do_not_fit_have_no_time():
    found = a_prediction()
    memory = replace(found.memory, weights_bytes=1e15)
    document = training_json(TrainingRun(replace(found, memory=memory), 256_000.0, CALM))
    assert document["fits"] is False
    assert document["seconds"] is document["price"] is document["failures"] is None
    fitting = training_json(TrainingRun(found, 256_000.0, CALM))
    assert fitting["seconds"] == pytest.approx({"value": 2000, "low_90": 1600, "high_90": 2500})
    assert (fitting["steps"], fitting["place"]) == (1000, "4x8")


def test_limits_by_estimate_or_interval():
    run = TrainingRun(a_prediction(), 256_000.0, CALM)
    assert "whole 90 % interval" in describe_limits(run, Limits(deadline=2500.0))
    assert "not by the upper end" in describe_limits(run, Limits(deadline=2499.0))


def test_bandwidth_needed_as_text():
    found = a_prediction()
    link = BandwidthNeeded("efa", "between nodes", 50e9, 0.8, 100e9, 0.9)
    (_, line) = bandwidth_parts(0.9, [(found, [link])])
    assert "80% now" in line
    assert line.endswith("2 times as much")
    enough = replace(link, needed=50e9)
    assert bandwidth_parts(0.9, [(found, [enough])])[1].endswith("is sufficient")
    never = replace(link, needed=None, reached=0.85)
    assert bandwidth_parts(0.9, [(found, [never])])[1].endswith("an infinite one gives 85.0%")
    assert "one node" in bandwidth_parts(0.9, [(found, [replace(link, from_one_node=True)])])[0]
    assert bandwidth_parts(0.9, [(found, [])])[1].strip() == "a single device uses no link"
