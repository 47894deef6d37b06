"""What a published row trains, in the terms of the zoo."""

from functools import lru_cache

from paceline.analyse.validation.forecast import Skipped
from paceline.analyse.validation.measurement import Configuration
from paceline.errors import PacelineError, UnknownNameError
from paceline.workload import zoo
from paceline.workload.graph import Graph


def graph_of(configuration: Configuration) -> Graph | Skipped:
    """The layer graph of the row's model, or why there is none."""
    return _graph(configuration.model, configuration.sequence)


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
    except UnknownNameError as problem:
        return Skipped(problem.message)
