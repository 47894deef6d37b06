"""What planners ask: whole trainings, inverse questions, budgets and deadlines."""

import json

import pytest

from commandline import run
from paceline.errors import InputError

PREDICT = "paceline predict --model resnet50 --batch 64 --cluster hkbu-v100-pcie -j 8x4"
ADVISE = (
    "paceline advise --model gpt_h1024_l8_a16 --seq 512 --cluster p4d.24xlarge --nodes 1,2,4 "
    "--global-batch 256"
)


def test_predict_tells_days_price_and_energy():
    text = run(f"{PREDICT} --epochs 90 --price 2")
    for word in ("device-hours", "price", "MWh", "goodput", "Daly", "assumed", "Next:"):
        assert word in text


def test_predict_tells_the_bandwidth_that_is_needed():
    found = json.loads(run(f"{PREDICT} --target-efficiency 70% --json"))["bandwidth"]
    assert found["target_efficiency"] == 0.7
    assert found["links"][0]["needed_bytes_per_second"] > 0


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (f"{PREDICT} --mtbf 3h", "whole training"),
        (f"{PREDICT} --tokens 15T", "no sequences"),
        (f"{PREDICT} --epochs many", "not a count"),
        (f"{PREDICT} --epochs 90 --mtbf 3", "no unit"),
        (f"{PREDICT} --target-efficiency 300%", "impossible"),
        (f"{PREDICT} --epochs 90 --mtbf 1min", "before it gets anywhere"),
        (f"{ADVISE} --deadline 3d", "whole training"),
        (f"{ADVISE} --tokens 1T --deadline 1s", "meets the limits"),
        (f"{ADVISE} --tokens 1T", "how long"),
    ],
)
def test_mistakes_are_told_with_a_hint(line, words):
    with pytest.raises(InputError) as told:
        run(line)
    assert words in told.value.message
    assert told.value.hint


def test_a_deadline_gives_the_cheapest_and_a_budget_the_quickest():
    for limit, order in (("--deadline 900d", "device_hours"), ("--budget 90M", "seconds")):
        text = run(f"{ADVISE} --tokens 100G {limit} --json")
        values = [own[order]["value"] for own in json.loads(text)["within_limits"]]
        assert len(values) == 3
        assert values == sorted(values)
