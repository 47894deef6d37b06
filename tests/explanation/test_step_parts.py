"""Explanations of launches whose threads were observed: parts sum, holders, verdicts."""

from dataclasses import replace

import pytest
from builders import timed_launch
from hypothesis import given, settings
from hypothesis import strategies as st

from paceline.explanation.explain_step import explain, tried_remedies
from paceline.explanation.explanation_tables import parts_table, verdict_of
from paceline.explanation.finding import Cause
from paceline.explanation.step_parts import contention_by_holder
from paceline.step.critical_states import RankStep, profile_states
from paceline.step.waterfall import Waterfall

STEPS = 24


def states(*ranks, network=0.005):
    """A step ``STEPS`` times; a rank is (forward, backward, runnable, blocked) seconds."""
    arrivals = [sum(rank) for rank in ranks]
    end = max(arrivals) + network * (len(ranks) > 1)
    steps = []
    for number in range(STEPS):
        own = {}
        for index, (forward, backward, runnable, blocked) in enumerate(ranks):
            first, second = forward + blocked, forward + blocked + backward + runnable
            marks = [
                (0.0, 0.0, 0.0),
                (first, forward, 0.0),
                (second, forward + backward, runnable),
                (end, forward + backward, runnable),
            ]
            intervals = [("forward", 0.0, first), ("backward", first, second)]
            if len(ranks) > 1:
                intervals.append(("communicate", second, end))
            own[index] = RankStep(end, intervals, marks, 50.0 + number * end)
        steps.append(own)
    return profile_states(steps)


def launch(number, *ranks, network=0.005, **facts):
    found = states(*ranks, network=network)
    step = found.step_seconds
    made = timed_launch(number, *[[step] * STEPS for _ in ranks])
    facts = {"states": found.to_json(), "cores": [[0, 1]] * len(ranks), **facts}
    records = tuple(
        replace(
            r, delay_seconds=(0.0, *[own[2]] * STEPS), cpu_seconds=(1.0, *[own[0] + own[1]] * STEPS)
        )
        for r, own in zip(made.outcome.ranks, ranks, strict=True)
    )
    return replace(made, outcome=replace(made.outcome, ranks=records, facts=facts))


def parts(explanation):
    return {item.label: item.seconds for item in explanation.waterfall.items}


ALONE = (0.03, 0.06, 0.0, 0.0)
times = st.floats(0.001, 0.1)


@settings(max_examples=20)
@given(st.lists(st.tuples(times, times, times, times), min_size=2, max_size=4), times)
def test_parts_sum_to_the_step_and_leave_no_negative_rest(ranks, forward):
    explanation = explain([launch(1, (forward, 0.06, 0.0, 0.0)), launch(2, *ranks)])
    step = explanation.observed.step.mean
    assert explanation.waterfall.total_seconds == pytest.approx(step)
    assert explanation.waterfall.unexplained_seconds >= -1e-6 * step
    overlapping = (Cause.BATCH, Cause.PROCESSES)
    saved = [one.saved_seconds for one in explanation.findings if one.cause not in overlapping]
    assert sum(saved) <= step - explanation.waterfall.ideal_seconds + 1e-9
    total = parts_table(explanation).rows[-1]
    assert total[1] == pytest.approx(step)


def test_a_healthy_job_is_called_healthy():
    explanation = explain([launch(1, ALONE), launch(2, ALONE, ALONE)])
    assert explanation.healthy
    assert verdict_of(explanation).startswith("Healthy: 90.0 ms of 95.0 ms is compute")


def test_other_programs_do_not_hide_the_cause_in_the_job():
    slow = (0.03, 0.06, 0.08, 0.03)
    facts = {"other_busy_cores": 1.5}
    explanation = explain([launch(1, ALONE), launch(2, slow, slow, **facts)])
    first, second = explanation.findings[:2]
    assert (first.cause, first.seconds) == (Cause.BLOCKED, pytest.approx(0.03))
    assert "but not with one process" in first.verdict
    assert (second.cause, second.seconds) == (Cause.OTHERS, pytest.approx(0.08))
    assert not explanation.healthy
    assert "Other programs: 80.0 ms" in verdict_of(explanation)


def test_a_wait_of_every_size_is_no_compute():
    slow = (0.03, 0.06, 0.0, 0.03)
    explanation = explain([launch(1, slow), launch(2, slow, slow)])
    assert parts(explanation)["compute"] == pytest.approx(0.09)
    assert "as with one process" in explanation.findings[0].verdict


