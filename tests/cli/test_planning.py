"""What planners ask: whole trainings, inverse questions, budgets and deadlines."""

import json
import re

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
    for word in ("device-hours", "price", "MWh", "goodput", "Daly", "assumes", "Next:"):
        assert word in text


def test_predict_tells_the_bandwidth_that_is_needed():
    found = json.loads(run(f"{PREDICT} --target-efficiency 70% --json"))["bandwidth"]
    assert found["target_efficiency"] == 0.7
    assert found["links"][0]["needed_bytes_per_second"] > 0


def test_every_row_of_days_price_and_bandwidth_names_its_model_and_link():
    text = run(
        "paceline predict --model resnet50,vgg16 --cluster dgx-a100 --nodes 2,4 "
        "--link ib_hdr_200g,eth_100g --epochs 90 --price 2 --target-efficiency 95%"
    )
    compared, rest = text.split("\n115 M samples\n")
    trained, changed = rest.split("For a scaling efficiency")
    for model in ("resnet50", "vgg16"):
        for link in ("ib_hdr_200g", "eth_100g"):
            for place in ("2x8", "4x8"):
                row = rf"^{model} +{link} +{place} "
                assert len(re.findall(row, compared, re.MULTILINE)) == 1
                assert len(re.findall(row, trained, re.MULTILINE)) == 1
                assert len(re.findall(row, changed, re.MULTILINE)) == 2, "each link changed alone"
    assert "price /" in compared


def test_a_plan_that_does_not_fit_is_not_emitted():
    with pytest.raises(InputError, match="does not fit"):
        run("paceline predict --model gpt3_175b --cluster dgx-h100 --nodes 2 --emit megatron")


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (f"{PREDICT} --mtbf 3h", "--tokens or --epochs"),
        (f"{PREDICT} --tokens 15T", "does not train on tokens"),
        (f"{PREDICT} --epochs many", "not a count"),
        (f"{PREDICT} --epochs 90 --mtbf 3", "no unit"),
        (f"{PREDICT} --target-efficiency 300%", "out of range"),
        (f"{PREDICT} --epochs 90 --mtbf 1min", "leave less than 1 % of the time"),
        (f"{ADVISE} --deadline 3d", "--tokens or --epochs"),
        (f"{ADVISE} --tokens 1T --deadline 1s", "meets the limits"),
    ],
)
def test_mistakes_are_told_with_a_hint(line, words):
    with pytest.raises(InputError) as told:
        run(line)
    assert words in told.value.message
    assert told.value.hint


@pytest.mark.parametrize(
    ("change", "column"),
    [(" --link 100gbit,400gbit", "link"), (" -j 1x8,2x8", "nodes x GPUs")],
)
def test_lists_give_one_search_each(change, column):
    line = ADVISE.replace(" --nodes 1,2,4", "" if "-j" in change else " --nodes 2")
    found = json.loads(run(f"{line}{change} --top 1 --json"))["searches"]
    assert len(found) == 2
    names = {"link": "link", "nodes x GPUs": "nodes"}
    assert len({one["best"][0][names[column]] for one in found}) == 2
    assert column.split()[0] in run(f"{line}{change} --top 1")


def test_a_network_between_nodes_does_not_matter_for_one_node():
    line = ADVISE.replace(" --nodes 1,2,4", " --nodes 1")
    assert "best" in json.loads(run(f"{line} --link 100gbit,400gbit --top 1 --json"))


def test_days_and_cost_of_each_number_of_nodes():
    text = run(f"{ADVISE} --tokens 100G --nic-price 1000 --electricity 0.3 --json")
    found = json.loads(text)["searches"]
    assert sorted(one["nodes"] for one in found) == [1, 2, 4]
    rates = [one["best"][0]["samples_per_second"] for one in found]
    assert rates == sorted(rates, reverse=True)
    ratios = [one["versus_best"]["value"] for one in found]
    assert ratios == pytest.approx([rate / rates[0] for rate in rates])
    assert all(one["training"]["seconds"]["value"] > 0 for one in found)
    cheaper = json.loads(run(f"{ADVISE} --tokens 100G --json"))["searches"]
    for dear, cheap in zip(found, cheaper, strict=True):
        assert dear["training"]["price"]["value"] > cheap["training"]["price"]["value"]


def test_a_deadline_gives_the_cheapest_and_a_budget_the_quickest():
    for limit, order in (("--deadline 900d", "device_hours"), ("--budget 90M", "seconds")):
        text = run(f"{ADVISE} --tokens 100G {limit} --json")
        values = [own[order]["value"] for own in json.loads(text)["within_limits"]]
        assert len(values) == 3
        assert values == sorted(values)
