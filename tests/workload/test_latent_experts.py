"""LatentMoE and multi-token prediction of Nemotron 3 Super, by hand."""

from paceline.workload import ops, zoo

GRAPH = zoo.build("nemotron3_super_120b_a12b")
HIDDEN, LATENT, EXPERTS, INNER, VOCABULARY = 4096, 1024, 512, 2688, 131072


def test_experts_work_on_latent_tokens_and_the_router_on_whole_ones():
    node = GRAPH.node("blocks.1.experts")
    shapes = node.op.parameters(((8192, LATENT),))
    assert shapes["router"] == (EXPERTS, HIDDEN)
    assert shapes["up"] == (EXPERTS, INNER, LATENT)
    work = node.op.work(((8192, LATENT),), True)
    router, into, out = (gemm.m * gemm.n * gemm.k * gemm.count for gemm in work.forward)
    assert router == EXPERTS * 8192 * HIDDEN
    assert into == out == 22 * 8192 * LATENT * INNER


def test_a_further_token_has_its_own_layers_and_loss_but_the_common_head():
    own = [node for node in GRAPH.nodes if node.name.startswith("further.")]
    assert GRAPH.node("further.head").shares_weights_with == "head"
    assert GRAPH.node("further.projection").op == ops.Linear(HIDDEN, bias=False)
    assert [n.name for n in own if n.op.kind in ("attention", "moe")] == [
        "further.layera.attention.scores",
        "further.layerb.experts",
    ]
    assert GRAPH.output == "both_losses"
