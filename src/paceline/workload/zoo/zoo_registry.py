"""Networks by name, in any common spelling, including families of free size.

Networks that their ``config.json`` describes completely are tables of ``data/models.toml``.
"""

import re
from collections.abc import Mapping
from dataclasses import replace
from functools import cache, lru_cache, partial
from types import MappingProxyType
from typing import Any

from paceline.errors import InputError
from paceline.located_toml import shipped_toml
from paceline.naming import unknown_name
from paceline.plugins import PluginKind, with_plugins
from paceline.workload.graph import Graph
from paceline.workload.zoo import sizes
from paceline.workload.zoo.entry import ZooEntry, adapted_llama, build_with, elastic_gpt, network

_HINT = (
    "run 'paceline catalog models' for a list; names such as gpt_h1024_l24, bert_h768_l12, "
    "llama_h4096_l32 and llama3_8b_lora give other sizes"
)


def names() -> list[str]:
    return list(entries())


def names_like(part: str) -> list[str]:
    """Networks whose name contains ``part`` in any spelling; all if it is empty."""
    if not part.isascii():
        return []
    return [name for key, name in _by_squeezed_name().items() if squeezed(part) in key]


def family(name: str) -> str:
    return _find(name).family


def build(name: str, sequence: int | None = None) -> Graph:
    """Build the network called ``name``, in any common spelling (``ResNet-50``, ``gpt2-xl``).

    Free sizes are ``gpt_h{hidden}_l{layers}`` and ``bert_h{hidden}_l{layers}`` with optional
    ``_a{heads}`` (default: heads of 64) and ``_v{vocabulary}``; ``llama_h{hidden}_l{layers}`` with
    optional ``_a{heads}_k{key-value heads}_f{feed-forward}_v{vocabulary}`` and ``_tied``;
    ``{a Llama}_lora`` with optional ``_r{rank}``; and
    ``wide_deep_vocab{rows}_emb{width}_fc{layers}x{hidden}``.
    ``sequence`` is the sequence length; networks whose learned positions follow the sequence get
    that many positions.
    """
    return _build(name.strip(), sequence)


@lru_cache(maxsize=64)
def _build(name: str, sequence: int | None) -> Graph:
    entry = _find(name)
    if sequence is None:
        return entry.build()
    if type(sequence) is not int or sequence < 1:
        raise InputError(f"sequence must be at least 1 (got {sequence})", "give 1 or more")
    if entry.build_for is not None:
        return entry.build_for(sequence)
    graph = entry.build()
    return replace(graph, sequence=sequence) if graph.uses_sequence else graph


def _find(name: str) -> ZooEntry:
    known = entries()
    identifier = canonical(name, _by_squeezed_name())
    if identifier is not None:
        return known[identifier]
    from paceline.workload.zoo.free_sizes import free_size

    described = free_size(name)
    if described is None:
        raise unknown_name("model", name, known, _HINT)
    return described


@lru_cache(maxsize=1)
def entries() -> Mapping[str, ZooEntry]:
    """Networks of the zoo by name, then those of installed plugins."""
    ours = _images() | _scenes() | _signals() | _texts() | _configured()
    return MappingProxyType(with_plugins(PluginKind.NETWORK, ours, ZooEntry, squeezed))


@lru_cache(maxsize=1)
def _by_squeezed_name() -> Mapping[str, str]:
    return {squeezed(name): name for name in entries()}


def _images() -> dict[str, ZooEntry]:
    table = {
        "digits_cnn": network("digits", "digits.digits_cnn"),
        "fcn5": network("fully connected", "mlp.fcn5"),
        "alexnet": network("AlexNet", "alexnet.alexnet"),
        "alexnet_grouped": network("AlexNet", "alexnet.alexnet_grouped"),
    }
    for depth in (11, 13, 16, 19):
        table[f"vgg{depth}"] = network("VGG", "vgg.vgg", depth)
    table |= {
        "googlenet": network("Inception", "googlenet.googlenet"),
        "googlenet_bn": network("Inception", "googlenet.googlenet_bn"),
        "inception_v3": network("Inception", "inception.inception_v3"),
        "inception_v3_aux": network("Inception", "inception.inception_v3_aux"),
    }
    for depth in (20, 32, 44, 56, 110):
        table[f"resnet{depth}"] = network("ResNet, CIFAR-10", "resnet.cifar_resnet", depth)
    for version in ("v1", "v1.5"):
        for depth in (18, 34, 50, 101, 152):
            name = f"resnet{depth}" if version == "v1" else f"resnet{depth}_{version}"
            table[name] = network(f"ResNet {version}", "resnet.resnet", depth, version)
    for name in ("gpunet_0", "gpunet_1", "gpunet_2"):
        table[name] = network("GPUNet", "gpunet.gpunet", name)
    return table | {
        "resnet50_v1b": network("ResNet v1.5", "resnet.resnet", 50, "v1b"),
        "resnext101_32x4d": network("ResNeXt", "resnet.resnext101_32x4d"),
        "se_resnext101_32x4d": network("ResNeXt", "resnet.se_resnext101_32x4d"),
        "densenet121": network("DenseNet", "densenet.densenet121"),
        "mobilenet_v1": network("MobileNet", "mobilenet.mobilenet_v1"),
        "mobilenet_v2": network("MobileNet", "mobilenet.mobilenet_v2"),
        "vit_b_16": network("ViT", "vit.vit_b_16"),
    }


