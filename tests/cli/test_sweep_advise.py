"""``paceline sweep`` and ``paceline advise`` as people type them."""

import csv
import json

import pytest
from click.testing import CliRunner

from commandline import next_commands
from paceline.cli.main import cli
from paceline.errors import InputError, PacelineError, UnknownNameError
from paceline.predictor.sweep.sweep_tables import describe_axis
from paceline.spec.axis_options import parse_axis

SWEEP = "sweep --model alexnet --cluster hkbu-v100-pcie -j 8x1 "


def run(line):
    result = CliRunner().invoke(cli, line.split(), standalone_mode=False)
    if result.exception is not None:
        raise result.exception
    return result.stdout


def test_one_axis_is_a_table_a_figure_and_its_crossover(tmp_path):
    figure = tmp_path / "f7.svg"
    sweep = SWEEP.replace("hkbu-v100-pcie", "hkbu-v100-pcie-100g")
    text = run(f"{sweep} --batch 26 --axis link=1gbit..4000gbit:20 --figure {figure}")
    assert "samples/s" in text and "●" in text and "Next: paceline sweep" in text
    assert "mp is faster below link" in text
    assert max(map(len, text.splitlines()[:-1])) <= 100
    assert figure.read_text().startswith("<svg")


def test_two_axes_are_a_surface_and_every_point_is_in_the_csv(tmp_path):
    path = tmp_path / "table.csv"
    text = run(f"{SWEEP} --batch 4 --axis link=1gbit..100gbit:5 --axis nodes=2,8 --out {path}")
    assert "downwards" in text
    rows = list(csv.DictReader(path.open()))
    assert len(rows) == 10
    assert float(rows[0]["link"]) == 1.25e8
    assert float(rows[0]["dp_step_seconds"]) > 0


def test_sweep_json_is_versioned_with_crossovers():
    document = json.loads(run(f"{SWEEP} --axis batch=1,64 --json"))
    assert document["schema"] == "paceline/sweep/1"
    assert document["axes"] == {"batch": [1, 64]}
    assert document["crossovers"][0][0]["faster_beyond"] == "dp"


def test_axes_are_written_as_people_write_them():
    assert parse_axis("nodes=2..5") == ("nodes", [2, 3, 4, 5])
    name, values = parse_axis("link=1gbit..100gbit:3")
    assert (name, values) == ("link", pytest.approx([1.25e8, 1.25e9, 1.25e10]))
    assert describe_axis("link", 1.25e9) == "10 Gbit/s"
    assert len(parse_axis("batch=1..4096")[1]) <= 40


@pytest.mark.parametrize("text", ["link", "link=", "nodes=0..4", "link=10gbit..1gbit", "nodes=a"])
def test_axes_that_make_no_sense_are_refused_with_an_example(text):
    with pytest.raises(InputError) as caught:
        parse_axis(text)
    assert "=" in caught.value.hint


def test_an_unknown_axis_is_named():
    with pytest.raises(UnknownNameError, match="bandwith"):
        parse_axis("bandwith=1..2")


def test_advice_is_a_table_with_reasons_and_a_command_to_go_on():
    text = run("advise --model gpt2 --seq 1024 --cluster dgx-a100 --nodes 2 --global-batch 64")
    assert "plans tried" in text and "Losses of plan 1" in text
    assert "not distinguishable" in text or "No other plan is equally fast" in text
    assert "Next: paceline predict --model" in text


def test_the_command_that_advice_ends_with_runs():
    job = "--model gpt2 --seq 1024 --cluster dgx-a100 --nodes 1 --global-batch 32"
    text = run(f"advise {job} --optimizer-state 8bit")
    (line,) = next_commands(text)
    assert "--optimizer-state 8bit" in line
    assert "step" in run(line.removeprefix("paceline "))


def test_advice_as_json_names_price_and_plans():
    document = json.loads(
        run(
            "advise --model resnet50 --cluster dgx-1 --nodes 1..2 --global-batch 256 "
            "--price 2 --top 2 --json"
        )
    )
    assert document["schema"] == "paceline/advice/1"
    first, second = document["searches"]
    assert {first["nodes"], second["nodes"]} == {1, 2}
    assert first["versus_best"]["value"] == 1.0 > second["versus_best"]["high_90"]
    assert first["best"][0]["price_per_million_samples"] > 0
    assert first["plans_tried"] >= first["plans_fitting"] > 0


PER_LAYER = "advise --per-layer --cluster hkbu-v100-pcie -j 8x1 --global-batch"


def test_a_choice_per_layer_is_a_table_beside_both_ways_for_all():
    text = run(f"{PER_LAYER} 256 --model alexnet")
    rows = {line.split()[0]: line.split()[-1] for line in text.splitlines() if line}
    assert (rows["conv5"], rows["fc6"]) == ("data", "model")
    assert "all data parallel" in text and "all model parallel" in text
    assert "Next: paceline sweep" in text
    assert max(map(len, text.splitlines()[:-1])) <= 100


def test_a_choice_per_layer_is_json_with_every_part():
    document = json.loads(run(f"{PER_LAYER} 256 --model alexnet --json"))
    assert document["schema"] == "paceline/per_layer_advice/1"
    assert [part["way"] for part in document["parts"]] == ["data"] * 5 + ["model"] * 3
    assert document["step_seconds"] < document["all_data_step_seconds"]


@pytest.mark.parametrize(
    "line",
    [
        f"{PER_LAYER} 255 --model alexnet",
        f"{PER_LAYER} 256 --model gpt2",
        "advise --per-layer --model alexnet --cluster dgx-1 --nodes 1..2 --global-batch 256",
        "advise --model gpt2 --cluster dgx-a100 --nodes x --global-batch 8",
        "advise --model gpt2 --cluster dgx-a100 --nodes 4..2 --global-batch 8",
        "advise --model resnet50 --cluster workstation-rtx4090 --nodes 2 --global-batch 8",
        "sweep --model alexnet --axis nodes=2..4",
        f"{SWEEP} --axis nodes=2..4 --axis nodes=2..4",
        f"{SWEEP} --axis nodes=2..4 --overlap merged",
    ],
)
def test_mistakes_end_with_a_hint(line):
    with pytest.raises(PacelineError) as caught:
        run(line)
    assert caught.value.hint
