"""Advice for a small network on devices with little memory, each number computed again."""

import math
import re
from dataclasses import replace

import pytest

from paceline.errors import InputError
from paceline.hardware import catalogue
from paceline.predictor.memory.fit_probability import LIKELY, room_bytes
from paceline.predictor.plan.plan import Plan
from paceline.predictor.plan.plan_choices import Recompute
from paceline.predictor.predict import predict
from paceline.predictor.search import PlanSearch, advise
from paceline.units import format_bytes, format_seconds
from paceline.workload.workload import Workload

BATCH = 64


def search_with(memory_bytes):
    place = catalogue.cluster("dgx-a100").with_nodes(2)
    place = replace(place, device=replace(place.device, memory_bytes=memory_bytes))
    workload = Workload.of("gpt_h128_l4", 1, 256, "bf16", "adam")
    return PlanSearch(workload, place, BATCH, (), Plan(framework="megatron-lm"))


def predicted(search, plan):
    workload = search.workload.with_batch(BATCH // plan.dp)
    return predict(workload, search.cluster.with_devices(plan.devices), plan)


@pytest.fixture(scope="module")
def tight():
    search = search_with(115e6)
    return search, advise(search, 3)


def test_best_plans_fit_and_come_in_order(tight):
    search, advice = tight
    found = search.run()
    room = room_bytes(115e6, LIKELY)
    steps = [own.prediction.step_seconds for own in advice.best]
    for own in advice.best:
        assert float(own.prediction.memory.total_bytes) <= room
        again = predicted(search, own.prediction.plan)
        assert again.step_seconds == pytest.approx(own.prediction.step_seconds)
    assert steps == sorted(steps)
    assert advice.tried > found.size
    assert advice.fitting >= int((found.memory_bytes <= room).sum()) > 0
    layouts = [(o.prediction.plan.tp, o.prediction.plan.pp) for o in advice.best]
    assert len(set(layouts)) == len(layouts)
    # Fewer plans on request.
    assert len(advise(search, 1).best) == 1


def test_faster_plans_that_do_not_fit(tight):
    search, advice = tight
    room = room_bytes(115e6, LIKELY)
    assert len(advice.infeasible) >= 2
    remedies = [own.remedy for own in advice.infeasible]
    assert any(text.startswith("fits with") for text in remedies)
    assert any(text.endswith("use larger tp or pp") for text in remedies)
    for own in advice.infeasible:
        again = predicted(search, own.plan)
        assert own.step_seconds == pytest.approx(again.step_seconds)
        assert own.step_seconds < advice.best[0].prediction.step_seconds
        assert own.memory_bytes == pytest.approx(float(again.memory.total_bytes))
        assert own.memory_bytes > room
        if own.remedy.startswith("needs"):
            assert own.remedy.startswith(f"needs {format_bytes(own.memory_bytes - room)} more")
            continue
        options = dict(re.findall(r"--(micro-batch|zero|recompute) (\w+)", own.remedy))
        changed = replace(
            own.plan,
            micro_batch=int(options.get("micro-batch", own.plan.micro_batch)),
            zero=int(options.get("zero", own.plan.zero)),
            recompute=Recompute(options.get("recompute", own.plan.recompute)),
            sequence_parallel=own.plan.sequence_parallel or "--sequence-parallel" in own.remedy,
        )
        fitting = predicted(search, changed)
        assert float(fitting.memory.total_bytes) <= room
        assert own.remedy.endswith(format_seconds(fitting.step_seconds))


def test_nothing_fits():
    """The smallest plan needs 88 MB; 10 MB per device are too little on 2 nodes."""
    search = search_with(10e6)
    smallest = float(search.run().memory_bytes.min())
    nodes = math.ceil(2 * smallest / room_bytes(10e6))
    with pytest.raises(InputError, match=re.escape(format_bytes(smallest))) as caught:
        advise(search, 3)
    assert f"about {nodes} nodes or more" in caught.value.hint


def test_a_roomy_device_is_data_parallel():
    best = advise(search_with(80e9), 2).best[0]
    assert best.prediction.plan.dp == 16
    assert not advise(search_with(80e9), 2).infeasible
    shares = [float(share) for share in re.findall(r"(\d+)%", best.why)]
    losses = sorted(best.prediction.losses.values(), reverse=True)[: len(shares)]
    expected = [100 * loss / best.prediction.step_seconds for loss in losses]
    assert shares == pytest.approx(expected, abs=0.5)