def test_only_cpu_time_is_contention_for_memory():
    slow = (0.04, 0.08, 0.0, 0.0)
    explanation = explain([launch(1, ALONE), launch(2, slow, slow)])
    assert parts(explanation)["memory and cache contention"] == pytest.approx(0.03)
    waits = (0.03, 0.06, 0.0, 0.03)
    explanation = explain([launch(1, ALONE), launch(2, waits, waits)])
    assert "memory and cache contention" not in parts(explanation)


def test_growth_of_backward_only_is_due_to_messages():
    slow = (0.03, 0.08, 0.0, 0.0)
    explanation = explain([launch(1, ALONE), launch(2, slow, slow)])
    assert parts(explanation)["backward slowed by messages"] == pytest.approx(0.02)


def test_too_many_threads_cost_what_one_core_each_would_save():
    """Alone, two threads need 50 ms on two cores; one thread would need 90 ms of CPU time."""
    one = launch(1, (0.02, 0.03, 0.0, 0.0))
    ranks = tuple(replace(r, cpu_seconds=(1.0, *[0.09] * STEPS)) for r in one.outcome.ranks)
    one = replace(one, outcome=replace(one.outcome, ranks=ranks))
    use = {
        "threads": {"main": [1, 0.05, 0.1], "compute": [1, 0.05, 0.1]},
        "worker_seconds": 0.0,
        "busy_cores": 1.3,
        "compute_threads": 2,
    }
    slow = (0.02, 0.03, 0.1, 0.0)
    found = explain([one, launch(2, slow, slow, core_use=[use, use])]).findings[0]
    assert found.cause is Cause.THREADS
    assert "2 processes with 2 threads each on 2 cores" in found.verdict
    assert found.seconds == pytest.approx(0.06, rel=0.05)
    assert found.trial == "threads=1"


def test_a_rank_with_a_slower_core_is_not_the_fault_of_the_job():
    slow = tuple(1.3 * seconds for seconds in ALONE)
    facts = {"elements": [100, 100], "samples": [4, 4]}
    explanation = explain([launch(1, ALONE), launch(2, ALONE, slow, **facts)])
    assert explanation.findings[0].cause is Cause.SLOW_CORE
    assert explanation.healthy
    more = {"elements": [100, 150], "samples": [4, 4]}
    found = explain([launch(1, ALONE), launch(2, ALONE, slow, **more)]).findings[0]
    assert found.cause is Cause.STRAGGLER
    assert "150 elements of input per step instead of 100" in found.why


def with_collectives(synchronised_backwards=1, **sent):
    """Two ranks that wait 20 ms in blocking collectives."""
    found = states((0.03, 0.06, 0.0, 0.0), (0.03, 0.06, 0.0, 0.0), network=0.02).to_json()
    for batch in (found, *found["batches"]):
        for cells in (batch["critical"], *(rank["cells"] for rank in batch["ranks"])):
            cells["collective/blocked"] = cells.pop("communicate/blocked")
    more = {"synchronised_backwards": synchronised_backwards}
    made = launch(2, ALONE, ALONE, network=0.02, collectives=sent, **more)
    outcome = replace(made.outcome, facts={**made.outcome.facts, "states": found})
    return explain([launch(1, ALONE), replace(made, outcome=outcome)]).findings


def test_small_collectives_are_counted():
    (one, *_) = with_collectives(bucket=[1, 1e6, 0.01], all_reduce=[12, 4.0, 0.02])
    assert one.cause is Cause.COLLECTIVES
    assert "12 small blocking collectives" in one.verdict


def test_gradients_by_hand_are_not_other_collectives():
    """Small and large collectives have their share of the wait, and gradients have theirs."""
    sent = {"gradients": [1, 1e6, 0.005], "all_reduce": [40, 4.0, 0.01]}
    found = with_collectives(**sent, all_gather_single=[8, 1e6, 0.005])
    seconds = {one.cause: one.seconds for one in found}
    assert seconds[Cause.COLLECTIVES] == pytest.approx(0.01)
    assert seconds[Cause.BLOCKING] == pytest.approx(0.005)
    assert "40 small" in next(one for one in found if one.cause is Cause.COLLECTIVES).verdict


def test_growth_of_sharded_ranks_is_work_of_sharding_not_contention_for_memory():
    """All phases take longer: hooks, copies of shards, updates of distributed tensors."""
    sent = {"all_gather_into_tensor": [9, 8e5, 0.01], "reduce_scatter_tensor": [5, 8e5, 0.005]}
    slow = (0.05, 0.09, 0.0, 0.0)
    sharded = explain([launch(1, ALONE), launch(2, slow, slow, collectives=sent)])
    assert parts(sharded)["work of sharding"] == pytest.approx(0.05)
    assert sharded.findings[0].cause is Cause.SHARDING
    plain = explain([launch(1, ALONE), launch(2, slow, slow)])
    assert parts(plain)["memory and cache contention"] == pytest.approx(0.05, rel=0.2)


