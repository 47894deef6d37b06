"""Every keyword of every public prediction function is used or refused, never ignored."""

import dataclasses

import numpy as np
import pytest

import paceline as pl
from paceline.errors import PacelineError
from paceline.predictor.evidence import Evidence
from paceline.predictor.prediction import Predictions
from paceline.spec.job_options import JobOptions
from paceline.spec.knob import knobs_of
from paceline.spec.search_options import SweepOptions

TRANSFORMER = {
    "model": "gpt2",
    "cluster": "dgx-a100",
    "nodes": 2,
    "global_batch": 64,
    "tp": 2,
    "precision": "bf16",
}
MIXTURE = {
    "model": "mixtral_8x7b",
    "cluster": "dgx-a100",
    "nodes": 2,
    "global_batch": 64,
    "ep": 8,
    "zero": 1,
    "precision": "bf16",
}
IMAGES = {"model": "resnet50", "cluster": "dgx-a100", "nodes": 2, "batch": 64}
PIPELINE = {**TRANSFORMER, "tp": 1, "pp": 2, "micro_batch": 1}

CHANGES = {
    "batch": (IMAGES, 16),
    "global_batch": (TRANSFORMER, 128),
    "seq": (TRANSFORMER, 512),
    "precision": (TRANSFORMER, "fp32"),
    "device": ({**IMAGES, "cluster": None, "nodes": 1}, "v100_sxm2_16gb"),
    "link": (IMAGES, "1gbit"),
    "nodes": (IMAGES, 4),
    "topology": ({**IMAGES, "nodes": None}, "2x4"),
    "framework": (IMAGES, "horovod-torch"),
    "input": (IMAGES, ["64x3x160x160"]),
    "trace": ({"model": None, "link": "eth_10g", "nodes": 4}, "googlenet_k80"),
    "lora": (TRANSFORMER, 8),
    "qlora": (TRANSFORMER, True),
    "fit": ({"model": "resnet50", "cluster": "dgx-a100", "nodes": 2}, "batch"),
    "optimizer": (IMAGES, "adam"),
    "intra_link": (IMAGES, "pcie3_x16"),
    "nics": ({**IMAGES, "link": "10gbit"}, 1),
    "processes": (IMAGES, 4),
    "scale": (IMAGES, "flops=0.5"),
    "dp": ({**TRANSFORMER, "tp": None}, 8),
    "tp": (TRANSFORMER, 4),
    "pp": (TRANSFORMER, 2),
    "cp": (TRANSFORMER, 2),
    "cp_impl": ({**TRANSFORMER, "cp": 2}, "ulysses"),
    "ep": (MIXTURE, 4),
    "etp": ({**MIXTURE, "tp": 2}, 2),
    "ep_impl": (MIXTURE, "deepep"),
    "ep_overlap": (MIXTURE, True),
    "expert_imbalance": (MIXTURE, 3.0),
    "zero": (TRANSFORMER, 3),
    "shard_group": ({**TRANSFORMER, "zero": 3}, 4),
    "optimizer_state": (TRANSFORMER, "8bit"),
    "micro_batch": (PIPELINE, 2),
    "micro_batches": ({**PIPELINE, "micro_batch": None}, 4),
    "offload": (TRANSFORMER, "optimizer"),
    "interleave": (PIPELINE, 3),
    "pipeline": (PIPELINE, "zero-bubble"),
    "stage_layers": (PIPELINE, [5, 7]),
    "loss_kernel": (TRANSFORMER, "chunked"),
    "recompute": (TRANSFORMER, "full"),
    "sequence_parallel": (TRANSFORMER, False),
    "tp_overlap": ({**TRANSFORMER, "sequence_parallel": True}, True),
    "fused_attention": (TRANSFORMER, False),
    "overlap": (IMAGES, "none"),
    "bucket": (IMAGES, "1MiB"),
    "compression": (IMAGES, "fp16"),
    "measured_step": (IMAGES, "500ms"),
    "measured_on": ({**TRANSFORMER, "measured_step": "900ms"}, "1x8"),
    "allreduce_curve": (IMAGES, "missing.json"),
    "input_time": (IMAGES, "5s"),
    "tuning": (IMAGES, "tuned"),
    "jitter": (IMAGES, 0.3),
}
"""A job for each keyword, and a value that changes its prediction."""
REASONS = {"framework": "synchronisation", "qlora": "quantised weights"}
"""Errors that name the property that is not supported, not the keyword."""


