"""The network of a published row: one of the zoo, or one built from the sizes of the row."""

import math
import re
from functools import lru_cache

from paceline.errors import PacelineError
from paceline.validation.forecast import Skipped
from paceline.validation.published_row import Configuration
from paceline.workload import zoo
from paceline.workload.graph import Graph
from paceline.workload.zoo.network_builder import NetworkBuilder
from paceline.workload.zoo.sizes import LlamaSize

_LEAST_VOCABULARY = 1000
_USUAL_VOCABULARY = 32_000
_USUAL_SEQUENCE = 2048
_BOX_LAYERS = 40
_VARIANTS = {"pretraining": "_pretraining", "fine-tuning": "_squad"}
"""Heads of BERT by task."""
_BERTS = ("bert_base", "bert_large")


def graph_of(configuration: Configuration) -> Graph | Skipped:
    """The layer graph of the row's model, or the reason why there is none.

    Sizes in the row take precedence over its name. A transformer that is not in the zoo is
    treated as a GPT of the row's width, depth and heads; its vocabulary follows from the number
    of parameters.
    """
    model, sequence = configuration.model, configuration.sequence
    if configuration.feed_forward and configuration.hidden and configuration.layers:
        return _of_sizes(configuration)
    for task, variant in _VARIANTS.items():
        if task in configuration.task and model in _BERTS:
            return _named(model + variant, sequence)
    if "lora" in configuration.task.lower() and "lora" not in model:
        adapted = _named(f"{model}_lora", sequence)
        if isinstance(adapted, Graph):
            return adapted
    heads = configuration.heads
    if heads and re.fullmatch(r"(gpt|bert)_h\d+_l\d+", model):
        return _named(f"{model}_a{heads}", sequence)
    named = _named(model, sequence)
    width, depth = configuration.hidden, configuration.layers
    if isinstance(named, Graph) or width is None or depth is None:
        return named
    name = f"gpt_h{width}_l{depth}" + (f"_a{heads}" if heads else "")
    if configuration.n_params:
        vocabulary = (configuration.n_params - 12.0 * depth * width**2) / width
        name += f"_v{max(_LEAST_VOCABULARY, round(vocabulary))}"
    generic = _named(name, sequence)
    return generic if isinstance(generic, Graph) else named


@lru_cache(maxsize=64)
def black_box(parameters: float) -> Graph:
    """A network of equal layers, for models with a known number of parameters only."""
    width = max(1, round(math.sqrt(parameters / _BOX_LAYERS)))
    net = NetworkBuilder(f"black box of {parameters:.3g} parameters")
    x = net.image(width)
    for number in range(_BOX_LAYERS):
        x = net.linear(f"part{number}", x, width, bias=False)
    return net.build(net.cross_entropy("loss", x, net.integers("label", width)))


def sample_flops(configuration: Configuration) -> float | Skipped:
    """Training FLOP per unit of throughput: from the layer graph, else 6 per parameter and token.

    The second form is that of Kaplan et al. (arXiv:2001.08361): 2 FLOP per parameter and token
    in the forward pass, 4 in the backward pass.
    """
    graph = graph_of(configuration)
    if isinstance(graph, Graph):
        try:
            cost = graph.cost(1, configuration.sequence, configuration.precision)
        except PacelineError as problem:
            return Skipped(problem.message)
        return float(cost.training_flops) / tokens_per_sample(configuration, graph)
    if configuration.throughput_unit != configuration.batch_unit:
        return Skipped(
            f"throughput in {configuration.throughput_unit} of a batch in "
            f"{configuration.batch_unit}: samples per second are not known"
        )
    if configuration.n_params is None or configuration.sequence is None:
        return graph
    return 6.0 * configuration.n_params * configuration.sequence


def tokens_per_sample(configuration: Configuration, graph: Graph | Skipped) -> float:
    """Units of throughput per sample of the graph: tokens of a sequence, else one."""
    if configuration.throughput_unit != "tokens":
        return 1.0
    length = configuration.sequence
    if length is None and isinstance(graph, Graph):
        length = graph.sequence
    return float(length or 1)


def _of_sizes(configuration: Configuration) -> Graph | Skipped:
    assert configuration.hidden and configuration.layers and configuration.feed_forward
    heads = configuration.heads or max(1, configuration.hidden // 128)
    return _llama(
        LlamaSize(
            configuration.hidden,
            configuration.layers,
            heads,
            configuration.kv_heads or heads,
            configuration.feed_forward,
            configuration.vocabulary or _USUAL_VOCABULARY,
            configuration.sequence or _USUAL_SEQUENCE,
            tied=bool(configuration.tied_embeddings),
        )
    )


@lru_cache(maxsize=256)
def _llama(size: LlamaSize) -> Graph | Skipped:
    from paceline.workload.zoo.llama import llama

    try:
        return llama(f"llama_h{size.hidden}_l{size.layers}", size)
    except PacelineError as problem:
        return Skipped(problem.message)


@lru_cache(maxsize=256)
def _named(model: str, sequence: int | None) -> Graph | Skipped:
    try:
        return zoo.build(model, sequence)
    except PacelineError as problem:
        return Skipped(problem.message)
