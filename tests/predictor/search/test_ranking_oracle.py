"""Ranking of plans, advice and budgets on predictions with chosen numbers."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

import paceline
from paceline.constants import number
from paceline.errors import InputError
from paceline.hardware import catalogue
from paceline.predictor.plan.plan import Plan
from paceline.predictor.plan.plan_choices import Recompute
from paceline.predictor.search.advice import Advice, Infeasible, Ranked, _why, plan_changes
from paceline.predictor.search.advice_tables import advice_table, closing_line, infeasible_table
from paceline.predictor.search.budget import Limits, within_limits
from paceline.predictor.search.plan_ranking import (
    best_guesses,
    distinguishable,
    effort,
    layout_of,
    lost_apart,
    shown_plans,
    simplest_first,
    within_noise,
)
from paceline.spec.knob import check_options
from paceline.spec.search_options import SearchOptions


def a_plan(seconds, losses=None, hidden=0.0, ideal=1.0, **plan):
    """A prediction as the ranking reads it."""
    return SimpleNamespace(
        step_seconds=seconds,
        losses=losses or {},
        ideal_seconds=ideal,
        breakdown=SimpleNamespace(hidden_communication_seconds=hidden),
        plan=Plan(**plan),
        cluster=SimpleNamespace(devices_per_node=8),
    )


def test_losses_apart():
    """Network 3 against 1, bubble 1 against idle 0.5, hidden 2 against 0.5: hypot(2, .5, 1.5)."""
    own = a_plan(5.0, {"network": 3.0, "pipeline bubble": 1.0, "recomputation": 9.0}, 2.0)
    fast = a_plan(4.0, {"network": 1.0, "idle": 0.5}, 0.5)
    apart = (2.0**2 + 0.5**2 + 1.5**2) ** 0.5 / 4.0
    assert lost_apart(own, fast) == pytest.approx(apart)
    assert distinguishable(own, fast) == pytest.approx(number("spread.comparison.losses") * apart)
    assert distinguishable(fast, fast) == 0.02
    slower = a_plan(5.0, ideal=3.0)
    assert lost_apart(slower, a_plan(4.0)) == pytest.approx(0.5)


def test_within_noise_on_both_sides():
    fast = a_plan(1.0)
    assert within_noise(a_plan(1.02 - 1e-12), fast)
    assert not within_noise(a_plan(1.021), fast)
    unsure = a_plan(1.1, {"network": 1.0 / number("spread.comparison.losses") * 0.11})
    assert within_noise(unsure, fast)
    assert within_noise(a_plan(0.5), fast)


def test_simplest_of_equals_first_then_by_speed():
    simple, complex_, slow, slower = (
        a_plan(1.01, dp=8),
        a_plan(1.0, dp=4, pp=2),
        a_plan(1.3, tp=8),
        a_plan(1.4),
    )
    plans = [slower, complex_, slow, simple]
    assert best_guesses(plans) == [complex_, simple]
    assert simplest_first(plans) == [simple, complex_, slow, slower]


def test_effort_orders_plans():
    ordered = [
        Plan(dp=16, zero=1),
        Plan(dp=16, zero=1, recompute=Recompute.FULL),
        Plan(dp=8, tp=2),
        Plan(dp=8, cp=2),
        Plan(dp=8, pp=2, micro_batch=1),
        Plan(dp=8, pp=2, micro_batch=1, interleave=2),
        Plan(dp=16, zero=2),
        Plan(dp=16, zero=3),
    ]
    efforts = [effort(SimpleNamespace(plan=plan)) for plan in ordered]
    assert efforts == sorted(efforts)
    assert effort(SimpleNamespace(plan=Plan(dp=16)))[:-2] == efforts[0][:-2], "stage 1 is free"


def test_shown_plans_are_one_per_layout():
    fast = a_plan(1.0, dp=4, pp=2, micro_batch=1, interleave=2)
    plain = a_plan(1.015, dp=4, pp=2, micro_batch=1)
    slow = a_plan(1.05, dp=4, pp=2, micro_batch=1, zero=1)
    other = a_plan(1.5, dp=8)
    sharded = a_plan(1.505, dp=8, zero=3)
    third = a_plan(2.0, tp=8)
    assert shown_plans([other, sharded, slow, plain, fast, third], 3) == [plain, other, third]
    assert shown_plans([other, sharded, slow, plain, fast, third], 2) == [plain, other]
    assert layout_of(Plan(dp=2, tp=4, pp=8, cp=1)) == (4, 8, 2, 1, 1)
    # Slower by more than 2 %: the simpler plan of a layout is not shown.
    rest = a_plan(1.0, dp=8), a_plan(1.5, tp=8, micro_batch=1, sequence_parallel=True)
    simpler = a_plan(1.531, tp=8, micro_batch=1)
    assert shown_plans([*rest, simpler], 5) == list(rest)


def test_tensor_parallelism_across_nodes_is_left_out():
    inside, across = a_plan(2.0, tp=8), a_plan(1.0, tp=16)
    assert shown_plans([across, inside], 5) == [inside]


# Advice.


def test_why_of_the_best_plan():
    losses = {"network": 0.25, "input": 0.05, "idle": 0.1, "x": 0.004}
    best = a_plan(1.0, losses)
    assert _why(best, best) == "network 25%, idle 10%"
    assert _why(own := a_plan(1.0, {"x": 0.004}), own) == "no losses"
    assert _why(own := a_plan(1.0, {"x": 0.005}), own) == "x 0%"


def test_why_of_another_plan():
    best = a_plan(1.0, {"network": 0.25, "idle": 0.1}, ideal=0.6)
    slower = a_plan(1.3, {"network": 0.5, "idle": 0.1, "input": 0.02}, ideal=0.63)
    assert _why(slower, best) == "network +250 ms, slower GEMMs +30.0 ms"
    again = a_plan(1.3, {"network": 0.25, "recomputation": 0.3}, ideal=0.6)
    assert _why(again, best) == "recomputation +300 ms", "a loss that the best does not have"
    same = a_plan(1.001, {"network": 0.251, "idle": 0.1}, ideal=0.6)
    assert _why(same, best) == "equally fast within 0.2 %"
    edge = a_plan(1.002, {"network": 0.252, "idle": 0.1}, ideal=0.6)
    assert _why(edge, best).startswith("network +2")


def an_advice(*seconds, close, simplest):
    best = tuple(Ranked(a_plan(each), "") for each in seconds)
    return Advice(10, 5, best, (), close, simplest, ())


def test_closing_line():
    assert closing_line(an_advice(1.0, close=1, simplest=0)).startswith("No other plan")
    tied = closing_line(an_advice(1.0, 1.01, close=2, simplest=0))
    assert tied.startswith("2 plans are not distinguishable from the fastest")
    assert "plan 1 is also the simplest" in tied
    assert "plan 2 is the simplest" in closing_line(an_advice(1.0, 1.01, close=2, simplest=1))


def test_changes_between_plans():
    before = Plan(dp=8, micro_batch=4)
    assert plan_changes(before, before) == "no change"
    after = Plan(dp=8, micro_batch=2, zero=1, recompute=Recompute.FULL)
    assert plan_changes(before, after) == "--micro-batch 2 --zero 1 --recompute full"
    tp, by_tokens = Plan(tp=8), Plan(tp=8, sequence_parallel=True)
    assert plan_changes(tp, by_tokens) == "--sequence-parallel"
    assert plan_changes(by_tokens, tp) == "--no-sequence-parallel"


def test_tables_of_advice():
    cluster = catalogue.cluster("dgx-a100").with_nodes(2)
    found = [
        paceline.predict("gpt2", cluster, batch=8, seq=128, dp=dp, tp=tp, zero=1)
        for dp, tp in ((16, 1), (8, 2))
    ]
    too_large = Infeasible(Plan(dp=4, tp=4, micro_batch=2, zero=2), 0.5, 99.44e9, "use less")
    advice = Advice(9, 3, tuple(Ranked(own, "") for own in found), (too_large,), 1, 0, ())
    search = SimpleNamespace(
        cluster=replace(cluster, price_per_device_hour=2.0),
        workload=found[0].workload,
        global_batch=128,
        like=Plan(),
    )
    table = advice_table([SimpleNamespace(search=search, advice=advice)])
    shown = [column.title for column in table.columns]
    assert shown[:5] == ["#", "tp", "pp", "dp", "micro"]
    assert "cost / 1M samples" in shown
    assert "cp" not in shown
    assert "shards" not in shown
    assert [table.texts_of(i)[:2] for i in range(4)] == [
        ["1", "2"],
        ["1", "2"],
        ["1", "1"],
        ["16", "8"],
    ]
    large = infeasible_table(advice)
    texts = [large.texts_of(i)[0] for i in range(len(large.columns))]
    assert texts == ["4", "1", "4", "2", "none", "2", texts[6], "99.4", "use less"]
    assert float(texts[6]) in (0.5, 500)


# Budgets.


def a_run(seconds, price, devices=8):
    ranged = [
        None if value is None else SimpleNamespace(value=value, high=1.5 * value)
        for value in (seconds, price)
    ]
    hours = SimpleNamespace(value=seconds * devices / 3600)
    return SimpleNamespace(
        seconds=ranged[0],
        price=ranged[1],
        device_hours=hours,
        prediction=SimpleNamespace(devices=devices),
    )


@pytest.mark.parametrize(
    ("limits", "met", "surely"),
    [
        (Limits(), True, True),
        (Limits(deadline=100.0), True, False),
        (Limits(deadline=99.9), False, False),
        (Limits(deadline=150.0), True, True),
        (Limits(budget=10.0), True, False),
        (Limits(budget=9.9), False, False),
        (Limits(budget=15.0), True, True),
        (Limits(budget=15.0, deadline=99.0), False, False),
        (Limits(budget=9.0, deadline=150.0), False, False),
    ],
)
def test_limits(limits, met, surely):
    run = a_run(100.0, 10.0)
    assert limits.are_met(run) == met
    assert limits.are_met(run, surely=True) == surely


@pytest.mark.parametrize("value", [0.0, -1.0, float("inf"), float("nan"), 1e-320])
def test_impossible_limits(value):
    with pytest.raises(InputError, match="deadline"):
        check_options(SearchOptions, {"deadline": value}, "advise")
    if value != 1e-320:
        with pytest.raises(InputError, match="budget"):
            check_options(SearchOptions, {"budget": value}, "advise")


def test_within_limits():
    runs = [a_run(200.0, 5.0, 4), a_run(100.0, 10.0, 16), a_run(50.0, 40.0, 64)]

    def found(**limits):
        return list(within_limits(runs, Limits(**limits)))

    assert found(budget=20.0) == [runs[1], runs[0]], "the fastest first"
    assert found(deadline=100.0) == [runs[1], runs[2]], "fewest device-hours first"
    assert found(budget=20.0, deadline=150.0) == [runs[1]]
    with pytest.raises(InputError, match=r"the fastest takes .* on 64 devices, .* costs 5"):
        found(budget=1.0)
    runs[0].price = None
    with pytest.raises(InputError, match="needs a price"):
        found(budget=20.0)
    assert found(deadline=100.0) == [runs[1], runs[2]]
