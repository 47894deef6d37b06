"""Checks that a worker builds its supported networks as described."""

import math
from collections.abc import Sequence

from paceline.frameworks.adapter import FrameworkAdapter
from paceline.testing.bench import IMAGES, Bench
from paceline.testing.contract import ContractError
from paceline.workload import zoo

LARGEST_BUILT_PARAMETERS = 70e6
"""Larger networks are not built: they need much memory and add little coverage."""

FLOP_TOLERANCE = 0.05
"""Relative tolerance of the FLOPs that a framework counts."""


def check_parameters(bench: Bench) -> str:
    """Supported networks have the described parameters and FLOPs."""
    names = ("fcn5", IMAGES[0])
    built = claimed(bench.framework, names)
    checked = [check_network(bench, name) for name in built]
    others = [f"{name} is not supported" for name in names if name not in built]
    return "; ".join([*checked, *others])


def check_every_network(bench: Bench) -> str:
    """Every supported network of the zoo up to `LARGEST_BUILT_PARAMETERS` builds."""
    names = zoo.names()
    ours = claimed(bench.framework, names)
    small = [name for name in ours if is_small_enough(name)]
    for name in small:
        check_network(bench, name)
    left = [name for name in names if name not in ours]
    summary = f"{len(small)} networks built, {len(ours) - len(small)} larger ones skipped"
    return f"{summary}; not supported: {', '.join(left) or 'none'}"


def claimed(wanted: FrameworkAdapter, names: Sequence[str]) -> list[str]:
    """Return the networks among ``names`` that the framework's worker can build."""
    return [name for name in names if wanted.claims(zoo.build(name).to_json())]


def is_small_enough(name: str) -> bool:
    return float(zoo.build(name).cost(1).parameters) <= LARGEST_BUILT_PARAMETERS


def check_network(bench: Bench, name: str) -> str:
    """Build one network of the zoo; check its parameters, and its FLOPs where counted."""
    graph = zoo.build(name)
    job = bench.job(name, 2, steps=1, distinct_batches=1, sequence=graph.sequence, count_flops=True)
    ready = bench.event(bench.finished(job), "ready")
    if ready is None:
        raise ContractError(f"{name}: the worker wrote no 'ready' event")
    described = int(graph.cost(1).trainable_parameters)
    if ready["parameters"] != described:
        raise ContractError(f"{name} has {ready['parameters']} parameters, expected {described}")
    counted = ready.get("forward_flops")
    if counted is None:
        return f"{name}: {described} parameters, FLOPs not counted by this framework"
    forward = float(graph.cost(2).forward_flops)
    if not math.isclose(counted, forward, rel_tol=FLOP_TOLERANCE):
        raise ContractError(f"{name} computes {counted:.3g} FLOP, expected {forward:.3g}")
    return f"{name}: {described} parameters, {counted:.3g} FLOP ({counted / forward - 1:+.1%})"