def _scenes() -> dict[str, ZooEntry]:
    return {
        "unet": network("U-Net", "unet.unet"),
        "unet_medical": network("U-Net", "unet.unet", "unet_medical"),
        "unet_industrial": network("U-Net", "unet.unet_industrial"),
        "unet3d": network("U-Net", "unet.unet3d"),
        "nnunet_2d": network("U-Net", "unet.nnunet_2d"),
        "nnunet_3d": network("U-Net", "unet.nnunet_3d"),
        "ssd300_resnet34": network("SSD", "ssd.ssd300_resnet34"),
        "ssd300_resnet50": network("SSD", "ssd.ssd300_resnet50"),
        "retinanet_resnext50": network("RetinaNet", "retinanet.retinanet_resnext50"),
        "mask_rcnn_r50_fpn": network("Mask R-CNN", "mask_rcnn.mask_rcnn_r50_fpn"),
        "efficientdet_d0": network("EfficientDet", "efficientdet.efficientdet_d0"),
        "resnet100_arcface": network("faces", "face.resnet100_arcface"),
        "mobilefacenet_arcface": network("faces", "face.mobilefacenet_arcface"),
        "stable_diffusion_v2": network("diffusion", "stable_diffusion.stable_diffusion_v2"),
        "stable_diffusion_v2_latents": network(
            "diffusion", "stable_diffusion.stable_diffusion_v2", True
        ),
    }


def _signals() -> dict[str, ZooEntry]:
    table = {
        "ncf": network("recommendation", "mlp.ncf"),
        "dlrm": network("recommendation", "recommender.dlrm"),
        "wide_deep_outbrain": network("recommendation", "recommender.wide_deep_outbrain"),
        "quartznet": network("speech", "speech.quartznet"),
        "jasper": network("speech", "speech.jasper"),
    }
    for name in ("tft_electricity", "tft_traffic"):
        table[name] = network("forecasting", "fusion_transformer.fusion_transformer", name)
    return table


def _texts() -> dict[str, ZooEntry]:
    table = {
        "lstm_ptb": network("LSTM", "lstm.lstm_ptb"),
        "gnmt_v2": network("LSTM", "lstm.gnmt_v2"),
    }
    for name, (hidden, heads) in {
        "transformer_base": (512, 8),
        "transformer_big": (1024, 16),
    }.items():
        table[name] = network("Transformer", "transformer.transformer", name, hidden, heads)
    for name in ("transformer_xl_base", "transformer_xl_large"):
        table[name] = network("Transformer-XL", "transformer_xl.transformer_xl", name)
    for name, size in sizes.BERT.items():
        table[name] = network("BERT", "bert.bert", name, size)
        masked = partial(build_with, "bert.bert_pretraining", f"{name}_pretraining", size)
        table[f"{name}_pretraining"] = ZooEntry("BERT", masked, masked)
        table[f"{name}_squad"] = network("BERT", "bert.bert_labels", f"{name}_squad", size, 2, 384)
    entities = ("biobert_base", sizes.BIOBERT, 3, 128)
    table["biobert_base"] = network("BERT", "bert.bert_labels", *entities)
    table |= {name: network("BART", "bart.bart", name) for name in ("bart_base", "bart_large")}
    table |= {name: network("GPT-2", "gpt.gpt", name, size) for name, size in sizes.GPT2.items()}
    for family, members in (("GPT-3", sizes.MEGATRON), ("MPT", sizes.MPT)):
        table |= {name: elastic_gpt(family, name, size) for name, size in members.items()}
    for name, decoder in sizes.LLAMA.items():
        family = "Mixtral" if decoder.experts else name.split("_")[0].replace("llama", "Llama ")
        table[name] = network(family, "llama.llama", name, decoder)
    table["llama2_70b_lora"] = adapted_llama("llama2_70b")
    return table


def _configured() -> dict[str, ZooEntry]:
    function_path = "zoo_registry.configured"
    return {
        name: replace(
            network(family, function_path, name),
            build_for=partial(build_with, function_path, name),
        )
        for name, family in families().items()
    }


FILE = "models.toml"


@cache
def configurations() -> Mapping[str, Mapping[str, Any]]:
    return shipped_toml("data", FILE).values


def families() -> dict[str, str]:
    return {name: str(table["family"]) for name, table in configurations().items()}


def configured(name: str, sequence: int | None = None) -> Graph:
    """Build a network of the file for samples of ``sequence`` tokens if given."""
    from paceline.workload.capture.hugging_face import configured_network

    graph = configured_network(configurations()[name], FILE, name, sequence)
    stated = sequence is not None and graph.uses_sequence
    return replace(graph, sequence=sequence) if stated else graph


@cache
def _aliases() -> Mapping[str, str]:
    table = shipped_toml("data", "model_aliases.toml").values
    return {alias: name for name, aliases in table.items() for alias in aliases}


def squeezed(name: str) -> str:
    """Lower case, letters and digits only: ``ResNet-50 v1.5`` becomes ``resnet50v1.5``."""
    return re.sub(r"[^a-z0-9.]|(?<!\d)\.|\.(?!\d)", "", name.lower())


def canonical(name: str, known: Mapping[str, str]) -> str | None:
    """The zoo's name of a network; ``known`` maps squeezed names to names."""
    # Llama 3.1 to 3.3 have the sizes of Llama 3.
    lowered = re.sub(r"llama[\s_-]*3[._-][123](?=[\s_:-]+\d)", "llama3", name.lower())
    key, without_owner = squeezed(lowered), squeezed(lowered.rpartition("/")[2])
    # A plain name means version 1 and the usual data set.
    plain = re.sub(r"(v1|cifar10|cifar|imagenet)$", "", key)
    for candidate in (key, plain, without_owner):
        if candidate in known:
            return known[candidate]
        if candidate in _aliases():
            return _aliases()[candidate]
    return None