def test_buffers_that_every_pass_broadcasts_are_a_cost_of_accumulation():
    def cost(backwards):
        sent = {"buffers": [4, 1e3, 0.02], "all_reduce": [2, 4.0, 0.02]}
        found = with_collectives(synchronised_backwards=backwards, **sent)
        return next(one.seconds for one in found if one.cause is Cause.COLLECTIVES)

    assert cost(1) == pytest.approx(0.02)
    assert cost(4) == pytest.approx(0.01 + 0.01 / 4)


def test_contention_is_at_most_what_each_holder_used():
    found = contention_by_holder(0.1, {"a": 0.02, "b": 0.2})
    assert found.by_holder["a"] <= 0.02
    assert sum(found.by_holder.values()) == pytest.approx(0.1)
    assert contention_by_holder(0.1, {"a": 0.02, "b": 0.03}).unknown == pytest.approx(0.05)


def test_a_worker_without_a_core_is_no_slow_input():
    """Input that waits for a worker that other programs keep from its core is CPU contention."""
    found = states((0.03, 0.06, 0.0, 0.02)).to_json()
    for batch in (found, *found["batches"]):
        for cells in (batch["critical"], batch["common"], *(r["cells"] for r in batch["ranks"])):
            cells["input/blocked"] = cells.pop("forward/blocked", 0.0)
    use = {"worker_seconds": 0.01, "busy_cores": 2.0, "compute_threads": 1, "threads": {}}

    def waited(delay):
        made = launch(1, (0.03, 0.06, 0.0, 0.02), other_busy_cores=1.0)
        facts = {"core_use": [{**use, "worker_delay_seconds": delay}], "loader_workers": [1]}
        facts = {**made.outcome.facts, "states": found, **facts}
        made = replace(made, outcome=replace(made.outcome, facts=facts))
        return parts(explain([made]))["waiting for input"]

    assert waited(0.0) == pytest.approx(0.02)
    assert waited(0.01) < 0.02
    assert waited(1.0) < waited(0.01)


def test_launches_with_a_remedy_are_not_explained_with_the_others():
    plain = launch(2, ALONE, ALONE)
    tried = launch(3, (0.02, 0.02, 0.0, 0.0), (0.02, 0.02, 0.0, 0.0))
    tried = replace(tried, job={**tried.job, "factors": {"try": "threads=1"}})
    assert tried_remedies(tried) == "threads=1"
    assert explain([launch(1, ALONE), plain, tried]).measured.launches == (plain,)


def test_work_of_the_host_is_found_beside_other_programs():
    """The step varies by more than the work, which is as long in each step."""
    busy = [states((0.03, 0.06, late, 0.0), (0.03, 0.06, late, 0.0)) for late in (0.1, 0.9)]
    launches = [launch(1, ALONE)]
    for number, found in enumerate(busy):
        document = found.to_json()
        for cells in (document["critical"], *(rank["cells"] for rank in document["ranks"])):
            cells["host/running"] = cells["forward/running"] / 3
            cells["forward/running"] *= 2 / 3
        made = launch(2, *[(0.03, 0.06, (0.1, 0.9)[number], 0.0)] * 2, other_busy_cores=2.0)
        facts = {**made.outcome.facts, "states": document}
        launches.append(replace(made, outcome=replace(made.outcome, facts=facts)))
    found = explain(launches).findings[0]
    assert (found.cause, found.seconds) == (Cause.HOST, pytest.approx(0.01))


def test_a_bottleneck_is_compared_with_the_step_without_other_programs():
    """Three quarters of the step belong to other programs: 10 % of the rest is a bottleneck."""
    others = {"other_busy_cores": 1.6}
    delayed = launch(2, (0.03, 0.06, 0.3, 0.02), (0.03, 0.06, 0.3, 0.02), **others)
    explanation = explain([launch(1, ALONE), delayed])
    assert explanation.own_seconds < 0.13
    assert [one.cause for one in explanation.bottlenecks][:1] == [Cause.BLOCKED]
    assert not explanation.healthy


def test_a_step_without_an_owner_is_not_healthy():
    explanation = explain([launch(1, ALONE), launch(2, ALONE, ALONE)])
    assert explanation.healthy
    items = explanation.waterfall.items
    longer = replace(items[-1], seconds=items[-1].seconds + 0.01)
    unknown = replace(explanation, waterfall=Waterfall((*items[:-1], longer)))
    assert not unknown.healthy
    assert "are unattributed" in verdict_of(unknown)
