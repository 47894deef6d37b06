"""The zoo against the publications: parameter counts, arithmetic, names in any spelling."""

import pytest

from paceline.errors import InputError, PacelineError, UnknownNameError
from paceline.workload import zoo

# Where a paper rounds, the count is that of the weights its authors or PyTorch distribute.
# Mask R-CNN: torchvision's 44,401,393 of 91 classes, less the outputs of ten. RetinaNet, SSD with
# ResNet-34, 3D U-Net, DLRM: the modules of MLPerf's reference code. nnU-Net, industrial U-Net,
# GPUNet (the paper rounds to 11.9, 12.7 and 25.8 million), EfficientDet (3.88), Wide & Deep on
# Outbrain, fusion transformers (less an unused matrix): those of NVIDIA's recipes. Stable
# Diffusion: U-Net, text encoder of 23 layers, image encoder and its last convolution. Faces:
# InsightFace's networks and a row for each person.
PARAMETERS = {
    "digits_cnn": 160 + 4_640 + 32_832 + 650,
    "fcn5": 14_205_962,
    "alexnet": 61_100_840,
    "alexnet_grouped": 60_965_224,
    "vgg11": 132_863_336,
    "vgg13": 133_047_848,
    "vgg16": 138_357_544,
    "vgg19": 143_667_240,
    "googlenet": 13_378_280,
    "googlenet_bn": 13_004_888,
    "inception_v3": 23_834_568,
    "inception_v3_aux": 27_161_264,
    "resnet20": 269_722,
    "resnet32": 464_154,
    "resnet44": 658_586,
    "resnet56": 853_018,
    "resnet110": 1_727_962,
    "resnet18": 11_689_512,
    "resnet34": 21_797_672,
    "resnet50": 25_557_032,
    "resnet101": 44_549_160,
    "resnet152": 60_192_808,
    "resnet18_v1.5": 11_689_512,
    "resnet34_v1.5": 21_797_672,
    "resnet50_v1.5": 25_557_032,
    "resnet101_v1.5": 44_549_160,
    "resnet152_v1.5": 60_192_808,
    "resnet50_v1b": 25_557_032,
    "resnext101_32x4d": 44_177_704,
    "se_resnext101_32x4d": 48_955_416,
    "densenet121": 7_978_856,
    "mobilenet_v1": 4_231_976,
    "mobilenet_v2": 3_504_872,
    "vit_b_16": 86_567_656,
    "unet": 31_030_658,
    "unet_medical": 31_030_658,
    "unet_industrial": 1_850_305,
    "unet3d": 31_190_243,
    "nnunet_2d": 20_613_092,
    "nnunet_3d": 31_192_868,
    "ssd300_resnet34": 19_972_534,
    "ssd300_resnet50": 22_894_902,
    "retinanet_resnext50": 37_060_652,
    "mask_rcnn_r50_fpn": 44_347_573,
    "efficientdet_d0": 3_877_763,
    "gpunet_0": 11_885_432,
    "gpunet_1": 12_704_192,
    "gpunet_2": 25_798_704,
    "resnet100_arcface": 65_156_160 + 85_742 * 512,
    "mobilefacenet_arcface": 1_003_264 + 85_742 * 128,
    "stable_diffusion_v2": 865_910_724 + 340_387_840 + 34_163_592 + 72,
    "stable_diffusion_v2_latents": 865_910_724 + 340_387_840,
    "ncf": 31_832_577,
    "dlrm": 24_036_595_969,
    "wide_deep_outbrain": 91_893_370,
    "quartznet": 18_924_381,
    "jasper": 332_632_349,
    "tft_electricity": 1_633_833 - 16_384,
    "tft_traffic": 1_709_865 - 16_384,
    "lstm_ptb": 66_034_000,
    "gnmt_v2": 160_671_297,
    "transformer_base": 63_045_632,
    "transformer_big": 214_171_648,
    "transformer_xl_base": 191_965_658,
    "transformer_xl_large": 285_202_298,
    "bert_base": 110_106_428,
    "bert_large": 336_226_108,
    "bert_base_pretraining": 110_106_428,
    "bert_large_pretraining": 336_226_108,
    "bert_base_squad": 108_893_186,
    "bert_large_squad": 334_094_338,
    "biobert_base": 107_721_987,
    "bart_base": 139_420_416,
    "bart_large": 406_291_456,
    "gpt2": 124_439_808,
    "gpt2_medium": 354_823_168,
    "gpt2_large": 774_030_080,
    "gpt2_xl": 1_557_611_200,
    "gpt2_small": 124_475_904,
    "gpt3_125m": 125_950_464,
    "gpt3_350m": 356_837_376,
    "gpt3_760m": 761_748_480,
    "gpt3_1.3b": 1_317_654_528,
    "gpt3_2.7b": 2_653_967_360,
    "gpt3_5b": 5_051_228_160,
    "gpt3_6.7b": 6_662_266_880,
    "gpt3_13b": 12_858_214_400,
    "gpt3_20b": 20_262_014_976,
    "gpt3_175b": 174_615_846_912,
    "megatron_22b": 22_074_273_792,
    "mt_nlg_530b": 529_600_819_200,
    "gpt_1t": 1_008_038_758_400,
    "mpt_125m": 125_311_488,
    "mpt_350m": 355_985_408,
    "mpt_760m": 760_470_528,
    "mpt_1b": 1_315_950_592,
    "mpt_3b": 2_651_837_440,
    "mpt_7b": 6_658_859_008,
    "mpt_13b": 12_853_954_560,
    "mpt_30b": 29_975_214_080,
    "mpt_70b": 64_862_437_376,
    "llama2_7b": 6_738_415_616,
    "llama2_13b": 13_015_864_320,
    "llama2_70b": 68_976_648_192,
    "llama3_1b": 1_235_814_400,
    "llama3_3b": 3_212_749_824,
    "llama3_8b": 8_030_261_248,
    "llama3_70b": 70_553_706_496,
    "llama3_405b": 405_853_388_800,
    "mixtral_8x7b": 46_702_792_704,
    "llama2_70b_lora": 68_976_648_192 + 44_564_480,
    "deepseek_v3": 671_026_404_352,
    "kimi_k2": 1_026_408_209_408,
    "qwen3_30b_a3b": 30_532_122_624,
    "qwen3_235b_a22b": 235_093_634_560,
    "gpt_oss_20b": 20_914_757_184,
    "gpt_oss_120b": 116_829_156_672,
    "llama4_scout": 107_769_861_120,
    "llama4_maverick": 400_711_848_960,
    "llama_7b": 6_738_415_616,
    "llama_13b": 13_015_864_320,
    "llama_30b": 32_528_943_616,
    "llama_65b": 65_285_660_672,
    "mistral_7b": 7_241_732_096,
    "mixtral_8x22b": 140_620_634_112,
    "qwen2.5_7b": 7_615_616_512,
    "qwen2.5_32b": 32_763_876_352,
    "qwen2.5_72b": 72_706_203_648,
    "qwen3_8b": 8_190_735_360,
    "qwen3_32b": 32_762_123_264,
    "gemma_7b": 8_537_680_896,
    "gemma2_27b": 27_227_128_320,
    "phi3_mini": 3_821_079_552,
    "olmo2_7b": 7_298_617_344,
    "nemotron4_15b": 15_628_775_424,
    "nemotron4_340b": 341_029_195_776,
    # 123,611,012,096 are those of the published bf16 weights of Super with its prediction layers.
    "nemotron3_nano_30b_a3b": 31_577_937_344,
    "nemotron3_super_120b_a12b": 123_611_012_096,
    "nemotron3_ultra_550b_a55b": 560_524_578_816,
    "gpt_neox_20b": 20_554_567_680,
    "opt_6.7b": 6_658_473_984,
    "opt_13b": 12_853_473_280,
    "opt_30b": 29_974_540_288,
    "opt_66b": 65_719_701_504,
    "opt_175b": 174_604_468_224,
    "bloom_176b": 176_247_271_424,
    "falcon_40b": 41_303_293_952,
    "t5_large": 737_668_096,
    "t5_11b": 11_307_321_344,
    "mamba_2.8b": 2_768_345_600,
    "roberta_large": 355_412_057,
    "vit_l_16": 304_326_632,
}


