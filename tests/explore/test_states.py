"""What a browser may send: known names and numbers within bounds, nothing that is opened."""

import json
import random
import re
import shlex
import tempfile
from pathlib import Path

import pytest
from click.testing import CliRunner

import paceline as pl
from paceline.analysis.configurations import grouped
from paceline.cli.main import cli
from paceline.errors import PacelineError
from paceline.explore.answers import answer, job_of
from paceline.explore.board import ComparisonBoard
from paceline.explore.page import explorer_page
from paceline.explore.panels import panel
from paceline.explore.state import ExplorerState, state_of
from paceline.explore.uploads import Uploads
from paceline.spec.job_options import JobOptions
from paceline.spec.knob import knobs_of
from paceline.spec.training_options import TrainingOptions
from paceline.workload import zoo


@pytest.mark.parametrize(
    "given",
    [
        {"model": "/etc/passwd"},
        {"model": "x.py:make"},
        {"model": "config.json"},
        {"cluster": "/etc/passwd"},
        {"cluster": "lab.toml"},
        {"link": "400gbit"},
        {"model": "upload:1:nothing"},
        {"batch": -1},
        {"batch": 1e9},
        {"batch": True},
        {"nodes": "1; rm"},
        {"flops": float("nan")},
        {"flops": 1000},
        {"framework": "nope"},
        {"trace": "x.csv"},
        {"precision": ["fp32"]},
    ],
)
def test_what_is_not_known_is_refused(given):
    with pytest.raises(PacelineError):
        state_of(given, {})


def test_the_answer_is_that_of_predict_and_of_the_command():
    state = state_of({"model": "resnet50", "nodes": 4, "batch": 32, "link_rate": 0.25}, {})
    found = answer(job_of(state, {}))
    told = pl.predict("resnet50", "dgx-1", nodes=4, batch=32, scale="link=0.25")
    here = next(row for row in found.rows if row["nodes"] == 4)
    assert here["samples_per_second"] == pytest.approx(told.samples_per_second, rel=1e-9)
    assert (here["low"], here["high"]) == pytest.approx(told.samples_per_second_interval, rel=1e-9)
    assert found.document()["command"] == (
        "paceline predict --model resnet50 --cluster dgx-1 --batch 32 --scale link=0.25 -j 4x8"
    )


@pytest.mark.parametrize(
    "choice",
    [
        {"recompute": "full"},
        {"recompute": "full", "zero": 3},
        {"framework": "megatron-lm"},
        {"framework": "torch-fsdp"},
    ],
)
def test_every_point_of_the_curve_is_the_answer_of_predict(choice):
    state = {"model": "gpt2", "cluster": "dgx-a100", "precision": "bf16", "batch": 4, "nodes": 4}
    for row in answer(job_of(state_of({**state, **choice}, {}), {})).rows[:3]:
        told = pl.predict(
            "gpt2", "dgx-a100", nodes=row["nodes"], batch=4, precision="bf16", **choice
        )
        assert row["samples_per_second"] == pytest.approx(told.samples_per_second, rel=1e-9)


def test_what_is_not_chosen_is_as_in_predict():
    state = state_of({"model": "llama3_8b", "cluster": "dgx-h100", "nodes": 2}, {})
    found = answer(job_of(state, {}))
    told = pl.predict("llama3_8b", "dgx-h100", nodes=2)
    assert (told.framework, told.workload.batch, told.workload.precision) == (
        "torch-fsdp",
        16,
        "bf16",
    )
    here = next(row for row in found.rows if row["nodes"] == 2)
    assert here["samples_per_second"] == pytest.approx(told.samples_per_second, rel=1e-9)
    column = found.document()
    assert column["fits"] and column["notes"][0].startswith("chosen: FSDP over 16 devices")


@pytest.mark.parametrize("choice", [{"zero": 2}, {"tp": 2, "model": "gpt2_small"}])
def test_plans_that_have_to_be_scheduled_answer_too(choice):
    found = answer(job_of(state_of({"nodes": 4, "batch": 8, **choice}, {}), {}))
    assert {row["nodes"] for row in found.rows} >= {1, 2, 4, 8}


def test_a_replica_of_several_nodes_has_a_curve_over_those_that_it_fills():
    choice = {"model": "gpt2_small", "tp": 4, "pp": 6, "precision": "fp16", "batch": 12}
    found = answer(job_of(state_of({"nodes": 6, **choice}, {}), {}))
    assert [row["nodes"] for row in found.rows] == [3, 6, 12]


