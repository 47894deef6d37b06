"""``paceline predict`` and ``paceline whatif`` as a person meets them."""

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
    assert "the network is not stated: 1 x eth_10g per node, as usual, is assumed" in text
    inside = run(predict, *RESNET, "--device", "k80", "-j", "1x2")
    assert "the link in a node is not stated: pcie3_x16, as usual, is assumed" in inside
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
        *("--recompute", "selective", "--sequence-parallel", "--unfused-attention"),
        *("--overlap", "bucketed", "--bucket", "50MiB", "--compression", "fp16", "--json"),
        *("--shard-group", "2", "--optimiser-state", "8bit"),
    )
    document = json.loads(text)
    assert document["schema"] == "paceline/prediction/2"
    (found,) = document["predictions"]
    assert found["degrees"] == {"dp": 2, "tp": 4, "pp": 4, "cp": 1, "ep": 1}
    assert found["plan"]["micro_batches"] == 16
    assert found["plan"]["synchronisation"] == "bucketed"
    assert found["plan"]["shard_group"] == 2
    assert found["plan"]["optimiser_state"] == "8bit"
    assert found["global_batch"] == 64
    assert found["optimiser"] == "adam"


def test_choices_of_a_plan_come_back_with_the_flags_of_a_program():
    job = "--model llama2_7b --seq 4096 --batch 4 --micro-batch 1 --precision bf16 --qlora"
    place = "--cluster dgx-h100 -j 1x8 --framework megatron-lm"
    plan = "--tp 2 --sequence-parallel --tp-overlap --cp 2 --cp-form ulysses --recompute op"
    words = f"{job} {place} {plan} --zero 1 --offload optimiser --emit megatron".split()
    (found,) = json.loads(run(predict, *words, "--json"))["predictions"]
    assert found["plan"]["context_form"] == "ulysses"
    assert found["plan"]["offload"] == ["optimiser"]
    assert found["plan"]["tp_overlap"] and found["plan"]["recompute"] == "op"
    assert found["memory_bytes"]["optimiser"] == 0
    assert "--cp-comm-type a2a" in found["flags"]["text"]
    text = run(predict, *words)
    assert "--tp-comm-overlap" in text and "# Megatron-LM: adapters" in text


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
        (("--model", "resnet5", *HKBU), r"no model named 'resnet5'\. Near: "),
        (HKBU, "no model to predict"),
        ((*HKBU, "--trace", "nothing"), "no trace named 'nothing'"),
        ((*RESNET, "--cluster", "dgx-a1000"), r"no cluster named 'dgx-a1000'\. Near: dgx-a100"),
        ((*RESNET, *HKBU, "--link", "eth10"), r"no link named 'eth10'\. Near: eth_10g"),
        ((*RESNET, *HKBU, "-j", "2x4", "--dp", "3"), "= 3, but there are 8 devices"),
        ((*RESNET, *HKBU, "-j", "2x4", "--tp", "3"), "8 devices are not a multiple of tp 3"),
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
            "96 layers cannot fill 97 pipeline chunks",
        ),
        (
            (*RESNET, "--cluster", "workstation-rtx4090", "-j", "2x2"),
            "has no network between nodes, so it cannot be 2 nodes",
        ),
        ((*RESNET, *HKBU, "--overlap", "foo"), "no synchronisation named 'foo'"),
        ((*RESNET, *HKBU, "--bucket", "5x"), "'5x' is not a size"),
        ((*RESNET, *HKBU, "--compression", "zip"), "no compression named 'zip'"),
        ((*RESNET, *HKBU, "--compression", "top_k:much"), "'much' is not a fraction"),
        ((*RESNET, *HKBU, "--micro-batch", "5"), "is not 12 micro-batches of 5"),
        ((*RESNET, *HKBU, "-j", "two"), "'two' is not NODESxPROCESSES"),
        ((*RESNET, *HKBU, "--stage-layers", "a,b"), "is not a list of numbers"),
        ((*RESNET, *HKBU, "--global-batch", "64"), "both --batch and --global-batch"),
        ((*RESNET, *HKBU, "--framework", "horovd"), r"no framework named 'horovd'\. Near: horovod"),
        ((*RESNET, *HKBU, "--precision", "fp17"), "no precision named 'fp17'"),
    ],
)
def test_mistakes_get_one_line_and_a_hint(arguments, words):
    with pytest.raises(PacelineError, match=words) as error:
        run(predict, *arguments)
    assert error.value.hint