def numbers(found):
    """The numbers of a result that a keyword may change."""
    if isinstance(found, Predictions):
        return [numbers(one) for one in found]
    if isinstance(found, pl.Prediction):
        memory = found.memory.total_bytes
        return found.step_seconds, found.interval.high, float(memory), found.samples_per_step
    if dataclasses.is_dataclass(found) and hasattr(found, "base"):
        return numbers(found.base), [change.step_seconds for change in found.changes]
    if hasattr(found, "best"):
        return [numbers(one) for one in found.best]
    if hasattr(found, "seconds"):
        return {way: np.asarray(values).tolist() for way, values in found.seconds.items()}
    return [(str(one), vars(one)) for one in found]


def given(job, **changes):
    return {name: value for name, value in {**job, **changes}.items() if value is not None}


def used_or_refused(function, keyword, job, value, **fixed):
    """Whether the keyword changes the result, or is refused by name."""
    try:
        changed = numbers(function(**{"model": None, **given(job, **{keyword: value})}, **fixed))
    except PacelineError as error:
        named = (keyword, keyword.replace("_", "-"), str(value), REASONS.get(keyword, keyword))
        assert any(name in f"{error.message} {error.hint}" for name in named), error.message
        return True
    try:
        usual = numbers(function(**{"model": None, **given(job, **{keyword: None})}, **fixed))
    except PacelineError:
        return True  # the job needs the keyword
    before = numbers(function(**{"model": None, **given(job)}, **fixed))
    return changed != before or changed != usual


def test_every_keyword_has_a_case():
    assert set(CHANGES) == set(knobs_of(JobOptions))


@pytest.mark.parametrize("keyword", CHANGES)
def test_predict_uses_or_refuses(keyword):
    job, value = CHANGES[keyword]
    assert used_or_refused(pl.predict, keyword, job, value), keyword


@pytest.mark.parametrize("keyword", CHANGES)
def test_a_prediction_for_this_machine_uses_or_refuses(keyword):
    job = {"model": "resnet50", "evidence": None}
    used = {"batch", "seq", "precision", "framework", "link", "nodes", "topology", "processes"}
    if keyword in used | {"input", "device", "trace"}:
        pytest.skip("used, or a prediction for another machine")
    with pytest.raises(PacelineError) as caught:
        pl.predict(**job, **{keyword: CHANGES[keyword][1]})
    text = f"{caught.value.message} {caught.value.hint}"
    assert keyword in text or keyword.replace("_", "-") in text, text


@pytest.mark.thorough
@pytest.mark.parametrize("keyword", CHANGES)
@pytest.mark.parametrize("function", [pl.whatif, pl.bandwidth_for, pl.sweep, pl.advise])
def test_other_functions_use_or_refuse(function, keyword):
    job, value = CHANGES[keyword]
    fixed = {}
    if function is pl.bandwidth_for:
        fixed = {"target_efficiency": 0.8}
    if function is pl.sweep:
        job = {name: given for name, given in job.items() if name in ("model", "cluster", "nodes")}
        job = {**job, "model": job["model"] or "alexnet", "axes": {"flops": [1e13, 2e13]}}
        if keyword in SweepOptions.__annotations__:
            job = {**job, "model": CHANGES[keyword][0]["model"] or "alexnet"}
    if function is pl.advise:
        job = {**job, "global_batch": 64, "batch": None, "model": job["model"] or "alexnet"}
        job = {**job, "global_batch": None} if keyword == "batch" else job
        # The search finds stages 1 and 3 and does without sequence parallelism by itself.
        value = {"zero": 2, "sequence_parallel": True}.get(keyword, value)
        fixed = {"top": 1}
    assert used_or_refused(function, keyword, job, value, **fixed), keyword


