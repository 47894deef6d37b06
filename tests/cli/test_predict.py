"""``paceline predict`` and ``paceline whatif`` on the command line."""

import json

import pytest
from click.testing import CliRunner

from paceline.cli.commands.predict import command as predict
from paceline.cli.commands.whatif import command as whatif
from paceline.errors import PacelineError

RESNET = ("--model", "resnet50", "--batch", "64")
HKBU = ("--cluster", "hkbu-v100-pcie")


def run(command, *arguments):
    answer = CliRunner().invoke(command, list(arguments), catch_exceptions=True)
    if isinstance(answer.exception, PacelineError):
        raise answer.exception
    assert answer.exit_code == 0, answer.output
    return answer.output


def test_one_place_is_described():
    text = run(predict, *RESNET, *HKBU, "-j", "2x4")
    assert text.startswith("resnet50, batch 64, fp32 on hkbu-v100-pcie 2x4, dp 8, torch-ddp")
    assert max(map(len, text.splitlines())) <= 100
    last = text.splitlines()[-1]
    assert (
        last == "Next: paceline whatif --model resnet50 --batch 64 --cluster hkbu-v100-pcie -j 2x4"
    )


def test_several_places_are_compared():
    text = run(predict, *RESNET, *HKBU, "-j", "1x4,2x4,8x4", "--framework", "wfbp")
    rows = [line for line in text.splitlines() if line[:3] in ("1x4", "2x4", "8x4")]
    assert [row.split()[1:3] for row in rows] == [["dp", "4"], ["dp", "8"], ["dp", "32"]]
    assert max(map(len, text.splitlines())) <= 100
    assert "90 %" in text


def test_links_that_nobody_states_are_the_usual_ones_which_is_said_and_less_certain():
    place = (*RESNET, "--device", "k80", "-j", "2x1")
    text = " ".join(run(predict, *place).split())
    assert "assumes 1 x eth_10g per node (network not stated)" in text
    inside = run(predict, *RESNET, "--device", "k80", "-j", "1x2")
    assert "assumes pcie3_x16 inside a node (not stated)" in inside
    assumed, stated = (
        json.loads(run(predict, *place, *link, "--json"))["predictions"][0]
        for link in ((), ("--link", "eth_10g"))
    )
    assert assumed["step_seconds"] == pytest.approx(stated["step_seconds"])
    low, high = assumed["step_seconds_interval_90"]
    assert low <= stated["step_seconds_interval_90"][0]
    assert high > stated["step_seconds_interval_90"][1]


def test_any_plan_can_be_given_and_comes_back_as_json():
    text = run(
        predict,
        *("--model", "gpt3_6.7b", "--global-batch", "64", "--seq", "1024"),
        *("--precision", "bf16", "--cluster", "dgx-a100", "-j", "4x8"),
        *("--tp", "4", "--pp", "4", "--micro-batch", "2", "--interleave", "2", "--zero", "1"),
        *("--recompute", "selective", "--sequence-parallel", "--no-fused-attention"),
        *("--overlap", "bucketed", "--bucket", "50MiB", "--compression", "fp16", "--json"),
        *("--shard-group", "2", "--optimizer-state", "8bit"),
    )
    document = json.loads(text)
    assert document["schema"] == "paceline/prediction/2"
    (found,) = document["predictions"]
    assert found["degrees"] == {"dp": 2, "tp": 4, "pp": 4, "cp": 1, "ep": 1}
    assert found["plan"]["micro_batches"] == 16
    assert found["plan"]["synchronisation"] == "bucketed"
    assert found["plan"]["shard_group"] == 2
    assert found["plan"]["optimizer_state"] == "8bit"
    assert found["global_batch"] == 64
    assert found["optimizer"] == "adam"


def test_choices_of_a_plan_come_back_with_the_flags_of_a_program():
    job = "--model llama2_7b --seq 4096 --batch 4 --micro-batch 1 --precision bf16 --qlora"
    place = "--cluster dgx-h100 -j 1x8 --framework megatron-lm"
    plan = "--tp 2 --sequence-parallel --tp-overlap --cp 2 --cp-impl ulysses --recompute op"
    words = f"{job} {place} {plan} --zero 1 --offload optimizer --emit megatron".split()
    (found,) = json.loads(run(predict, *words, "--json"))["predictions"]
    assert found["plan"]["cp_impl"] == "ulysses"
    assert found["plan"]["offload"] == ["optimizer"]
    assert found["plan"]["tp_overlap"] and found["plan"]["recompute"] == "op"
    assert found["memory_bytes"]["optimiser"] == 0
    assert "--cp-comm-type a2a" in found["flags"]["text"]
    text = run(predict, *words)
    assert "--tp-comm-overlap" in text and "# Megatron-LM has no adapters" in text


