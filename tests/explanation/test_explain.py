"""Explanations of steps whose bottleneck is known, because it was built in."""

import math
from dataclasses import replace

import pytest
from builders import a_profile

from paceline.explanation.explain_step import explain
from paceline.explanation.finding import Cause
from paceline.step import Origin, Phase, Step, Task
from paceline.step.step_profile import profile_steps
from seen_steps import seen_launch, seen_step

MESSAGES = tuple((share, 2e6) for share in (0.25, 0.5, 0.75, 1.0))
QUICK = {"start": 2e-4, "per_byte": 5e-10}
"""A message of 2 MB takes 1.2 ms: 4 GB/s."""


def alone(**rank):
    return seen_launch(1, seen_step(rank))


def together(*ranks, **how):
    return seen_launch(2, seen_step(*ranks, **{"messages": MESSAGES, **QUICK, **how}))


def first(*launches, **how):
    explanation = explain(launches, **how)
    assert explanation.waterfall.total_seconds == pytest.approx(explanation.measured.step.mean)
    assert explanation.findings, "something is to be found"
    return explanation.findings[0]


def test_a_healthy_step_has_no_findings():
    explanation = explain([alone(), together({}, {})])
    assert explanation.findings == ()
    assert explanation.efficiency > 0.97
    assert explanation.waterfall.unexplained_seconds == pytest.approx(0.0, abs=1e-9)


def test_input_that_is_slow_at_every_size_is_not_part_of_the_ideal():
    asleep = seen_step({"input": 0.06}, {"input": 0.06}, messages=MESSAGES, **QUICK)
    launches = [alone(input=0.06), seen_launch(2, asleep, cpu=0.09)]
    found = first(*launches)
    assert found.cause is Cause.INPUT
    assert found.seconds == pytest.approx(0.06)
    assert explain(launches).waterfall.ideal_seconds == pytest.approx(0.091)
    assert found.saved_seconds == pytest.approx(0.06), "one worker prepares a batch meanwhile"


@pytest.mark.parametrize("where", ["forward", "backward", "update", "input"])
def test_a_straggler_is_named_with_the_phase_in_which_it_is_slow(where):
    usual = {"forward": 0.03, "backward": 0.06, "update": 0.001, "input": 0.0}
    found = first(alone(), together({}, {where: usual[where] + 0.06}))
    assert found.cause is Cause.STRAGGLER
    assert f"rank 1 is slow in {where}" in found.verdict
    assert found.seconds == pytest.approx(0.06, rel=0.1)


def test_the_rank_that_waits_longest_is_not_the_straggler():
    """Ranks end together: rank 0 has the longest messages because rank 1 comes late."""
    explanation = explain([alone(), together({}, {"backward": 0.12})])
    victim, culprit = explanation.profile.ranks
    assert victim.seconds(Phase.COMMUNICATE) > culprit.seconds(Phase.COMMUNICATE)
    assert explanation.profile.slowest is culprit or explanation.profile.slowest == culprit
    assert culprit.last_share == 1.0


def test_a_slow_link_is_distinguished_from_a_large_gradient():
    slow = first(alone(), together({}, {}, per_byte=4e-8))
    assert slow.cause is Cause.LINK
    assert slow.seconds == pytest.approx(4 * 2e6 * 4e-8 - 0.045, rel=0.2)
    large = tuple((share, 2e8) for share, _ in MESSAGES)
    on_device = seen_launch(2, seen_step({}, {}, messages=large, **QUICK), cpu=0.01)
    found = first(seen_launch(1, seen_step({}), cpu=0.01), on_device)
    assert found.cause is Cause.VOLUME
    assert found.seconds == pytest.approx(4 * 0.1 - 0.045, rel=0.2)


def test_expected_costs_come_from_the_probe_if_available():
    """83 MB/s are slow by themselves, and no wonder in training where a probe saw 200 MB/s."""
    launches = [alone(), together({}, {}, per_byte=1.2e-8)]
    assert first(*launches).cause is Cause.LINK
    causes = {one.cause for one in explain(launches, profile=a_profile()).findings}
    assert Cause.LINK not in causes
    assert Cause.VOLUME in causes


def test_high_latency_is_distinguished_from_low_bandwidth():
    sizes = ((0.3, 1e6), (1.0, 8e6))
    found = first(alone(), together({}, {}, messages=sizes, start=0.02))
    assert found.cause is Cause.START
    assert found.seconds == pytest.approx(0.02, rel=0.2)
    assert "20.0 ms" in found.why


