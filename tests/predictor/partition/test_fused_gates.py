"""Gates that are one kernel keep what enters them and what leaves them."""

from dataclasses import replace

import pytest

from paceline.hardware import catalogue
from paceline.predictor.framework_profiles import framework
from paceline.predictor.partition.fused_operations import with_fused_gates
from paceline.predictor.partition.partition import partition
from paceline.predictor.plan.plan import Plan
from paceline.workload.workload import Workload


def kept_bytes(graph, name, sequence=8192):
    layers = {layer.name: layer for layer in graph.profile(sequence, "bf16").layers}
    return float(layers[name].activation_bytes.at(1))


def test_a_gated_block_of_llama_3_405b_keeps_as_much_as_counted_by_hand():
    # Inputs of two norms, of queries, of gates; queries, keys, values and what attention
    # returns; both factors and the product, each 53248 / 16384 wide.
    graph = with_fused_gates(Workload.of("llama3_405b", 1, 8192, "bf16", "adam").graph)
    layers = graph.profile(8192, "bf16").layers
    own = sum(
        float(layer.activation_bytes.at(1))
        for layer in layers
        if layer.name.startswith("blocks.1.")
    )
    hidden = 8192 * 16384 * 2
    assert own / hidden == pytest.approx(4 + 2 + 2 / 16 + 3 * 53248 / 16384, rel=0.01)


def test_experts_keep_no_result_of_their_activation():
    plain = Workload.of("mixtral_8x7b", 1, 4096, "bf16", "adam").graph
    name = next(node.name for node in plain.nodes if node.op.kind == "moe")
    less = kept_bytes(plain, name, 4096) - kept_bytes(with_fused_gates(plain), name, 4096)
    assert less == pytest.approx(4096 * 2 * 14336 * 2)


def test_networks_without_gates_stay_as_they_are():
    graph = Workload.of("gpt_h1024_l2_a16", 1, 512, "bf16", "adam").graph
    assert with_fused_gates(graph) == graph


@pytest.mark.parametrize(("name", "fused"), [("megatron-lm", True), ("nanotron", False)])
def test_a_framework_says_whether_its_gates_are_fused(name, fused):
    profile = framework(name)
    assert profile.fused_gates is fused
    workload = Workload.of("llama_7b", 1, 2048, "bf16", "adam")
    cluster = catalogue.cluster("dgx-a100").shaped(1, 1)
    other = replace(profile, fused_gates=not fused)
    both = [partition(workload, cluster, Plan(), each) for each in (profile, other)]
    sizes = [parts.total([size.at(1) for size in parts.kept.sizes]) for parts in both]
    assert (sizes[0] < sizes[1]) is fused
