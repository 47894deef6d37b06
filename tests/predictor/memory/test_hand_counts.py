"""Memory rules counted by hand from Megatron Core, Transformer Engine and bitsandbytes."""

import json

import pytest

import paceline
from paceline.hardware import catalogue
from paceline.predictor.memory.loss_memory import LossMemory
from paceline.predictor.memory.placeholder_gradients import placeholder_bytes
from paceline.predictor.plan.plan import Plan
from paceline.predictor.plan.plan_choices import LossKernel, Module, Recompute
from paceline.predictor.predict import model_step, predict, prepare
from paceline.workload.adapters import QUANTISED_BYTES, with_adapters
from paceline.workload.blocks import part_of
from paceline.workload.workload import Workload

H100 = catalogue.cluster("dgx-h100").with_nodes(1)
TOKENS, H, INNER, KV, HEADS, VOCABULARY, LAYERS = 8192, 4096, 14336, 1024, 32, 128256, 32


def parts_of(precision="bf16", **fields):
    """Llama-3 8B on one device under Megatron-LM unless ``fields`` say otherwise."""
    plan = Plan(**{"framework": "megatron-lm", **fields})
    workload = Workload.of("llama3_8b", 1, TOKENS, precision, "adam")
    return model_step(prepare(workload, H100.with_devices(plan.devices), plan)).parts


def kept_in_blocks(**fields):
    """Bytes that one block keeps for one sample."""
    parts = parts_of(**fields)
    nodes, kinds = parts.sharding.graph.nodes, parts.classes.of_layer
    sizes = [
        float(parts.kept.sizes[kind].per_sample)
        for node, kind in zip(nodes, kinds, strict=True)
        if part_of(node.name)
    ]
    return sum(sizes) / LAYERS


# Elements per token of a block: inputs of both norms and their outputs, rotated queries and keys,
# the fused QKV projection that values are a view of, the result of attention, gate and up, and
# the input of the last matrix.
NORMS, RESULT = 4 * H, H
PROJECTION = (H + KV) + (H + 2 * KV)
MLP = 3 * INNER
STATISTICS = 4 * (HEADS + 2)
"""Log-sum-exp of each head and inverse deviations of two norms, in fp32."""
BLOCK = TOKENS * (2 * (NORMS + PROJECTION + RESULT + MLP) + STATISTICS)


def test_a_block_of_megatron_core():
    assert kept_in_blocks() == pytest.approx(BLOCK)


def test_linear_layers_save_8_bits_under_fp8():
    """Inputs of linear layers in 8 bits (Transformer Engine); attention saves its result too."""
    saved_short = 2 * H + INNER
    expected = BLOCK - TOKENS * saved_short + TOKENS * RESULT
    assert kept_in_blocks(precision="fp8") == pytest.approx(expected)


def test_other_programs_save_16_bits_under_fp8():
    both = [kept_in_blocks(framework="torch-ddp", precision=name) for name in ("bf16", "fp8")]
    assert both[0] == pytest.approx(both[1])


@pytest.mark.parametrize(
    ("modules", "freed"),
    [
        ((Module.LAYER_NORM,), 2 * 2 * H + 2 * 4),
        # The input of the MLP stays, its inner tensors do not.
        ((Module.MLP,), 2 * MLP),
        ((Module.CORE_ATTENTION,), 4 * HEADS),
        ((Module.LAYER_NORM, Module.MLP), 2 * (2 * H + MLP) + 2 * 4),
    ],
)
def test_recomputed_modules_free(modules, freed):
    plan = {"recompute": Recompute.SELECTIVE, "recompute_modules": modules}
    assert kept_in_blocks() - kept_in_blocks(**plan) == pytest.approx(TOKENS * freed)


def test_recomputed_modules_take_time():
    workload = Workload.of("llama3_8b", 1, TOKENS, "bf16", "adam")

    def seconds(*modules):
        how = Recompute.SELECTIVE if modules else Recompute.NONE
        plan = Plan(framework="megatron-lm", recompute=how, recompute_modules=modules)
        return predict(workload, H100.with_devices(1), plan).step_seconds

    assert seconds() < seconds(Module.LAYER_NORM) < seconds(Module.MLP)
    assert seconds(Module.MLP) < seconds(Module.MLP, Module.CORE_ATTENTION)