def test_messages_of_one_size_cannot_separate_latency_from_bandwidth():
    found = first(alone(), together({}, {}, start=0.03))
    assert found.cause is Cause.LINK
    assert "or its latency is high" in found.verdict


def test_tiny_buckets_slow_the_backward_pass():
    many = tuple(((n + 1) / 100, 8e4) for n in range(100))
    found = first(alone(), together({}, {}, messages=many, handling=3e-4))
    assert found.cause is Cause.BUCKETS
    assert "too many" in found.verdict
    assert found.seconds == pytest.approx(0.03, rel=0.2)


def test_many_messages_are_slow_by_their_number_at_any_load():
    """Latency is what they take beyond the bytes, however slow a loaded machine may send these."""
    from paceline.explanation.diagnose_comm import MessageCost, fitted_cost
    from paceline.step.step_profile import MessageProfile

    sizes = [1e3, 1e5] * 40
    messages = [MessageProfile(size, 0.0, 1e-3, "gradients") for size in sizes]
    crowded = MessageCost(0.02, 5e-8)
    found = fitted_cost(messages, crowded)
    assert found.start_seconds == pytest.approx(1e-3, rel=0.6)
    assert found.seconds(1e5) <= 1e-3 + found.start_seconds


def test_gradients_sent_after_backward_are_reported():
    late = {"messages": MESSAGES, **QUICK, "per_byte": 2e-9, "after_backward": True}
    found = first(alone(), seen_launch(2, seen_step({}, {}, **late), cpu=0.08))
    assert found.cause is Cause.OVERLAP
    assert found.saved_seconds == pytest.approx(4 * 2e6 * 2e-9, rel=0.3)


def test_messages_cannot_overlap_without_a_free_core():
    """Both ranks compute or carry messages all the time: the work of messages stays."""
    late = tuple((1.0, size) for _, size in MESSAGES)
    step = seen_step({}, {}, messages=late, start=2e-4, per_byte=2e-9)
    busy = seen_launch(2, step, cpu=step.seconds - 0.004, cores=[0, 1])
    found = first(seen_launch(1, seen_step({}), cpu=0.09, cores=[0]), busy)
    assert found.cause is Cause.OVERLAP
    assert found.seconds > 0.01
    assert found.saved_seconds == pytest.approx(0.004)
    assert "no core is free to overlap" in found.why


def test_processes_on_one_core_have_cpu_contention():
    slow = {"forward": 0.06, "backward": 0.12, "update": 0.002}
    one = seen_launch(1, seen_step({}), cpu=0.091)
    both = seen_step(slow, slow, messages=MESSAGES, **QUICK)
    found = first(one, seen_launch(2, both, cpu=0.092, cores=[0]))
    assert found.cause is Cause.CORES
    assert "2 processes are pinned to 1 core" in found.verdict
    assert found.seconds == pytest.approx(0.091, rel=0.1)


def test_the_same_work_with_more_cpu_time_is_contention_for_memory_and_caches():
    slow = {"forward": 0.036, "backward": 0.072}
    one = seen_launch(1, seen_step({}), cpu=0.091)
    both = seen_step(slow, slow, messages=MESSAGES, **QUICK)
    explanation = explain([one, seen_launch(2, both, cpu=0.109, cores=[0, 1])])
    labels = {item.label: item.seconds for item in explanation.waterfall.items}
    assert labels["memory and cache contention"] == pytest.approx(0.018, rel=0.1)
    assert "CPU contention" not in labels
    assert explanation.findings == (), "nothing can be done about it here"


def test_computing_that_takes_longer_without_more_cpu_time_is_unattributed():
    """A sleep of 30 ms in forward, only when distributed: no memory is contended for."""
    slow = {"forward": 0.06}
    one = seen_launch(1, seen_step({}), cpu=0.091, delays=[0.0])
    both = seen_step(slow, slow, messages=MESSAGES, **QUICK)
    run = seen_launch(2, both, cpu=0.091, delays=[0.0, 0.0], cores=[0, 1])
    items = {i.label: i.seconds for i in explain([one, run]).waterfall.items}
    assert "memory and cache contention" not in items
    assert items["unattributed"] == pytest.approx(0.03)


def test_a_tiny_batch_is_dominated_by_weights():
    tiny = {"forward": 0.001, "backward": 0.003}
    one = seen_launch(1, seen_step(tiny), cpu=0.005)
    both = seen_step(tiny, tiny, messages=((0.3, 1e6), (1.0, 8e6)), **QUICK)
    found = first(one, seen_launch(2, both, cpu=0.006))
    assert found.cause is Cause.BATCH
    assert found.saved_seconds > 0.7 * found.seconds


