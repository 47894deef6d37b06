"""What a published row trains, in the terms of the zoo."""

import re
from functools import lru_cache

from paceline.analyse.validation.forecast import Skipped
from paceline.analyse.validation.measurement import Configuration
from paceline.errors import PacelineError
from paceline.workload import zoo
from paceline.workload.graph import Graph

_FEWEST_WORDS = 1000
_VARIANTS = {"pretraining": "_pretraining", "fine-tuning": "_squad"}
"""What published programs compute of a BERT, by their task."""


def graph_of(configuration: Configuration) -> Graph | Skipped:
    """The layer graph of the row's model, or why there is none.

    A transformer that the zoo does not know by name is a GPT of the row's width, depth and
    heads, with as many words as its number of parameters leaves room for.
    """
    width, depth, heads = configuration.hidden, configuration.layers, configuration.heads
    model, sequence = configuration.model, configuration.sequence
    if heads and re.fullmatch(r"(gpt|bert)_h\d+_l\d+", model):
        return _graph(f"{model}_a{heads}", sequence)
    for task, variant in _VARIANTS.items():
        if task in configuration.task and model in ("bert_base", "bert_large"):
            return _graph(model + variant, sequence)
    named = _graph(model, sequence)
    if isinstance(named, Graph) or width is None or depth is None:
        return named
    name = f"gpt_h{width}_l{depth}" + (f"_a{heads}" if heads else "")
    if configuration.n_params:
        words = (configuration.n_params - 12.0 * depth * width**2) / width
        name += f"_v{max(_FEWEST_WORDS, round(words))}"
    generic = _graph(name, sequence)
    return generic if isinstance(generic, Graph) else named


def sample_flops(configuration: Configuration) -> float | Skipped:
    """Training FLOP per unit of throughput: from the layer graph, else 6 per parameter and token.

    The second form counts one forward and one backward pass of a transformer whose layer graph
    is not known.
    """
    if configuration.throughput_unit != configuration.batch_unit:
        return Skipped(
            f"throughput in {configuration.throughput_unit} of a batch in "
            f"{configuration.batch_unit}: samples per second are not known"
        )
    graph = graph_of(configuration)
    if isinstance(graph, Graph):
        try:
            cost = graph.cost(1, configuration.sequence, configuration.precision)
        except PacelineError as problem:
            return Skipped(problem.message)
        return float(cost.training_flops)
    if configuration.n_params is None or configuration.sequence is None:
        return graph
    return 6.0 * configuration.n_params * configuration.sequence


@lru_cache(maxsize=256)
def _graph(model: str, sequence: int | None) -> Graph | Skipped:
    try:
        return zoo.build(model, sequence)
    except PacelineError as problem:
        return Skipped(problem.message)
