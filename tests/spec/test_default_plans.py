"""A model and a machine give a plan that fits, or the reason why none does."""

import random

import pytest

import paceline as pl
from paceline.hardware import catalogue
from paceline.spec.resolve_model import is_large

MODELS = [
    *(
        "gpt2_small",
        "bert_large",
        "gpt2_xl",
        "llama3_1b",
        "llama3_8b",
        "llama2_13b",
        "mixtral_8x7b",
    ),
    *("llama3_70b", "gpt3_175b", "llama3_405b", "deepseek_v3", "resnet50", "vgg16", "unet3d"),
    *("stable_diffusion_v2", "vit_b_16", "t5_11b", "mamba_2.8b", "qwen3_30b_a3b"),
]
MACHINES = [
    ({"device": "rtx4090"}, None),
    ({"device": "v100_sxm2_16gb"}, None),
    *(({"nodes": nodes}, "dgx-h100") for nodes in (1, 3, 16, 256)),
    *(({"nodes": nodes}, "dgx-a100") for nodes in (2, 8)),
    ({"nodes": 4, "link": "eth_100g"}, "dgx-h100"),
    ({"nodes": 2}, "hkbu-v100-pcie"),
]
PAIRS = [(model, *machine) for model in MODELS for machine in MACHINES]
SAMPLE = random.Random(33).sample(PAIRS, 10)


def check(model, words, cluster):
    found = pl.predict(model, cluster, **words)
    assert found.notes[0].startswith("chosen: ")
    assert found.fits != ("no plan fits" in found.notes[0])
    if not found.fits:
        assert "does NOT fit: a device needs" in str(found)
    target = catalogue.cluster(cluster).device if cluster else found.cluster.device
    precision = found.workload.precision
    usual = "amp_fp16" if is_large(found.workload.graph) else "fp32"
    assert precision == ("bf16" if "bf16" in target.peak_flops else usual)
    assert found.step_seconds > 0 and found.samples_per_step % found.plan.dp == 0


@pytest.mark.parametrize(("model", "words", "cluster"), SAMPLE)
def test_a_sample_of_models_and_machines(model, words, cluster):
    check(model, words, cluster)


@pytest.mark.slow
@pytest.mark.parametrize(("model", "words", "cluster"), PAIRS)
def test_all_models_and_machines(model, words, cluster):
    check(model, words, cluster)


def test_a_slow_network_gives_a_plan_that_communicates_less():
    fast = pl.predict("llama3_8b", "dgx-h100", nodes=2)
    slow = pl.predict("llama3_8b", "dgx-h100", nodes=2, link="eth_100g")
    assert fast.plan.shard_copies == 1 and slow.plan.shard_copies == 2
    assert slow.step_seconds < 2 * fast.step_seconds


@pytest.mark.thorough
def test_experts_are_divided_and_recommenders_have_large_batches():
    experts = pl.predict("qwen3_30b_a3b", "dgx-h100", nodes=4)
    assert experts.plan.ep > 1 and "--ep" in str(experts)
    gathered = pl.predict("qwen3_30b_a3b", "dgx-h100", nodes=4, framework="torch-fsdp")
    assert experts.step_seconds < gathered.step_seconds
    pairs = pl.predict("dlrm", "dgx-a100", nodes=1)
    assert pairs.fits and pairs.workload.batch == 8192


@pytest.mark.thorough
def test_tokens_per_step_are_rounded_to_whole_sequences_of_all_devices():
    found = pl.predict("llama3_8b", "dgx-h100", nodes=2, global_batch="4Mtok")
    assert found.samples_per_step == 496  # 4e6 / 8192 = 488.3, the nearest multiple of 16
    advised = pl.advise("llama3_8b", "dgx-h100", nodes=2, global_batch="4Mtok", top=1)
    assert advised.best[0].samples_per_step == 496
    with pytest.raises(pl.PacelineError, match="does not train on tokens"):
        pl.predict("resnet50", "dgx-h100", global_batch="4Mtok")
    with pytest.raises(pl.PacelineError, match="invalid batch '4M'") as caught:
        pl.predict("llama3_8b", "dgx-h100", global_batch="4M")
    assert "4000000" in caught.value.hint and "4Mtok" in caught.value.hint


@pytest.mark.thorough
def test_advice_is_never_slower_than_the_chosen_plan():
    for words in ({"nodes": 2}, {"nodes": 2, "link": "eth_100g"}):
        chosen = pl.predict("llama3_8b", "dgx-h100", **words)
        advised = pl.advise("llama3_8b", "dgx-h100", **words, top=1).best[0]
        assert advised.framework == chosen.framework
        assert advised.step_seconds <= chosen.step_seconds * (1 + 1e-9)