def test_fewer_samples_per_process_in_strong_scaling_are_a_cause_of_their_own():
    whole = seen_launch(1, seen_step({"forward": 0.04, "backward": 0.08}), batch_per_rank=128)
    half = seen_launch(2, seen_step({}))
    both = seen_launch(3, seen_step({}, {}, messages=MESSAGES, **QUICK))
    explanation = explain([whole, half, both])
    labels = {item.label: item.seconds for item in explanation.waterfall.items}
    assert labels["smaller batch per device"] == pytest.approx(0.091 - 0.121 / 2)
    assert explanation.findings[0].cause is Cause.BATCH


def test_one_run_is_explained_with_missing_measurements():
    run = replace(together({}, {"forward": 0.09}), job={"command": ["python", "train.py"]})
    explanation = explain([run])
    assert explanation.findings[0].cause is Cause.STRAGGLER
    assert "paceline run --study s -- python" in explanation.missing[0]
    single = explain([alone(input=0.06)])
    assert single.findings[0].cause is Cause.INPUT
    assert single.missing == ()


def test_an_imported_trace_lists_missing_imports():
    explanation = explain([replace(together({}, {}), provenance="imported")])
    assert "paceline import --study s" in explanation.missing[0]


def test_sleeping_is_not_contention_without_evidence():
    """A host that waits for its accelerator uses little CPU time, and is healthy."""
    step = seen_step({}, {}, messages=MESSAGES, **QUICK)
    assert explain([seen_launch(2, step, cpu=0.01, cores=[0, 1])]).findings == ()
    confined = explain([seen_launch(2, step, cpu=0.05, cores=[0])]).findings
    assert confined[0].cause is Cause.CORES


def test_several_launches_give_intervals():
    launches = [
        alone(),
        *(
            seen_launch(10 + n, seen_step({}, {"forward": 0.03 + late}, messages=MESSAGES, **QUICK))
            for n, late in enumerate((0.05, 0.06, 0.07))
        ),
    ]
    items = {item.label: item for item in explain(launches).waterfall.items}
    straggler = items["straggler: rank 1"]
    assert straggler.seconds == pytest.approx(0.06)
    assert straggler.half_width == pytest.approx(4.303 * 0.01 / 3**0.5, rel=0.05)
    one = {item.label: item for item in explain(launches[:2]).waterfall.items}
    assert math.isnan(one["straggler: rank 1"].half_width)


def test_a_cause_whose_interval_over_launches_includes_zero_is_unattributed():
    """Rank 1 is 20 ms slower in two launches and 30 ms faster in the third: it is no straggler."""
    launches = [
        alone(),
        *(
            seen_launch(
                10 + n,
                seen_step(
                    {"forward": 0.06}, {"forward": 0.06 + late}, messages=MESSAGES, start=0.01
                ),
            )
            for n, late in enumerate((0.02, 0.022, -0.03))
        ),
    ]
    explanation = explain(launches)
    items = {item.label: item for item in explanation.waterfall.items}
    assert not [label for label in items if label.startswith("rank")]
    assert items["exposed all-reduce"].seconds > items["exposed all-reduce"].half_width
    assert explanation.waterfall.total_seconds == pytest.approx(explanation.observed.step.mean)
    assert Cause.STRAGGLER not in {one.cause for one in explanation.findings}


def with_profile(launch, steps, cpu=None, **facts):
    """The launch with the profile of these steps, each of which every rank took."""
    seconds = [step.seconds for step in steps]
    cpu_seconds = () if cpu is None else (9.0, *[cpu] * len(seconds))
    ranks = tuple(
        replace(one, wall_seconds=(9.0, *seconds), cpu_seconds=cpu_seconds)
        for one in launch.outcome.ranks
    )
    facts = {**launch.outcome.facts, "profile": profile_steps(steps).to_json(), **facts}
    return replace(launch, outcome=replace(launch.outcome, ranks=ranks, facts=facts))


def with_host_work(step, seconds):
    """The same step with work of the host before it, on every rank."""
    host = [Task("host", Phase.OTHER, "compute", seconds, rank=rank) for rank in step.ranks]
    return Step(
        (*host, *step.tasks),
        (*[0.0] * len(host), *(start + seconds for start in step.starts)),
        Origin.MEASURED,
    )


