"""Findings about the host: CPU contention, input, accumulation, garbage collection."""

from dataclasses import replace

import pytest

from paceline.explanation.explain_step import explain
from paceline.explanation.finding import Cause
from paceline.step.step_profile import profile_steps
from seen_steps import seen_launch, seen_step

MESSAGES = tuple((share, 2e6) for share in (0.25, 0.5, 0.75, 1.0))
QUICK = {"start": 2e-4, "per_byte": 5e-10}


def alone(delay=0.0, **rank):
    return seen_launch(1, seen_step(rank), cpu=0.09, delays=[delay])


def together(*ranks, delays, facts=None, how=QUICK, **changes):
    step = seen_step(*ranks, messages=MESSAGES, **how)
    return seen_launch(2, step, cpu=0.09, delays=delays, facts=facts, **changes)


def parts(*launches):
    explanation = explain(launches)
    assert explanation.waterfall.total_seconds == pytest.approx(explanation.measured.step.mean)
    return {item.label: item.seconds for item in explanation.waterfall.items}


def test_a_rank_without_a_core_is_not_a_straggler():
    """Both do the same work; rank 0 waits 30 ms longer for a core than rank 1."""
    run = together({"forward": 0.07}, {"forward": 0.04}, delays=[0.04, 0.01])
    found = explain([alone(), run]).findings
    assert found[0].cause is Cause.CORES
    assert Cause.STRAGGLER not in {one.cause for one in found}
    assert found[0].seconds == pytest.approx(0.04, rel=0.05)
    assert "10.0 ms (rank 0: 40.0 ms)" in found[0].why


def test_a_rank_with_more_work_is_a_straggler_despite_contention():
    run = together({"forward": 0.08}, {"forward": 0.04}, delays=[0.01, 0.01])
    found = explain([alone(), run]).findings[0]
    assert found.cause is Cause.STRAGGLER
    assert found.seconds == pytest.approx(0.04, rel=0.05)


def test_sleeping_is_not_cpu_contention():
    """Two ranks sleep 30 ms in forward on one core: CPU time alone would call that a wait."""
    slow = {"forward": 0.06}
    found = explain([alone(), together(slow, slow, delays=[0.0, 0.0], cores=[0])]).findings
    assert Cause.CORES not in {one.cause for one in found}


def test_the_ideal_step_has_no_cpu_contention():
    crowded = {"forward": 0.05}
    both = together(crowded, crowded, delays=[0.02, 0.02])
    seen = parts(alone(delay=0.02, **crowded), both)
    assert seen["compute"] == pytest.approx(0.091)
    assert seen["CPU contention"] == pytest.approx(0.02, rel=0.05)


def test_cpu_contention_of_one_run_needs_no_reference():
    slow = {"forward": 0.06}
    found = explain([together(slow, slow, delays=[0.03, 0.03])]).findings[0]
    assert (found.cause, found.seconds) == (Cause.CORES, pytest.approx(0.03, rel=0.05))


def test_delayed_communication_threads_are_not_a_large_gradient():
    """Messages take 60 ms after backward, of which their thread had no core for 55."""
    facts = {"message_delay_seconds": [0.055, 0.05]}
    how = {"start": 0.0, "per_byte": 7.5e-9, "after_backward": True}
    plain = together({}, {}, delays=[0.0, 0.0], how=how)
    assert Cause.CORES not in {one.cause for one in explain([alone(), plain]).findings}
    run = together({}, {}, delays=[0.0, 0.0], how=how, facts=facts)
    found = explain([alone(), run]).findings[0]
    assert found.cause is Cause.CORES
    assert found.seconds == pytest.approx(0.055, rel=0.1)
    assert "their communication threads for 55.0 ms" in found.why


def test_too_many_loader_workers_give_a_number_that_fits():
    slow = {"forward": 0.05, "backward": 0.1}
    facts = {"loader_workers": [8, 8]}
    run = together(slow, slow, delays=[0.05, 0.05], facts=facts, cores=range(4))
    found = explain([alone(), run]).findings[0]
    assert found.cause is Cause.WORKERS
    assert "2 processes with 8 data-loader workers each share 4 cores" in found.verdict
    assert "num_workers=1 " in found.remedy


def input_finding(workers, cores):
    run = seen_launch(
        1, seen_step({"input": 0.091}), cores=range(cores), facts={"loader_workers": [workers]}
    )
    found = explain([run]).findings[0]
    assert found.cause is Cause.INPUT
    return found


def test_more_workers_are_recommended_if_cores_are_free():
    found = input_finding(workers=2, cores=16)
    assert "(2 data-loader workers)" in found.why
    assert "num_workers=4 in the data loader instead of 2" in found.remedy
    assert found.saved_seconds == pytest.approx(0.091)