def test_one_unused_gradient_per_weight_shape():
    """``get_dummy_wgrad``: QKV, output, gate with up, and down, once for all blocks."""
    parts = parts_of()
    expected = 2 * (H * (H + 2 * KV) + H * H + 2 * H * INNER + H * INNER)
    graph, kind_of = parts.sharding.graph, parts.classes.of_layer.tolist()
    assert placeholder_bytes(graph, parts.kinds, kind_of, 1, 2) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("kernel", "copies", "kept", "working"),
    [
        # Probabilities in fp32, and scores in 16 bits: Megatron Core's vocabulary-parallel loss.
        (LossKernel.PLAIN, 1.5, 4 * VOCABULARY, 2 * VOCABULARY),
        # PyTorch: log-probabilities, and two gradients in fp32.
        (LossKernel.PLAIN, 3.0, 4 * VOCABULARY, 8 * VOCABULARY),
        (LossKernel.FUSED, 1.5, 2 * VOCABULARY, 0),
        # The gradient of the hidden states; chunks of ceil(vocabulary / width) = 32 parts.
        (LossKernel.CHUNKED, 1.5, 2 * H, 2 * VOCABULARY / 32),
    ],
)
def test_bytes_per_token_of_the_loss(kernel, copies, kept, working):
    parts = parts_of(loss_kernel=kernel)
    position = len(parts.sharding.graph.nodes) - 1
    loss = LossMemory(kernel, copies)
    layer = parts.layers[position]
    found = float(loss.kept_bytes(parts.sharding, position, layer).per_sample)
    # Targets are 8 bytes per token.
    assert found / TOKENS == pytest.approx(kept, abs=8.1)
    own = float(loss.working_bytes(parts.layers, parts.sharding).per_sample)
    assert own / TOKENS == pytest.approx(working, abs=17)


def test_4_bit_weights_as_bitsandbytes_keeps_them():
    """8 bits per 64 weights and 32 bits per 256 of these; embedding and output layer in 16 bits."""
    assert pytest.approx((4 + 8 / 64 + 32 / (64 * 256)) / 8, rel=1e-3) == QUANTISED_BYTES
    found = paceline.predict(
        "llama3_8b", device="h100_sxm_80gb", topology="1x1", qlora=True, seq=512
    )
    tables, norms = 2 * VOCABULARY * H, (2 * LAYERS + 1) * H
    linear = LAYERS * (H * (H + 2 * KV) + H * H + 3 * H * INNER)
    adapters = with_adapters(Workload.of("llama3_8b", 1).graph, 16)
    trained = adapters.profile(512, "bf16").trainable_parameters
    expected = QUANTISED_BYTES * linear + 2 * (tables + norms + trained)
    assert float(found.memory.weights_bytes) == pytest.approx(expected)


LLAMA_70B = {
    "model_type": "llama",
    "hidden_size": 8192,
    "num_hidden_layers": 12,
    "num_attention_heads": 64,
    "num_key_value_heads": 8,
    "intermediate_size": 28672,
    "vocab_size": 128256,
    "tie_word_embeddings": False,
    "max_position_embeddings": 131072,
}


@pytest.mark.parametrize(
    ("plan", "seq", "gib"),
    [
        # Peak allocated GiB on 8 B200: release tables of SimuMax (github.com/MooreThreads/SimuMax),
        # fused cross entropy, distributed optimizer; 12 layers of Llama-3 70B; one chunk per stage.
        ({"pp": 2, "interleave": 1}, 4096, 66.55),
        ({"tp": 2}, 4096, 60.68),
        ({"tp": 8}, 4096, 28.29),
        ({"tp": 2, "cp": 4, "cp_impl": "ulysses"}, 131072, 112.67),
        ({"cp": 8, "cp_impl": "ulysses"}, 32768, 104.51),
    ],
)
def test_measured_peaks_of_megatron_lm(tmp_path, plan, seq, gib):
    path = tmp_path / "config.json"
    path.write_text(json.dumps(LLAMA_70B))
    fixed = {"zero": 1, "micro_batch": 1, "micro_batches": 4, "framework": "megatron-lm"}
    found = paceline.predict(
        str(path),
        device="b200_sxm",
        topology="1x8",
        seq=seq,
        precision="bf16",
        loss_kernel="fused",
        sequence_parallel=plan.get("tp", 1) > 1 or None,
        **fixed,
        **plan,
    )
    assert float(found.memory.total_bytes) / 2**30 == pytest.approx(gib, rel=0.02)


def test_the_nearest_change_fits():
    large = {"device": "h100_sxm_80gb", "topology": "1x8", "framework": "torch-fsdp", "zero": 3}
    job = {**large, "seq": 8192, "batch": 4, "recompute": "none"}
    found = paceline.predict("llama3_8b", **job)
    assert found.fits is False
    assert found.fits_probability < 0.5
    change = found.nearest_fit
    assert change is not None and change.options in str(found)
    names = change.options.replace("--", "").split()
    options = dict(zip(names[::2], names[1::2], strict=True))
    typed = {name.replace("-", "_"): value for name, value in options.items()}
    numbers = {name: int(value) if value.isdigit() else value for name, value in typed.items()}
    again = paceline.predict("llama3_8b", **{**job, **numbers})
    assert again.fits
    assert float(again.memory.total_bytes) == pytest.approx(change.memory_bytes)
    assert found.to_dict()["fits_with"]["options"] == change.options
    assert again.to_dict()["fits_with"] is None
