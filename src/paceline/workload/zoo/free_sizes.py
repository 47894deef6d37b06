"""Networks of free size by name: ``gpt_h1024_l24``, ``llama_h4096_l32_k8``, ..."""

import re

from paceline.errors import InputError
from paceline.workload.zoo.entry import ZooEntry, adapted_llama, elastic_gpt, network
from paceline.workload.zoo.sizes import (
    ADAPTER_RANK,
    BERT_VOCABULARY,
    LLAMA,
    MEGATRON_VOCABULARY,
    BertSize,
    GptSize,
    LlamaSize,
)

_PLAIN = re.compile(
    r"(?P<family>gpt|bert)_h(?P<hidden>\d+)_l(?P<layers>\d+)(?:_a(?P<heads>\d+))?"
    r"(?:_v(?P<vocabulary>\d+))?"
)
_LLAMA = re.compile(
    r"llama_h(?P<hidden>\d+)_l(?P<layers>\d+)(?:_a(?P<heads>\d+))?(?:_k(?P<kv_heads>\d+))?"
    r"(?:_f(?P<feed_forward>\d+))?(?:_v(?P<vocabulary>\d+))?(?P<tied>_tied)?"
)
_ADAPTED = re.compile(r"(?P<base>.+)_lora(?:_r(?P<rank>\d+))?")
_WIDE_DEEP = re.compile(r"wide_deep_vocab(\d+)_emb(\d+)_fc(\d+)x(\d+)")

# Heads of published sizes that do not follow from the width.
_KNOWN_HEADS = {1536: 16, 2048: 16, 2304: 24, 3072: 32}
_LLAMA_VOCABULARY, _LLAMA_SEQUENCE = 32_000, 4096  # Llama 2
_MOST_LAYERS = 2000


def free_size(name: str) -> ZooEntry | None:
    """The entry of a name with sizes; None for other names."""
    spelled = re.sub(r"[\s\-]+", "_", name.lower())
    if found := _PLAIN.fullmatch(spelled):
        return _plain(spelled, found)
    if found := _LLAMA.fullmatch(spelled):
        return _llama(spelled, found)
    if found := _WIDE_DEEP.fullmatch(spelled):
        rows, width, layers, hidden = map(int, found.groups())
        _check(spelled, rows=rows, width=width, layers=layers, hidden=hidden)
        sizes = (spelled, rows, width, layers, hidden)
        return network("recommendation", "recommender.wide_deep", *sizes)
    if (found := _ADAPTED.fullmatch(spelled)) and found["base"] in LLAMA:
        rank = int(found["rank"] or ADAPTER_RANK)
        _check(spelled, rank=rank)
        return adapted_llama(found["base"], rank)
    return None


def _plain(name: str, found: "re.Match[str]") -> ZooEntry:
    hidden, layers = int(found["hidden"]), int(found["layers"])
    heads = int(found["heads"] or _KNOWN_HEADS.get(hidden, max(1, hidden // 64)))
    _check_heads(name, hidden, layers, heads)
    if found["family"] == "bert":
        vocabulary = int(found["vocabulary"] or BERT_VOCABULARY)
        size = BertSize(hidden, layers, heads, vocabulary)
        return network("BERT", "bert.bert", name, size)
    vocabulary = int(found["vocabulary"] or MEGATRON_VOCABULARY)
    return elastic_gpt("GPT", name, GptSize(hidden, layers, heads, vocabulary))


def _llama(name: str, found: "re.Match[str]") -> ZooEntry:
    hidden, layers = int(found["hidden"]), int(found["layers"])
    heads = int(found["heads"] or max(1, hidden // 128))
    kv_heads = int(found["kv_heads"] or heads)
    _check_heads(name, hidden, layers, heads)
    size = LlamaSize(
        hidden,
        layers,
        heads,
        kv_heads,
        int(found["feed_forward"] or 4 * hidden),
        int(found["vocabulary"] or _LLAMA_VOCABULARY),
        _LLAMA_SEQUENCE,
        tied=found["tied"] is not None,
    )
    return network("Llama", "llama.llama", name, size)


def _check_heads(name: str, hidden: int, layers: int, heads: int) -> None:
    _check(name, width=hidden, layers=layers, heads=heads)
    if hidden % heads:
        raise InputError(
            f"cannot build '{name}': width {hidden} is not divisible by {heads} heads",
            "choose a number of heads that divides the width, such as gpt_h1024_l24_a16",
        )


def _check(name: str, layers: int = 1, **numbers: int) -> None:
    if min(layers, *numbers.values()) < 1:
        raise InputError(f"cannot build '{name}': a size is 0", "give sizes of at least 1")
    if layers > _MOST_LAYERS:
        raise InputError(
            f"cannot build '{name}': too many layers: {layers} (maximum {_MOST_LAYERS})",
            "give fewer layers",
        )