def test_a_checkpoint_every_tenth_step_is_a_pause_and_not_part_of_the_ideal():
    plain = {1: seen_step({}), 2: seen_step({}, {}, messages=MESSAGES, **QUICK)}
    launches = [
        with_profile(
            seen_launch(number, plain[number]),
            [with_host_work(plain[number], 0.6 if n % 10 == 9 else 0.0) for n in range(40)],
        )
        for number in (1, 2)
    ]
    explanation = explain(launches)
    found = first(*launches)
    assert found.cause is Cause.PAUSES
    assert found.seconds == pytest.approx(0.06)
    assert "600 ms longer (4 of 40 steps)" in found.why
    assert explanation.waterfall.ideal_seconds == pytest.approx(0.091)
    assert explanation.waterfall.unexplained_seconds == pytest.approx(0.0, abs=1e-9)


def test_host_work_in_every_step_is_not_part_of_the_ideal():
    """Logging that is as slow on one process as on two."""
    plain = {1: seen_step({}), 2: seen_step({}, {}, messages=MESSAGES, **QUICK)}
    launches = [seen_launch(n, with_host_work(step, 0.04)) for n, step in plain.items()]
    found = first(*launches)
    assert found.cause is Cause.HOST
    assert found.seconds == pytest.approx(0.04)
    assert explain(launches).waterfall.ideal_seconds == pytest.approx(0.091)


def test_a_rank_with_more_samples_is_reported_with_them():
    step = seen_step({}, {"forward": 0.06, "backward": 0.12}, messages=MESSAGES, **QUICK)
    found = first(alone(), with_profile(seen_launch(2, step), [step] * 5, samples=[256, 512]))
    assert found.cause is Cause.STRAGGLER
    assert "512 samples per step instead of 256" in found.why


def test_a_difference_within_the_noise_is_not_a_straggler():
    """Rank 1 is 6 ms slower in the mean, nearly all of them by one step of sixteen."""
    late = [0.031 + 0.08 * (n == 7) for n in range(16)]
    steps = [seen_step({}, {"forward": f}, messages=MESSAGES, **QUICK) for f in late]
    launch = with_profile(seen_launch(2, steps[0]), steps)
    causes = {one.cause for one in explain([alone(), launch]).findings}
    assert Cause.STRAGGLER not in causes


def test_copying_cost_follows_size_not_number_of_messages():
    """Ten messages of 25 MB cost backward 200 ms: other buckets would not help, 16 bits would."""
    large = tuple(((n + 1) / 10, 2.5e7) for n in range(10))
    step = seen_step({}, {}, messages=large, handling=0.02, start=1e-3, per_byte=2e-9)
    found = first(alone(), seen_launch(2, step))
    assert found.cause is Cause.VOLUME
    assert found.saved_seconds == pytest.approx(found.seconds / 2, rel=0.3)


def test_few_messages_do_not_show_zero_latency():
    """Two large messages whose fitted start is nothing: no advice to send 400 small ones."""
    large = ((0.3, 1.7e7), (1.0, 4e7))
    step = seen_step({}, {}, messages=large, start=0.0, per_byte=1.5e-9)
    explanation = explain([alone(), seen_launch(2, step)])
    assert explanation.findings[0].cause is Cause.VOLUME
    assert "0.00" not in explanation.findings[0].why
    assert not [one for one in explanation.findings if "131 kB" in one.remedy]


def in_a_crowd(launch):
    """The launch on two cores that eight programs wanted each."""
    facts = {**launch.outcome.facts, "load_before": 16.0, "load_after": 16.0}
    outcome = replace(launch.outcome, facts=facts)
    return replace(launch, environment={**launch.environment, "cores": 2}, outcome=outcome)


def test_oversubscription_is_not_a_slow_link():
    step = seen_step({}, {}, messages=MESSAGES, start=2e-4, per_byte=6e-9)
    waited = seen_launch(2, step, cpu=0.02)
    assert first(alone(), waited).cause is Cause.LINK
    crowded = explain([alone(), in_a_crowd(waited)]).findings
    assert Cause.LINK not in {one.cause for one in crowded}
    at_work = in_a_crowd(seen_launch(2, step, cpu=0.09))
    assert first(alone(), at_work).cause is Cause.LINK, "it never waited for a core"