def test_a_trace_and_a_timeline_are_written(tmp_path):
    trace, timeline = tmp_path / "step.json", tmp_path / "step.svg"
    run(predict, *RESNET, *HKBU, "-j", "2x4",
        "--chrome-trace", str(trace), "--timeline", str(timeline))  # fmt: skip
    events = json.loads(trace.read_text())["traceEvents"]
    assert {event["cat"] for event in events if event["ph"] == "X"} >= {"forward", "communicate"}
    assert timeline.read_text().lstrip().startswith("<")


def test_devices_can_be_named_without_a_cluster():
    text = run(
        predict, *RESNET, "--device", "a100_sxm_80gb", "-j", "2x4",
        "--intra-link", "pcie4_x16", "--link", "eth_25g", "--measured-step", "80ms",
    )  # fmt: skip
    assert "on a100_sxm_80gb 2x4" in text


def test_a_model_of_ones_own(tmp_path):
    pytest.importorskip("torch")
    file = tmp_path / "net.py"
    file.write_text(
        "import torch\n"
        "def make_model():\n"
        "    return torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(3072, 10))\n"
    )
    text = run(
        predict, "--model", f"{file}:make_model", "--input", "32x3x32x32",
        "--cluster", "dgx-a100", "-j", "1x8",
    )  # fmt: skip
    assert "batch 32" in text


def test_a_trace_can_stand_for_a_model(tmp_path):
    text = run(predict, "--trace", "googlenet_k80", *HKBU, "-j", "8x1", "--overlap", "merged")
    assert text.startswith("GoogLeNet, K80, B-Caffe, batch 64")
    own = tmp_path / "layers.csv"
    own.write_text("layer,forward_us,backward_us,gradient_bytes\nfirst,10,20,1000\nlast,30,40,0\n")
    text = run(predict, "--trace", str(own), *HKBU, "-j", "2x1", "--json")
    assert json.loads(text)["predictions"][0]["step_seconds"] >= 100e-6


def test_a_trace_is_replayed_on_nodes_of_the_traced_device():
    text = run(predict, "--trace", "googlenet_k80", "--nodes", "2,8", "--link", "eth_1g", "--json")
    document = json.loads(text)
    assert document["schema"] == "paceline/prediction/2"
    two, eight = document["predictions"]
    assert (two["devices"], eight["devices"]) == (2, 8)
    assert two["ideal_seconds"] == eight["ideal_seconds"] == pytest.approx(64 / 163.36, rel=1e-4)
    assert eight["exposed_communication_seconds"] > two["exposed_communication_seconds"] > 0
    assert two["model_flops_utilisation"] is None
    with pytest.raises(PacelineError, match="traced nodes has no network"):
        run(predict, "--trace", "googlenet_k80", "--nodes", "2")


def test_whatif_shows_resources_and_plans():
    text = run(whatif, *RESNET, *HKBU, "-j", "8x4", "--framework", "torch-single")
    assert "network (eth_10g) free" in text
    assert "synchronise: merged" in text
    assert max(map(len, text.splitlines())) <= 100
    document = json.loads(run(whatif, *RESNET, *HKBU, "-j", "8x4", "--json"))
    assert document["schema"] == "paceline/whatif/1"
    assert {change["kind"] for change in document["changes"]} == {"resource", "optimisation"}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--model", "resnet5", *HKBU), r"no model named 'resnet5'\. Did you mean "),
        (HKBU, "no model given"),
        ((*HKBU, "--trace", "nothing"), "no trace named 'nothing'"),
        (
            (*RESNET, "--cluster", "dgx-a1000"),
            r"no cluster named 'dgx-a1000'\. Did you mean dgx-a100",
        ),
        ((*RESNET, *HKBU, "--link", "eth10"), r"no link named 'eth10'\. Did you mean eth_10g"),
        ((*RESNET, *HKBU, "-j", "2x4", "--dp", "3"), "= 3, but the cluster has 8 devices"),
        ((*RESNET, *HKBU, "-j", "2x4", "--tp", "3"), "8 devices cannot be divided by tp 3"),
        (
            (
                "--model",
                "gpt3_175b",
                "--cluster",
                "dgx-a100",
                "-j",
                "97x8",
                "--tp",
                "8",
                "--pp",
                "97",
            ),
            "96 blocks cannot fill 97 pipeline chunks",
        ),
        (
            (*RESNET, "--cluster", "workstation-rtx4090", "-j", "2x2"),
            "has no network between nodes",
        ),
        ((*RESNET, *HKBU, "--overlap", "foo"), "no synchronisation named 'foo'"),
        ((*RESNET, *HKBU, "--bucket", "5x"), "'5x' is not a size"),
        ((*RESNET, *HKBU, "--compression", "zip"), "no compression named 'zip'"),
        ((*RESNET, *HKBU, "--compression", "top_k:much"), "invalid density 'much'"),
        ((*RESNET, *HKBU, "--micro-batch", "5"), "is not 12 micro-batches of 5"),
        ((*RESNET, *HKBU, "-j", "two"), "invalid topology 'two'"),
        ((*RESNET, *HKBU, "--stage-layers", "a,b"), "--stage-layers: invalid list"),
        (
            (*RESNET, *HKBU, "--global-batch", "64"),
            "--batch and --global-batch are mutually exclusive",
        ),
        (
            (*RESNET, *HKBU, "--framework", "horovd"),
            r"no framework named 'horovd'\. Did you mean horovod",
        ),
        ((*RESNET, *HKBU, "--precision", "fp17"), "no precision named 'fp17'"),
    ],
)
def test_mistakes_get_one_line_and_a_hint(arguments, words):
    with pytest.raises(PacelineError, match=words) as error:
        run(predict, *arguments)
    assert error.value.hint


