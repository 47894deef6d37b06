"""Checks that a worker builds the networks it claims as they are described."""

import math
from collections.abc import Sequence

from paceline.frameworks.adapter import FrameworkAdapter
from paceline.testing.bench import IMAGES, Bench
from paceline.testing.contract import ContractError
from paceline.workload import zoo

LARGEST_BUILT_PARAMETERS = 70e6
"""Networks above this are not built by the suite: they would need much memory for little news."""

FLOP_TOLERANCE = 0.05
"""Relative difference of the operations that a framework counts from those described."""


def check_parameters(bench: Bench) -> str:
    """Builds the networks it claims, with the parameters and the work they are described by."""
    names = ("fcn5", IMAGES[0])
    built = claimed(bench.framework, names)
    words = [check_network(bench, name) for name in built]
    others = [f"{name} is not claimed" for name in names if name not in built]
    return "; ".join([*words, *others])


def check_every_network(bench: Bench) -> str:
    """Builds every network of the zoo that it claims and that is of a size to be built here."""
    names = zoo.names()
    ours = claimed(bench.framework, names)
    small = [name for name in ours if of_a_size_to_build(name)]
    for name in small:
        check_network(bench, name)
    left = [name for name in names if name not in ours]
    words = f"{len(small)} networks built, {len(ours) - len(small)} larger ones not"
    return f"{words}; not claimed: {', '.join(left) or 'none'}"


def claimed(wanted: FrameworkAdapter, names: Sequence[str]) -> list[str]:
    """Those of some networks of the zoo that the framework's worker can build."""
    return [name for name in names if wanted.claims(zoo.build(name).to_json())]


def of_a_size_to_build(name: str) -> bool:
    """Whether a network of the zoo is small enough to be built by the suite."""
    return float(zoo.build(name).cost(1).parameters) <= LARGEST_BUILT_PARAMETERS


def check_network(bench: Bench, name: str) -> str:
    """Builds one network of the zoo: its parameters, and its work where the framework counts it."""
    graph = zoo.build(name)
    job = bench.job(name, 2, steps=1, distinct_batches=1, sequence=graph.sequence, count_flops=True)
    ready = bench.event(bench.finished(job), "ready")
    if ready is None:
        raise ContractError(f"{name}: no 'ready' was written")
    described = int(graph.cost(1).trainable_parameters)
    if ready["parameters"] != described:
        raise ContractError(f"{name} has {ready['parameters']} parameters, described {described}")
    counted = ready.get("forward_flops")
    if counted is None:
        return f"{name}: {described} parameters, operations not counted by this framework"
    forward = float(graph.cost(2).forward_flops)
    if not math.isclose(counted, forward, rel_tol=FLOP_TOLERANCE):
        raise ContractError(f"{name} computes {counted:.3g} FLOP, described {forward:.3g}")
    return f"{name}: {described} parameters, {counted:.3g} FLOP ({counted / forward - 1:+.1%})"