def test_an_uploaded_graph_is_data():
    uploads = Uploads()
    key = uploads.add("own.json", json.dumps(zoo.build("alexnet").to_json()).encode())
    found = answer(job_of(state_of({"model": key, "nodes": 2}, uploads), uploads))
    assert found.rows
    with pytest.raises(PacelineError, match=r"expected config\.json"):
        uploads.add("own.py", b"print('no')")
    for content in (b"{", b"[" * 100_000, b"\xff", b"{}", b'{"model_type": "nope"}'):
        with pytest.raises(PacelineError):
            uploads.add("own.json", content)


def config(**values):
    shape = {"model_type": "gpt2", "n_embd": 64, "n_layer": 2, "n_head": 2, "vocab_size": 100}
    return json.dumps({**shape, **values}).encode()


def test_a_name_of_an_upload_never_stands_for_two_models():
    uploads = Uploads()
    keys = [uploads.add("config.json", config(n_layer=n)) for n in range(1, 26)]
    assert len(set(keys)) == 25 and len(uploads) == 20
    assert uploads.add("config.json", config(n_layer=25)) == keys[-1]


FILES = Path(__file__).parents[1] / "fixtures"
CLUSTER = b"""
[cluster.ours]
device = "a100_sxm_80gb"
devices_per_node = 4
intra = "nvlink3"
inter = "eth_100g"
nics_per_node = 2
"""


def uploaded(uploads, name, content=None):
    content = (FILES / name).read_bytes() if content is None else content
    key = uploads.add(name.split("/")[-1], content)
    return uploads[key].option, key


def test_a_cluster_file_is_a_cluster_of_the_board():
    uploads = Uploads()
    option, key = uploaded(uploads, "ours.toml", CLUSTER)
    column = answer(job_of(state_of({option: key, "nodes": 2}, uploads), uploads)).document()
    assert column["title"] == "resnet50 on ours, 2x4"
    assert column["command"] == "paceline predict --model resnet50 --cluster ours.toml -j 2x4"


def test_a_log_of_collectives_is_an_allreduce_curve():
    uploads = Uploads()
    option, key = uploaded(uploads, "logs/nccl_all_reduce.log")
    found = answer(job_of(state_of({option: key, "nodes": 2}, uploads), uploads))
    told = pl.predict(
        "resnet50", "dgx-1", nodes=2, allreduce_curve=FILES / "logs/nccl_all_reduce.log"
    )
    assert found.prediction.step_seconds == told.step_seconds
    assert "--allreduce-curve nccl_all_reduce.log" in found.document()["command"]


def test_layer_times_are_replayed():
    uploads = Uploads()
    option, key = uploaded(uploads, "traces/layers.csv")
    state = state_of({option: key, "model": "", "nodes": 2}, uploads)
    found = answer(job_of(state, uploads))
    told = pl.predict(None, "dgx-1", nodes=2, trace=FILES / "traces/layers.csv")
    assert found.prediction.step_seconds == told.step_seconds
    assert found.document()["command"] == (
        "paceline predict --cluster dgx-1 --trace layers.csv -j 2x8"
    )
    with pytest.raises(PacelineError, match="no model selected"):
        state_of({"model": ""}, uploads)


def test_a_training_log_is_drawn_over_the_prediction():
    uploads = Uploads()
    option, key = uploaded(uploads, "logs/tf_cnn_horovod.log")
    state = state_of({option: key, "model": "vgg16", "nodes": 2}, uploads)
    column = answer(job_of(state, uploads), grouped([uploads[key].value])).document()
    assert [line["label"] for line in column["lines"]] == [
        "measured: vgg16 b=32, tf_cnn_benchmarks"
    ]
    assert "log" not in column["command"]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"trace": "/etc/passwd"}, "trace must be an uploaded file"),
        ({"allreduce_curve": "upload:0:x.log"}, "the uploaded file has expired"),
        ({"cluster": "upload:0:x.toml"}, "the uploaded file has expired"),
    ],
)
def test_evidence_is_an_uploaded_file_and_no_path(given, message):
    with pytest.raises(PacelineError, match=message):
        state_of(given, Uploads())


def test_a_file_is_a_value_of_its_own_option_only():
    uploads = Uploads()
    _, key = uploaded(uploads, "ours.toml", CLUSTER)
    with pytest.raises(PacelineError, match=r"ours\.toml is no model"):
        state_of({"model": key}, uploads)


@pytest.mark.parametrize("name", ["mine.json", "mine.onnx"])
def test_errors_name_an_upload_as_the_browser_does(name):
    pytest.importorskip("onnx")
    with pytest.raises(PacelineError, match="mine") as caught:
        Uploads().add(name, b'{"hidden_size": 64}')
    assert tempfile.gettempdir() not in caught.value.message + caught.value.hint