@pytest.mark.parametrize("name", sorted(zoo.names()))
def test_parameters_are_exactly_those_published(name):
    assert zoo.build(name).cost(1).parameters == PARAMETERS[name]


@pytest.mark.parametrize(
    ("name", "sequence", "parameters"),
    [
        ("gpt_h768_l12", None, 125_950_464),
        ("gpt_h1536_l16", None, 535_096_320),
        ("gpt_h2304_l24", None, 1_652_230_656),
        ("gpt_h3072_l16", None, 1_976_162_304),
        ("gpt_h3072_l32", None, 3_788_740_608),
        ("gpt_h768_l12_a12_v50257", 1024, 124_439_808),
        ("bert_h1024_l24", None, 336_226_108),
        ("llama_h4096_l32_a32_k8_f14336_v128256", None, 8_030_261_248),
        ("llama_h2048_l16_a32_k8_f8192_v128256_tied", None, 1_235_814_400),
        ("llama3_8b_lora", None, 8_030_261_248 + 32 * 16 * (4096 + 6144 + 4096 + 4096)),
        ("wide_deep_vocab2322444_emb16_fc2x1024", None, 17 * 2_322_444 + 1_490_945),
        ("mpt_125m", 65_536, 174_070_272),
        ("mpt_7b", 65_536, 6_918_905_856),
        ("mpt_13b", 32_768, 13_011_240_960),
    ],
)
def test_sizes_that_are_not_listed_follow_from_their_numbers(name, sequence, parameters):
    graph = zoo.build(name, sequence)
    assert graph.cost(1, sequence).parameters == parameters


