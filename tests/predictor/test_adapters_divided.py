"""Adapters: which layers have them, and their division under tensor parallelism."""

import paceline as pl
from paceline.predictor.partition.tensor_parallel import Role, divide
from paceline.workload import zoo

JOB = {"device": "h100_sxm_80gb", "topology": "1x8", "framework": "megatron-core", "seq": 4096}


def test_attention_between_adapters_is_divided():
    graph = zoo.build("llama2_70b_lora")
    divisions = dict(zip((n.name for n in graph.nodes), divide(graph, True), strict=True))
    for name, role in {
        "attention.query": Role.OUTPUTS,
        "attention.query_down": Role.WHOLE,
        "attention.query_up": Role.OUTPUTS,
        "attention.scores": Role.FEATURES,
        "attention.out": Role.INPUTS,
        "attention.out_up": Role.WHOLE,
    }.items():
        assert divisions[f"blocks.3.{name}"].role is role
    # Queries stay divided: nothing is gathered on the way to attention.
    assert not divisions["blocks.3.attention.query_sum"].forward


def test_frozen_weights_are_faster_than_trained_ones_on_divided_devices():
    options = {**JOB, "tp": 2, "pp": 4, "global_batch": 32, "micro_batch": 1, "precision": "fp8"}
    full, adapted = (pl.predict("llama2_70b", **options, **own) for own in ({}, {"lora": 16}))
    assert adapted.step_seconds < 0.85 * full.step_seconds


def test_megatron_bridge_adapts_the_qkv_projection_only():
    options = {**JOB, "global_batch": 32, "micro_batch": 1, "lora": 16}
    names = {
        framework: {
            layer.name.split(".")[-1].removesuffix("_adapter_in")
            for layer in pl.predict("llama2_7b", **{**options, "framework": framework}).layers
            if layer.name.endswith("_adapter_in")
        }
        for framework in ("megatron-bridge", "torch-ddp")
    }
    assert names["megatron-bridge"] == {"query", "key", "value"}
    assert {"gate", "up", "down", "out"} < names["torch-ddp"]
    notes = pl.predict("llama2_7b", **options).notes
    assert any("adapters on the QKV projection only" in note for note in notes)