def test_a_json_file_that_is_too_large_is_not_parsed(monkeypatch):
    monkeypatch.delattr("paceline.explore.uploads.parsed_json")
    with pytest.raises(PacelineError, match="larger than 4 MB"):
        Uploads().add("config.json", b"[" + b"{}," * 2_000_000 + b"{}]")


def test_the_command_of_an_upload_asks_for_its_file():
    uploads = Uploads()
    key = uploads.add("config.json", config())
    state = state_of({"model": key, "nodes": 2}, uploads)
    assert state.command(8)[:4] == ["paceline", "predict", "--model", "config.json"]


def test_parts_of_a_step_and_of_memory_add_up():
    choice = {"model": "llama3_70b", "cluster": "dgx-h100", "nodes": 4, "tp": 8, "pp": 4}
    for given in (choice, {"recompute": "full"}, {"model": "vgg16", "nodes": 2, "batch": 4}):
        column = answer(job_of(state_of(given, {}), {})).document()
        assert sum(column["step"]["parts"].values()) == pytest.approx(column["step"]["seconds"][0])
        memory = column["memory"]
        assert sum(memory["parts"].values()) == pytest.approx(memory["total_bytes"])


def test_a_point_of_the_plans_states_its_plan_in_the_form():
    choice = {"model": "gpt2_xl", "cluster": "dgx-a100", "nodes": 2, "batch": 8}
    for point in panel("plans", job_of(state_of(choice, {}), {}))["plans"]:
        found = answer(job_of(state_of({**choice, **point["options"]}, {}), {})).prediction
        assert found.tokens_per_second == pytest.approx(point["throughput"], rel=1e-9)
        assert float(found.memory.total_bytes) == pytest.approx(point["memory_bytes"], rel=1e-9)


def random_plans(count):
    """Models, clusters and plans that can run, chosen by a seed."""
    chance = random.Random(37)
    vision = [{}, {"batch": 12}, {"batch": 64}, {"framework": "horovod-torch"}, {"link_rate": 0.25}]
    sequences = [
        *({}, {"zero": 3}, {"zero": 3, "recompute": "full"}, {"global_batch": 192}, {"tp": 8}),
        *({"pp": 2, "micro_batches": 8, "batch": 8}, {"link": "eth_10g"}, {"flops": 2.0}),
    ]
    for _ in range(count):
        model = chance.choice(["resnet50", "vgg16", "bert_large", "llama3_8b"])
        plan = chance.choice(sequences if model in ("bert_large", "llama3_8b") else vision)
        cluster = chance.choice(["dgx-1", "dgx-a100", "dgx-h100", "p4d.24xlarge"])
        yield {"model": model, "cluster": cluster, "nodes": chance.choice([2, 3, 4, 6, 12]), **plan}


@pytest.mark.parametrize(
    "plan", random_plans(50), ids=lambda plan: "-".join(map(str, plan.values()))
)
def test_board_curve_command_and_python_agree_to_the_last_digit(plan):
    found = answer(job_of(state_of(plan, {}), {}))
    factors = {"flops": "flops", "memory": "memory", "link_rate": "link"}
    scale = {factors[name]: plan[name] for name in factors if name in plan}
    options = {name: value for name, value in plan.items() if name not in factors}
    model, cluster = options.pop("model"), options.pop("cluster")
    python = pl.predict(model, cluster, **options, **({"scale": scale} if scale else {}))
    rates = [python.samples_per_second, *python.samples_per_second_interval]
    column = found.document()
    assert column["throughput"] == rates
    assert column["memory"]["total_bytes"] == float(python.memory.total_bytes)
    here = next(row for row in found.rows if row["nodes"] == plan["nodes"])
    assert [here["samples_per_second"], here["low"], here["high"]] == rates
    other = found.rows[0]
    there = found.job.predicted(int(other["nodes"]))
    assert other["samples_per_second"] == pytest.approx(there.samples_per_second, rel=1e-13)
    printed = CliRunner().invoke(cli, [*shlex.split(column["command"])[1:], "--json"])
    document = json.loads(printed.output)
    assert document["predictions"][0]["samples_per_second"] == rates[0]