@pytest.mark.parametrize(
    ("name", "multiply_adds"),
    [
        ("alexnet", 0.714e9),
        ("vgg16", 15.47e9),
        ("googlenet_bn", 1.498e9),
        ("inception_v3", 5.713e9),
        ("resnet50", 3.858e9),
        ("resnet50_v1.5", 4.089e9),
        ("densenet121", 2.834e9),
        ("mobilenet_v2", 0.3008e9),
        ("resnet100_arcface", 12.09e9 + 85_742 * 512),
        ("resnet20", 40.55e6),
        ("resnet110", 252.9e6),
    ],
)
def test_forward_arithmetic_is_that_published(name, multiply_adds):
    graph = zoo.build(name)
    side_heads = sum(
        layer.forward_flops for layer in graph.cost(1).layers if layer.name.startswith("auxiliary")
    )
    assert (graph.cost(1).forward_flops - side_heads) / 2 == pytest.approx(multiply_adds, rel=2e-3)


def test_training_costs_six_flop_per_weight_and_token_plus_attention():
    graph = zoo.build("llama3_8b")
    cost = graph.cost(1, 128)
    attention = sum(x.training_flops for x in cost.layers if x.kind == "attention")
    table = next(x.parameters for x in cost.layers if x.kind == "embedding")
    norms = sum(x.parameters for x in cost.layers if x.kind == "rms_norm")
    weights = cost.parameters - table - norms
    assert cost.training_flops - attention == 6 * weights * 128


@pytest.mark.parametrize(
    ("name", "trained"),
    [
        # Adapters of rank 16 on queries, keys and values together and on the output.
        ("llama2_70b_lora", 44_564_480),
        ("stable_diffusion_v2", 865_910_724),
        ("stable_diffusion_v2_latents", 865_910_724),
        # The stem and the first stage of the backbone are frozen.
        ("mask_rcnn_r50_fpn", 44_347_573 - 222_400),
        ("resnet50", 25_557_032),
    ],
)
def test_trained_parameters_match_the_recipe(name, trained):
    cost = zoo.build(name).cost(1)
    assert cost.trainable_parameters == trained
    assert cost.gradient_bytes == 4 * trained


@pytest.mark.parametrize(
    ("name", "active"),
    [
        ("deepseek_v3", 37.5e9),
        ("kimi_k2", 32.9e9),
        ("qwen3_30b_a3b", 3.35e9),
        ("qwen3_235b_a22b", 22.2e9),
        ("gpt_oss_20b", 3.6e9),
        ("gpt_oss_120b", 5.1e9),
        ("llama4_scout", 17.2e9),
        ("llama4_maverick", 17.2e9),
    ],
)
def test_active_parameters_per_token_match_the_publication(name, active):
    """Publishers round; some omit the embedding table or the head."""
    cost = zoo.build(name).cost(1, 8)
    attention = sum(x.forward_flops for x in cost.layers if x.kind == "attention")
    table = next(x.parameters for x in cost.layers if x.kind == "embedding")
    used = (cost.forward_flops - attention) / 2 / 8
    assert used < active * 1.05
    assert used + table > active * 0.95


def test_frozen_weights_cost_no_products_of_their_gradient():
    whole, adapted = (zoo.build(name).cost(1, 512) for name in ("llama2_7b", "llama2_7b_lora"))
    assert whole.backward_flops == 2 * whole.forward_flops
    assert adapted.backward_flops < 1.1 * adapted.forward_flops
    assert adapted.activation_bytes < whole.activation_bytes


@pytest.mark.parametrize(("batch", "sent"), [(1, 1), (512, 512)])
def test_a_table_of_a_recommender_exchanges_the_rows_that_were_looked_up(batch, sent):
    cost = zoo.build("dlrm").cost(batch)
    (table,) = [layer for layer in cost.layers if layer.kind == "embedding"]
    assert table.gradient_bytes == sent * 26 * 128 * 4
    assert table.parameters == 187_767_399 * 128