@pytest.mark.parametrize(
    ("function", "options", "message"),
    [
        (pl.advise, {"foo": 1}, "advise has no option 'foo'"),
        (pl.predict, {"nodes": "4"}, "nodes must be an integer"),
        (pl.sweep, {"tp": 8}, "sweep does not support tp"),
        (pl.bandwidth_for, {"cp_form": "x", "target_efficiency": 0.9}, "no option 'cp_form'"),
    ],
)
def test_a_wrong_keyword_is_one_clear_error(function, options, message):
    with pytest.raises(PacelineError) as caught:
        function("resnet50", "dgx-a100", **options)
    assert message in caught.value.message


def test_lists_give_one_prediction_for_each_combination():
    found = pl.predict(
        ["resnet50", "vgg16"], "dgx-a100", batch=[32, 64], link=["100gbit"], nodes=[1, 2]
    )
    assert len(found) == 8
    assert [one.workload.batch for one in found[:4]] == [32, 32, 64, 64]
    assert all(column in str(found) for column in ("model", "batch", "GPUs"))
    factors = ("model", "batch_per_replica", "link", "nodes")
    assert {tuple(row[name] for name in factors) for row in found.to_dict()["predictions"]} == {
        (model, batch, "100gbit", nodes)
        for model in ("resnet50", "vgg16")
        for batch in (32, 64)
        for nodes in (1, 2)
    }


def test_evidence_is_no_option():
    one = pl.predict("resnet50", "dgx-1", batch=8, evidence=Evidence(alone_seconds=1.0))
    assert one.step_seconds > 1.0


def test_lists_of_what_ifs_and_sweeps():
    found = pl.whatif("resnet50", "dgx-a100", batch=[32, 64], nodes=2)
    assert [each.base.workload.batch for each in found.items] == [32, 64]
    assert "batch" in str(found) and len(found.to_dict()["whatif"]) == 2
    swept = pl.sweep(["alexnet", "vgg16"], "knl-opa", {"link": [1e8, 1e9]}, nodes=4, batch=16)
    single = pl.sweep("vgg16", "knl-opa", {"link": [1e8, 1e9]}, nodes=4, batch=16)
    assert len(swept) == 2
    assert {row["model"] for row in swept.rows()} == {"alexnet", "vgg16"}
    assert str(swept).count("samples/s") == 2, "one table"
    assert swept[1].seconds["dp"].tolist() == single.seconds["dp"].tolist()


def test_bandwidth_for_takes_lists():
    found = pl.bandwidth_for(
        "resnet50", "dgx-a100", nodes=[2, 4], link="10gbit", batch=64, target_efficiency="50%"
    )
    assert [prediction.cluster.nodes for prediction, _ in found.jobs] == [2, 4]
    assert len(found) == 4 and len(found.to_dict()["links"]) == 4
    assert "2x8" in str(found) and "4x8" in str(found)


def test_a_sharded_sweep_is_a_sweep_of_data_parallelism():
    plain = pl.sweep("gpt2", "dgx-a100", {"link": [1e9, 1e10]}, compare="dp", nodes=2, batch=8)
    sharded = pl.sweep("gpt2", "dgx-a100", {"link": [1e9, 1e10]}, zero=3, nodes=2, batch=8)
    assert list(sharded.seconds) == ["dp"]
    assert sharded.seconds["dp"][0] > 1.05 * plain.seconds["dp"][0]
    with pytest.raises(PacelineError, match="zero"):
        pl.sweep("gpt2", "dgx-a100", zero=1, compare="dp,mp", nodes=2, batch=8)