def test_delays_by_other_programs_are_not_communication():
    """8 MB that backward hides were held up on a crowded machine: no remedy for messages."""
    step = seen_step({}, {}, messages=MESSAGES, **QUICK)
    last = max(end for task, end in zip(step.tasks, step.ends, strict=True) if task.size_bytes)
    tasks, starts = [], []
    for task, start in zip(step.tasks, step.starts, strict=True):
        held = start + task.seconds == pytest.approx(last) and task.size_bytes > 0
        tasks.append(task)
        starts.append(start + (0.08 if task.phase is Phase.UPDATE else 0.0))
        if held:
            tasks.append(replace(task, name="held up", seconds=0.08, size_bytes=0.0))
            starts.append(last)
    held_up = seen_launch(2, Step(tuple(tasks), tuple(starts), Origin.MEASURED), cpu=0.02)
    findings = explain([alone(), in_a_crowd(held_up)]).findings
    assert all(one.saved_seconds < 0.01 for one in findings if one.cause is Cause.VOLUME)


def test_no_sync_launches_show_the_slowdown_by_messages():
    slowed = seen_step({"backward": 0.08}, {"backward": 0.08}, messages=MESSAGES, **QUICK)
    launch = with_profile(seen_launch(3, slowed), [slowed] * 5, cpu=0.12)
    both = seen_step({"backward": 0.065}, {"backward": 0.065})
    beside = replace(seen_launch(2, both), synchronised=False)
    parts = {i.label: i.seconds for i in explain([alone(), beside, launch]).waterfall.items}
    assert parts["memory and cache contention"] == pytest.approx(0.005)
    assert parts["backward slowed by messages"] == pytest.approx(0.015)
    assert parts["unattributed"] == pytest.approx(0.0, abs=1e-9)


class TestWrongDiagnoses:
    """What other tools get wrong, one test each."""

    def test_summed_tasks_are_not_wall_time(self):
        """Two messages under backward take 0.11 s in all, and expose next to nothing."""
        under = ((0.1, 1e6), (0.3, 1e6))
        step = seen_step({}, {}, messages=under, start=0.02)
        explanation = explain([alone(), seen_launch(2, step)])
        assert explanation.profile.hidden_seconds > 0.03
        assert explanation.profile.exposed_seconds == pytest.approx(0.0, abs=1e-9)
        assert explanation.findings == ()

    def test_rank_0_is_not_representative(self):
        ranks = [{}, {}, {}, {"input": 0.05}]
        found = first(seen_launch(4, seen_step(*ranks, messages=MESSAGES, **QUICK)))
        assert "rank 3 is slow in input" in found.verdict
        seen = seen_step({}, messages=MESSAGES, **QUICK)
        partly = replace(seen_launch(4, seen), world_size=4)
        (words,) = [w for w in explain([partly]).missing if "others may differ" in w]
        assert "3 of 4 ranks" in words

    def test_exposed_is_not_blocking(self):
        """What a victim waits inside a message is the culprit's computing, not the network's."""
        explanation = explain([alone(), together({}, {"forward": 0.09})])
        labels = {item.label: item.seconds for item in explanation.waterfall.items}
        network = sum(s for label, s in labels.items() if label.startswith("exposed"))
        assert explanation.profile.ranks[0].seconds(Phase.COMMUNICATE) > 0.06
        assert network < 0.003

    def test_clocks_of_hosts_are_not_aligned(self):
        """Rank 1's clock is an hour ahead; its messages end when those of rank 0 do."""
        from paceline.step.clocks import align_clocks

        step = seen_step({}, {"forward": 0.04}, messages=MESSAGES, **QUICK)
        starts = [
            start + 3600.0 * task.rank for task, start in zip(step.tasks, step.starts, strict=True)
        ]
        aligned = align_clocks(Step(step.tasks, tuple(starts), Origin.MEASURED))
        assert aligned.starts == pytest.approx(step.starts, abs=1e-6)

    def test_unsampled_is_not_zero(self):
        """A phase that nobody timed does not appear with 0 ms, and is not called free."""
        tasks = (Task("forward", Phase.FORWARD, "compute", 0.05),)
        launch = seen_launch(1, Step(tasks, (0.0,), Origin.MEASURED))
        launch = replace(launch, instrument="none")
        long = replace(
            launch.outcome.ranks[0], wall_seconds=(9.0, *[0.2] * 6), cpu_seconds=(9.0, *[0.2] * 6)
        )
        explanation = explain([replace(launch, outcome=replace(launch.outcome, ranks=(long,)))])
        assert Phase.INPUT not in explanation.profile.ranks[0].phases
        assert explanation.waterfall.unexplained_seconds == pytest.approx(0.15)