def test_more_workers_leave_the_ranks_their_threads():
    """Eight cores for two ranks of three threads: one core each is left."""
    use = {
        "threads": {"main": [1, 0.05, 0.0]},
        "worker_seconds": 0.0,
        "busy_cores": 0.0,
        "compute_threads": 3,
    }
    step = seen_step({"input": 0.4}, {"input": 0.4})
    facts = {"loader_workers": [1, 1], "core_use": [use, use]}
    run = seen_launch(2, step, cores=range(8), facts=facts)
    assert "no core is free" in explain([run]).findings[0].remedy
    run = seen_launch(2, step, cores=range(12), facts=facts)
    assert "num_workers=3 in the data loader instead of 1" in explain([run]).findings[0].remedy


def test_without_free_cores_cheaper_input_is_recommended():
    found = input_finding(workers=8, cores=2)
    assert "num_workers" not in found.remedy
    assert "halve the cost" in found.remedy
    assert found.saved_seconds == pytest.approx(0.091)


def test_first_workers_are_recommended_without_any():
    assert "num_workers=1 in the data loader" in input_finding(workers=0, cores=2).remedy


def test_workers_are_recommended_only_with_a_free_core():
    """Decoding keeps the core of each rank busy: workers would take turns with training."""
    step = seen_step({"input": 0.06}, {"input": 0.06})
    on_two = seen_launch(2, step, cpu=0.15, cores=range(2))
    on_four = seen_launch(2, step, cpu=0.15, cores=range(4))
    assert "num_workers=1" in explain([on_four]).findings[0].remedy
    assert "no core is free" in explain([on_two]).findings[0].remedy
    others = seen_launch(2, step, cpu=0.15, cores=range(4), facts={"other_busy_cores": 2.0})
    assert not [one for one in explain([others]).findings if "num_workers" in one.remedy]


def test_input_that_sleeps_needs_no_free_core():
    """Other programs use both cores: a worker that waits for a disk takes none of them."""
    step = seen_step({"input": 0.06}, {"input": 0.06})
    facts = {"other_busy_cores": 2.0}
    asleep = seen_launch(2, step, cpu=0.091, cores=range(2), facts=facts)
    found = next(one for one in explain([asleep]).findings if one.cause is Cause.INPUT)
    assert "num_workers=1" in found.remedy
    assert found.saved_seconds == pytest.approx(0.06)


def test_synchronisation_in_every_micro_batch_recommends_no_sync():
    how = {"start": 0.0, "per_byte": 2e-8, "after_backward": True}
    plain = together({}, {}, delays=[0.0, 0.0], how=how)
    accumulated = together({}, {}, delays=[0.0, 0.0], how=how, facts={"synchronised_backwards": 4})
    exposed = 4 * 2e6 * 2e-8
    assert Cause.ACCUMULATION not in {one.cause for one in explain([alone(), plain]).findings}
    found = explain([alone(), accumulated]).findings
    assert found[0].cause is Cause.ACCUMULATION
    assert found[0].saved_seconds == pytest.approx(0.75 * exposed, rel=0.05)
    assert "no_sync()" in found[0].remedy
    others = [one.seconds for one in found[1:] if one.cause is not Cause.PROCESSES]
    assert sum(others) <= 0.26 * exposed, "what no_sync saves is not saved again"


def test_garbage_collection_is_reported_with_its_duration():
    slow = {"forward": 0.042}
    run = together(slow, slow, delays=[0.0, 0.0], facts={"collection_seconds": 0.012})
    found = explain([alone(), run]).findings[0]
    assert (found.cause, found.seconds) == (Cause.COLLECTION, pytest.approx(0.012))
    assert "gc.freeze()" in found.remedy


def test_launches_of_older_versions_are_explained_without_delays():
    run = together({"forward": 0.07}, {"forward": 0.04}, delays=[0.04, 0.01])
    ranks = tuple(replace(one, delay_seconds=()) for one in run.outcome.ranks)
    old = replace(run, outcome=replace(run.outcome, ranks=ranks))
    assert explain([alone(), old]).findings[0].cause is Cause.STRAGGLER


def test_loader_workers_are_reported_next_to_other_programs():
    slow = {"forward": 0.05, "backward": 0.1}
    facts = {"loader_workers": [8, 8], "other_busy_cores": 1.5}
    run = together(slow, slow, delays=[0.05, 0.05], facts=facts, cores=range(4))
    found = {one.cause: one for one in explain([alone(), run]).findings}
    assert "other programs used 1.5 cores" in found[Cause.OTHERS].verdict
    assert "num_workers=1" in found[Cause.WORKERS].remedy
    assert found[Cause.OTHERS].seconds + found[Cause.WORKERS].seconds == pytest.approx(
        0.05, rel=0.05
    )


def test_the_ideal_is_never_negative():
    """The host and the input of a step had no core either, and have their own items."""
    slow = {"input": 0.02, "forward": 0.06, "backward": 0.1}
    seen = parts(alone(delay=0.18, **slow), together(slow, slow, delays=[0.18, 0.18]))
    assert 0.0 < seen["compute"] < 0.1


