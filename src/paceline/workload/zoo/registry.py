"""The list of networks by name, with the sizes that any GPT or BERT can have."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from types import MappingProxyType

from paceline.errors import InputError
from paceline.naming import unknown_name
from paceline.plugins import PluginKind, with_plugins
from paceline.workload.graph import Graph
from paceline.workload.zoo import (
    alexnet,
    bert,
    densenet,
    googlenet,
    gpt,
    inception,
    llama,
    mlp,
    mobilenet,
    quartznet,
    recurrent,
    resnet,
    resnet_cifar,
    ssd,
    transformer,
    transformer_xl,
    unet,
    vgg,
    vit,
)
from paceline.workload.zoo.spelling import canonical, squeezed

_HINT = "'paceline models' lists all; any gpt_h1024_l24 or bert_h768_l12 can be named too"


@dataclass(frozen=True, slots=True)
class Entry:
    """A network of the zoo: its family, and how to write it down.

    ``build_for`` is set where learned positions are as many as the sequence is long.
    """

    family: str
    build: Callable[[], Graph]
    build_for: Callable[[int], Graph] | None = None


def names() -> list[str]:
    """Every network of the zoo that has a name of its own."""
    return list(entries())


def names_like(part: str) -> list[str]:
    """The networks whose name contains ``part``, in any spelling; all for an empty one."""
    return [name for key, name in _by_squeezed_name().items() if squeezed(part) in key]


def family(name: str) -> str:
    """What kind of network a name of the zoo is, as ``ResNet v1.5``."""
    return _find(name).family


def build(name: str, sequence: int | None = None) -> Graph:
    """The network called ``name``, in any common spelling (``ResNet-50``, ``gpt2-xl``).

    ``gpt_h{hidden}_l{layers}`` and ``bert_h{hidden}_l{layers}``, followed by ``_a{heads}`` and
    ``_v{vocabulary}`` if wanted, are networks of any size (64 wide heads unless said).
    ``sequence`` is the length to train at; a network whose learned positions follow the
    sequence gets as many.
    """
    return _build(name.strip(), sequence)


@lru_cache(maxsize=64)
def _build(name: str, sequence: int | None) -> Graph:
    entry = _find(name)
    if sequence is None:
        return entry.build()
    if type(sequence) is not int or sequence < 1:
        raise InputError(f"sequence must be at least 1, not {sequence}", "give 1 or more")
    if entry.build_for is not None:
        return entry.build_for(sequence)
    graph = entry.build()
    return replace(graph, sequence=sequence) if graph.uses_sequence else graph


def _find(name: str) -> Entry:
    known = entries()
    identifier = canonical(name, _by_squeezed_name())
    if identifier is not None:
        return known[identifier]
    parsed = _parse_size(name)
    if parsed is None:
        raise unknown_name("model", name, known, _HINT)
    return parsed


@lru_cache(maxsize=1)
def entries() -> Mapping[str, Entry]:
    """Every network of the zoo, by name, families together; then those of installed packages."""
    return MappingProxyType(with_plugins(PluginKind.NETWORK, _images() | _texts(), Entry, squeezed))


@lru_cache(maxsize=1)
def _by_squeezed_name() -> Mapping[str, str]:
    return {squeezed(name): name for name in entries()}


def _images() -> dict[str, Entry]:
    table = {
        "fcn5": Entry("fully connected", mlp.fcn5),
        "alexnet": Entry("AlexNet", alexnet.alexnet),
        "alexnet_grouped": Entry("AlexNet", alexnet.alexnet_grouped),
    }
    table |= {f"vgg{depth}": Entry("VGG", partial(vgg.vgg, depth)) for depth in (11, 13, 16, 19)}
    table |= {
        "googlenet": Entry("Inception", googlenet.googlenet),
        "googlenet_bn": Entry("Inception", googlenet.googlenet_bn),
        "inception_v3": Entry("Inception", inception.inception_v3),
        "inception_v3_aux": Entry("Inception", inception.inception_v3_aux),
    }
    for depth in (20, 32, 44, 56, 110):
        build = partial(resnet_cifar.cifar_resnet, depth)
        table[f"resnet{depth}"] = Entry("ResNet, CIFAR-10", build)
    for version in ("v1", "v1.5"):
        for depth in (18, 34, 50, 101, 152):
            graph = partial(resnet.resnet, depth, version)
            suffix = "" if version == "v1" else f"_{version}"
            table[f"resnet{depth}{suffix}"] = Entry(f"ResNet {version}", graph)
    return table | {
        "resnet50_v1b": Entry("ResNet v1.5", partial(resnet.resnet, 50, "v1b")),
        "resnext101_32x4d": Entry("ResNeXt", resnet.resnext101_32x4d),
        "se_resnext101_32x4d": Entry("ResNeXt", resnet.se_resnext101_32x4d),
        "densenet121": Entry("DenseNet", densenet.densenet121),
        "mobilenet_v1": Entry("MobileNet", mobilenet.mobilenet_v1),
        "mobilenet_v2": Entry("MobileNet", mobilenet.mobilenet_v2),
        "vit_b_16": Entry("ViT", vit.vit_b_16),
        "unet": Entry("U-Net", unet.unet),
        "unet_medical": Entry("U-Net", partial(unet.unet, "unet_medical")),
        "ssd300_resnet50": Entry("SSD", ssd.ssd300_resnet50),
    }


def _texts() -> dict[str, Entry]:
    table = {
        "ncf": Entry("recommendation", mlp.ncf),
        "quartznet": Entry("speech", quartznet.quartznet),
        "lstm_ptb": Entry("LSTM", recurrent.lstm_ptb),
        "gnmt_v2": Entry("LSTM", recurrent.gnmt_v2),
    }
    for name, (hidden, heads) in {
        "transformer_base": (512, 8),
        "transformer_big": (1024, 16),
    }.items():
        table[name] = Entry("Transformer", partial(transformer.transformer, name, hidden, heads))
    for name, xl in transformer_xl.TRANSFORMER_XL.items():
        table[name] = Entry("Transformer-XL", partial(transformer_xl.transformer_xl, name, xl))
    for name, shape in bert.BERT.items():
        table[name] = Entry("BERT", partial(bert.bert, name, shape))
        masked = partial(bert.bert_pretraining, f"{name}_pretraining", shape)
        table[f"{name}_pretraining"] = Entry("BERT", masked, masked)
        answers = partial(bert.bert_labels, f"{name}_squad", shape, 2, 384)
        table[f"{name}_squad"] = Entry("BERT", answers)
    entities = partial(bert.bert_labels, "biobert_base", bert.BIOBERT, 3, 128)
    table["biobert_base"] = Entry("BERT", entities)
    table |= {n: Entry("GPT-2", partial(gpt.gpt, n, size)) for n, size in gpt.GPT2.items()}
    for family, sizes in (("GPT-3", gpt.MEGATRON), ("MPT", gpt.MPT)):
        table |= {name: _elastic_gpt(family, name, size) for name, size in sizes.items()}
    for name, decoder in llama.LLAMA.items():
        family = "Mixtral" if decoder.experts else name.split("_")[0].replace("llama", "Llama ")
        table[name] = Entry(family, partial(llama.llama, name, decoder))
    return table


def _elastic_gpt(family: str, name: str, size: gpt.GptSize) -> Entry:
    def build_for(sequence: int) -> Graph:
        return gpt.gpt(name, replace(size, positions=sequence))

    return Entry(family, partial(gpt.gpt, name, size), build_for)


_SIZE = re.compile(
    r"^(?P<family>gpt|bert)_h(?P<hidden>\d+)_l(?P<layers>\d+)"
    r"(?:_a(?P<heads>\d+))?(?:_v(?P<vocabulary>\d+))?$"
)

# Heads of published sizes that do not follow from the width.
_KNOWN_HEADS = {1536: 16, 2048: 16, 2304: 24, 3072: 32}
_MOST_LAYERS = 2000


def _parse_size(name: str) -> Entry | None:
    spelled = re.sub(r"[\s\-]+", "_", name.lower())
    match = _SIZE.match(spelled)
    if match is None:
        return None
    hidden, layers = int(match["hidden"]), int(match["layers"])
    heads = int(match["heads"] or _KNOWN_HEADS.get(hidden, max(1, hidden // 64)))
    if min(hidden, layers, heads) < 1 or hidden % heads:
        raise InputError(
            f"'{name}' cannot be built: width {hidden}, {layers} layers, {heads} heads",
            "give numbers above zero and heads that divide the width, as in gpt_h1024_l24_a16",
        )
    if layers > _MOST_LAYERS:
        raise InputError(
            f"'{name}' cannot be built: {layers} layers", f"at most {_MOST_LAYERS:,} layers"
        )
    if match["family"] == "bert":
        vocabulary = int(match["vocabulary"] or bert.BERT_VOCABULARY)
        shape = bert.BertSize(hidden, layers, heads, vocabulary)
        return Entry("BERT", partial(bert.bert, spelled, shape))
    vocabulary = int(match["vocabulary"] or gpt.MEGATRON_VOCABULARY)
    return _elastic_gpt("GPT", spelled, gpt.GptSize(hidden, layers, heads, vocabulary))