TOO_LARGE = (
    *("--model", "llama3_70b", "--cluster", "dgx-h100", "-j", "2x8", "--batch", "1", "--zero", "0"),
    *("--micro-batch", "1", "--precision", "bf16", "--framework", "torch-ddp"),
)


def test_that_a_plan_does_not_fit_comes_first():
    first, second, *_ = run(predict, *TOO_LARGE).splitlines()
    assert first.startswith("does NOT fit: a device needs ") and first.endswith(" and has 85.5 GB")
    assert second.startswith("llama3_70b")


@pytest.mark.parametrize(
    ("environment", "is_red"),
    [({"FORCE_COLOR": "1"}, True), ({"NO_COLOR": "1"}, False), ({}, False)],
)
def test_that_a_plan_does_not_fit_is_red_where_colours_are_wanted(environment, is_red, monkeypatch):
    for name in ("FORCE_COLOR", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    first = run(predict, *TOO_LARGE).splitlines()[0]
    assert ("\x1b[1;31m" in first) == is_red


def test_what_to_do_about_a_plan_that_does_not_fit_is_to_search_one():
    text = run(predict, *TOO_LARGE, "--tokens", "1T")
    assert "Next: paceline advise --model llama3_70b --global-batch 16 --precision bf16" in text


def test_a_table_has_the_verdict_in_its_first_columns():
    text = run(predict, *TOO_LARGE, "--model", "llama3_70b,gpt2_small")
    rows = [line for line in text.splitlines() if line.startswith(("llama3_70b", "gpt2_small"))]
    assert [" ".join(row.split()[2:5]) for row in rows[:2]] == ["does NOT fit", "yes dp 16,"]


def test_a_whole_training_of_a_plan_that_does_not_fit_takes_no_days_and_has_no_price():
    asked = (*TOO_LARGE, "--model", "llama3_70b,gpt2_small", "--tokens", "1T", "--price", "2")
    days = run(predict, *asked).split("T tokens")[-1].splitlines()
    rows = [" ".join(line.split()) for line in days if line.startswith(("llama3", "gpt2"))]
    assert rows[0] == "llama3_70b 2x8 7,629,395 does NOT fit – –" and "NOT" not in rows[1]
    assert len(rows) == 2
    large, small = json.loads(run(predict, *asked, "--json"))["training"]
    assert (large["fits"], large["seconds"], large["price"]) == (False, None, None)
    assert small["fits"] and small["seconds"]["value"] > 0 and small["price"]["value"] > 0


def test_naming_megatron_implies_that_it_is_tuned_which_a_note_says():
    job = ("--model", "llama2_7b", "--cluster", "dgx-a100", "-j", "1x8", "--batch", "1")
    job += ("--zero", "1", "--precision", "bf16")
    for name, title in (("megatron-lm", "Megatron-LM"), ("nemo", "Megatron Core (NeMo)")):
        usual, tuned, plain = (
            json.loads(run(predict, *job, "--framework", name, *stated, "--json"))["predictions"][0]
            for stated in ((), ("--tuning", "tuned"), ("--tuning", "plain"))
        )
        assert usual["step_seconds"] == tuned["step_seconds"] < plain["step_seconds"]
        note = f"assumes tuning tuned, the default of {title}; change with --tuning"
        assert note in usual["notes"] and note not in tuned["notes"] + plain["notes"]


@pytest.mark.parametrize(
    ("framework", "model"),
    [("megatron-deepspeed", "gpt2_small"), ("torch-fsdp", "gpt2_small"), ("nemo", "bert_large")],
)
def test_nothing_is_implied_of_other_programs_and_of_encoders(framework, model):
    job = ("--model", model, "--cluster", "dgx-a100", "-j", "1x8", "--batch", "1")
    assert "tuning:" not in run(predict, *job, "--framework", framework, "--precision", "bf16")