def in_turns(delays):
    """Two ranks, each 40 ms late in every second step; these are their delays."""
    late, plain = {"forward": 0.07}, {}
    odd, even = (
        seen_step(*ranks, messages=MESSAGES, **QUICK) for ranks in ((late, plain), (plain, late))
    )
    run = seen_launch(2, odd, cpu=0.09, facts={"profile": profile_steps([odd, even] * 3).to_json()})
    ranks = tuple(
        replace(one, delay_seconds=(9.0, *own * 3))
        for one, own in zip(run.outcome.ranks, delays, strict=True)
    )
    return replace(run, outcome=replace(run.outcome, ranks=ranks))


def test_alternating_contention_is_not_jitter():
    waited = parts(alone(), in_turns([(0.04, 0.0), (0.0, 0.04)]))
    assert waited["CPU contention"] == pytest.approx(0.04, rel=0.05)
    assert waited.get("jitter", 0.0) == pytest.approx(0.0, abs=1e-9)
    worked = parts(alone(), in_turns([(0.0, 0.0), (0.0, 0.0)]))
    assert worked["jitter"] == pytest.approx(0.02, rel=0.05)
    assert "CPU contention" not in worked


def test_contention_is_split_between_pinning_and_other_programs():
    """91 ms of work on each of two ranks, which had no core for 150 ms."""
    slow = {"forward": 0.08, "backward": 0.16}
    run = together(slow, slow, delays=[0.15] * 2, cores=[0], facts={"other_busy_cores": 1.0})
    findings = explain([alone(), run]).findings
    found = {one.verdict.partition(": ")[2]: one.seconds for one in findings}
    assert found["2 processes are pinned to 1 core"] == pytest.approx(0.093, rel=0.05)
    assert found["other programs used 1.0 cores"] == pytest.approx(0.057, rel=0.05)
    quiet = together(slow, slow, delays=[0.15] * 2, cores=[0], facts={"other_busy_cores": 0.0})
    assert explain([alone(), quiet]).findings[0].seconds == pytest.approx(0.15, rel=0.01)


def not_looked_into(launch):
    """The same launch without its timeline: all that is left are times and delays of ranks."""
    return replace(launch, outcome=replace(launch.outcome, timeline=None))


def test_uninstrumented_steps_have_cpu_contention():
    slow = {"forward": 0.07}
    one = not_looked_into(alone(delay=0.01))
    run = not_looked_into(
        together(slow, slow, delays=[0.05, 0.04], facts={"other_busy_cores": 1.5})
    )
    explanation = explain([one, run])
    assert explanation.waterfall.ideal_seconds == pytest.approx(explanation.alone.step.mean - 0.01)
    labels = {item.label: item.seconds for item in explanation.waterfall.items}
    assert labels["CPU contention: other programs"] == pytest.approx(0.05)
    assert explanation.findings[0].cause is Cause.OTHERS
    assert "other programs used 1.5 cores" in explanation.findings[0].verdict


def test_contention_of_co_located_ranks_is_not_counted_twice():
    slow = {"forward": 0.07}
    beside = replace(seen_launch(3, seen_step(slow, slow)), synchronised=False)
    run = seen_launch(2, seen_step(slow, slow), cpu=0.1, delays=[0.03, 0.03])
    launches = [not_looked_into(one) for one in (alone(), beside, run)]
    labels = {item.label: item.seconds for item in explain(launches).waterfall.items}
    assert labels["CPU contention"] == pytest.approx(0.03)
    assert labels["memory and cache contention"] == pytest.approx(0.01)


def test_one_uninstrumented_run_has_cpu_contention():
    found = explain([not_looked_into(together({}, {}, delays=[0.03, 0.02]))])
    assert found.findings[0].cause is Cause.CORES
    assert found.waterfall.ideal_seconds == pytest.approx(found.measured.step.mean - 0.03)


def test_contention_with_own_messages_is_not_oversubscription():
    """Nobody else ran: what backward is kept waiting for is the thread of the messages."""
    busy = {"backward": 0.09}
    own = {"other_busy_cores": 0.0, "message_delay_seconds": [0.02, 0.02]}
    how = {"start": 0.012, "per_byte": 5e-10}
    run = together(busy, busy, delays=[0.025, 0.025], facts=own, how=how, cores=range(2))
    labels = parts(alone(), run)
    assert labels["CPU contention: communication threads"] > 0.025
    assert Cause.OTHERS not in {one.cause for one in explain([alone(), run]).findings}
    crowd = together(busy, busy, delays=[0.025, 0.025], facts={"other_busy_cores": 1.0}, how=how)
    assert parts(alone(), crowd)["CPU contention: other programs"] > 0.025


def test_a_rank_with_its_own_core_has_no_contention():
    slow = {"forward": 0.036}
    facts = {"other_busy_cores": 0.0}
    run = together(
        slow, slow, delays=[0.005, 0.003], facts=facts, cores=range(2), job={"threads": 1}
    )
    explanation = explain([alone(), run])
    assert Cause.CORES not in {one.cause for one in explanation.findings}