def test_candidates_are_columns_compared_with_the_pinned_one():
    asked = []

    def answered(given):
        asked.append(given)
        return answer(job_of(state_of(given, {}), {}))

    board = ComparisonBoard(answered)
    candidates = [{"nodes": 2}, {"nodes": 4}, {"nodes": "x"}]
    first, second, wrong = board.document({"candidates": candidates, "pinned": 1})["candidates"]
    assert "ratio" not in second and wrong["error"].startswith("nodes must be an integer")
    assert first["ratio"][0] == pytest.approx(first["throughput"][0] / second["throughput"][0])
    assert first["ratio"][1] < first["ratio"][0] < first["ratio"][2]
    assert first["ratio"][2] / first["ratio"][1] < first["throughput"][2] / first["throughput"][1]
    board.document({"candidates": candidates[:2], "pinned": 0})
    assert len(asked) == 3  # an edit computes one candidate again


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"candidates": []},
        {"candidates": [{}] * 9},
        {"candidates": ["x"]},
        {"candidates": [{}], "pinned": 1},
        {"candidates": [{}], "pinned": True},
    ],
)
def test_a_board_that_is_not_one_is_refused(given):
    with pytest.raises(PacelineError):
        ComparisonBoard(lambda _: pytest.fail("computed")).document(given)


def test_the_length_of_a_training_gives_days_and_cost():
    given = {"model": "llama3_8b", "cluster": "dgx-h100", "tokens": "1T", "price": "2.5"}
    found = answer(job_of(state_of(given, {}), {})).document()
    run = pl.predict("llama3_8b", "dgx-h100", nodes=8).training(tokens=1e12)
    assert found["training"]["days"]["value"] == pytest.approx(run.seconds.value / 86400)
    assert found["training"]["cost"]["value"] == pytest.approx(2.5 * run.device_hours.value)
    assert found["command"].endswith("--tokens 1T --price 2.5")


def test_the_best_plans_are_listed_fastest_first():
    choice = {"model": "gpt2_small", "cluster": "dgx-a100", "nodes": 2, "batch": 8}
    html = panel("plans", job_of(state_of(choice, {}), {}))["html"]
    steps = [int(step) for step in re.findall(r">\s*(\d+) \[", html)]
    assert len(steps) > 2 and steps == sorted(steps)
    assert html.startswith("<p>Fastest first.")


def test_defaults_are_a_state_themselves():
    assert state_of({}, {}) == ExplorerState()


def test_the_form_has_a_field_for_every_option_that_opens_no_file():
    page = explorer_page()
    names = set(re.findall(r'name="([a-z_]+)"', page))
    left_out = {"input", "topology", "scale"}  # a file; nodes and processes; three factors
    assert names >= (knobs_of(JobOptions).keys() | knobs_of(TrainingOptions).keys()) - left_out
    assert not names & left_out


def test_a_device_replaces_the_cluster():
    choice = {"cluster": "", "device": "a100_sxm_80gb", "nodes": 2, "processes": 4, "batch": 32}
    found = answer(job_of(state_of(choice, {}), {}))
    told = pl.predict("resnet50", device="a100_sxm_80gb", topology="2x4", batch=32)
    assert found.prediction.samples_per_second == told.samples_per_second
    printed = found.document()["command"]
    assert "--cluster" not in printed and printed.endswith(
        "--device a100_sxm_80gb --batch 32 -j 2x4"
    )
    rows = {row["nodes"]: row["samples_per_second"] for row in found.rows}
    for nodes in (1, 4):
        other = pl.predict("resnet50", device="a100_sxm_80gb", topology=f"{nodes}x4", batch=32)
        assert rows[nodes] == pytest.approx(other.samples_per_second, rel=1e-13)
    with pytest.raises(PacelineError, match="both a cluster and a device"):
        state_of({**choice, "cluster": "dgx-1"}, {})
    with pytest.raises(PacelineError, match="no cluster selected"):
        state_of({"cluster": ""}, {})


def test_failures_and_prices_of_a_training_are_fields():
    run = {"tokens": "1T", "price": "2.5", "mtbf": "1000h", "nic_price": "0.5"}
    given = {"model": "llama3_8b", "cluster": "dgx-h100", **run}
    command = answer(job_of(state_of(given, {}), {})).document()["command"]
    assert "--mtbf" in command and "--nic-price 0.5" in command


@pytest.mark.parametrize(
    ("choice", "keyword"),
    [
        ({"expert_imbalance": "1.5"}, {"expert_imbalance": 1.5}),
        ({"fused_attention": "false"}, {"fused_attention": False}),
        ({"bucket": "1MiB"}, {"bucket": "1MiB"}),
        ({"cp_impl": "ring", "cp": "2"}, {"cp_impl": "ring", "cp": 2}),
        ({"tp": ""}, {}),
    ],
)
def test_fields_are_keywords(choice, keyword):
    assert state_of(choice, {}).keywords() == keyword


def test_measured_options_change_every_point_of_the_curve():
    job = {"model": "resnet50", "nodes": 2, "batch": 32}
    rows = answer(job_of(state_of({**job, "input_time": "9s"}, {}), {})).rows
    assert all(row["step_seconds"] >= 9 for row in rows)