def test_googlenet_has_the_64_layers_with_weights_of_its_published_trace():
    layers = [layer for layer in zoo.build("googlenet").cost(1).layers if layer.parameters]
    assert len(layers) == 64
    # That trace rounds every layer up to 64 numbers.
    assert sum(-(-layer.parameters // 64) * 64 for layer in layers) == 13_379_136


@pytest.mark.parametrize(
    ("spelling", "name"),
    [
        ("ResNet-50", "resnet50"),
        ("resnet-50", "resnet50"),
        ("ResNet-50 v1", "resnet50"),
        ("ResNet50v1.5", "resnet50_v1.5"),
        ("resnet44-cifar10", "resnet44"),
        ("VGG16", "vgg16"),
        ("Inception-v3", "inception_v3"),
        ("ViT-B/16", "vit_b_16"),
        ("U-Net", "unet"),
        ("SE-ResNeXt-101", "se_resnext101_32x4d"),
        ("MobileNet v2", "mobilenet_v2"),
        ("gpt2-xl", "gpt2_xl"),
        ("GPT-3 1.3B", "gpt3_1.3b"),
        ("GPT-3 13B", "gpt3_13b"),
        ("gpt3", "gpt3_175b"),
        ("BERT-Large", "bert_large"),
        ("bert-base-uncased", "bert_base"),
        ("Llama-2-7b", "llama2_7b"),
        ("meta-llama/Llama-3.1-8B", "llama3_8b"),
        ("Llama 3.1 405B", "llama3_405b"),
        ("llama3_1b", "llama3_1b"),
        ("Mixtral-8x7B", "mixtral_8x7b"),
        (" transformer-xl ", "transformer_xl_base"),
        ("Mask R-CNN", "mask_rcnn_r50_fpn"),
        ("3D-UNet", "unet3d"),
        ("Llama-2-70B-LoRA", "llama2_70b_lora"),
        ("llama3_8b_lora_r8", "llama3_8b_lora_r8"),
        ("facebook/bart-large", "bart_large"),
        ("GPT-H512-L4", "gpt_h512_l4"),
        ("deepseek-ai/DeepSeek-V3", "deepseek_v3"),
        ("Kimi-K2", "kimi_k2"),
        ("Qwen/Qwen3-30B-A3B", "qwen3_30b_a3b"),
        ("openai/gpt-oss-120b", "gpt_oss_120b"),
        ("Llama 4 Scout", "llama4_scout"),
        ("Llama-4-Maverick", "llama4_maverick"),
        ("mistralai/Mistral-7B-v0.1", "mistral_7b"),
        ("Qwen/Qwen2.5-7B", "qwen2.5_7b"),
        ("bigscience/bloom", "bloom_176b"),
        ("EleutherAI/gpt-neox-20b", "gpt_neox_20b"),
        ("facebook/opt-6.7b", "opt_6.7b"),
        ("LLaMA-30B", "llama_30b"),
    ],
)
def test_common_spellings_are_understood(spelling, name):
    assert zoo.build(spelling).name == name


def test_every_name_is_its_own_spelling():
    for name in zoo.names():
        assert zoo.build(name).name == name


@pytest.mark.parametrize("name", ["resnet5o", "vgg17", "", "..", "gpt_hx_l2"])
def test_an_unknown_name_is_refused_with_where_to_look(name):
    with pytest.raises(UnknownNameError) as refused:
        zoo.build(name)
    assert "paceline catalog models" in refused.value.hint


def test_an_unknown_name_suggests_the_nearest():
    with pytest.raises(UnknownNameError, match="Did you mean resnet56, resnet50"):
        zoo.build("resnet5o")


@pytest.mark.parametrize(
    "name",
    [
        *("gpt_h0_l2", "gpt_h100_l2_a7", "bert_h64_l0", "gpt_h64_l2_v0", "llama_h64_l2_a7"),
        *("llama3_8b_lora_r0", "wide_deep_vocab0_emb16_fc2x8", "gpt_h64_l99999"),
    ],
)
def test_a_size_that_cannot_be_is_refused(name):
    with pytest.raises(PacelineError):
        zoo.build(name)


@pytest.mark.parametrize("sequence", [0, -3])
def test_a_sequence_that_cannot_be_is_refused(sequence):
    with pytest.raises(InputError, match="sequence must be at least 1"):
        zoo.build("gpt2", sequence)


def test_learned_positions_follow_the_sequence_only_where_they_should():
    assert zoo.build("mpt_7b", 8192).cost(1).parameters == 6_684_024_832
    assert zoo.build("gpt2", 512).cost(1).parameters == PARAMETERS["gpt2"]
    assert zoo.build("resnet50", 512) == zoo.build("resnet50")


def test_names_can_be_searched_in_any_spelling():
    assert zoo.names_like("Llama 2") == [
        *("llama2_7b", "llama2_13b", "llama2_70b", "llama2_70b_lora")
    ]
    assert zoo.names_like("") == zoo.names()


def test_graph_dimensions_describe_the_transformer():
    assert zoo.build("mixtral_8x7b").dimensions == {
        "hidden": 4096,
        "layers": 32,
        "heads": 32,
        "kv_heads": 8,
        "feed_forward": 14_336,
        "vocabulary": 32_000,
        "experts": 8,
        "top_k": 2,
    }
