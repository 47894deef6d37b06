"""What a study trains on, as a person writes it: ``digits``, ``cifar10:PATH``, ``synthetic``."""

import math
from pathlib import Path
from typing import Any

from paceline.errors import InputError
from paceline.frameworks.runtime import datasets
from paceline.naming import look_up
from paceline.workload.graph import Graph

SYNTHETIC = "synthetic"
RATE_RULES = {
    "constant": "as given",
    "linear": "times the global batch over the batch of one process",
    "root": "times the square root of the same",
}
"""How the learning rate follows the global batch."""

SHAPES = {
    "digits": ((1, 8, 8), "digits_cnn"),
    "cifar10": (datasets.CIFAR10_SHAPE, "resnet20"),
}
"""Samples of data sets that have one shape, and a network that takes them."""


def data_source(text: str) -> dict[str, Any]:
    """The data of a job: its kind, and the absolute path of its files."""
    kind, _, path = text.partition(":")
    known = dict.fromkeys((SYNTHETIC, *datasets.KINDS))
    look_up("kind of data", kind, known, f"one of {', '.join(known)}")
    if kind in (SYNTHETIC, "digits"):
        if path:
            raise InputError(f"data '{kind}' has no path", f"write {kind}")
        own = datasets.digits_path() if kind == "digits" else None
        return {"kind": kind, **({"path": own} if own else {})}
    if not path:
        raise InputError(f"data '{kind}' needs a path", f"write {kind}:PATH")
    return {"kind": kind, "path": str(Path(path).expanduser().absolute())}


def check_data(text: str, graph: Graph) -> None:
    """Refuse data whose files are not on this machine, or that the network does not take."""
    source = data_source(text)
    if source["kind"] == "digits" and "path" not in source:
        raise InputError(
            "the digits come with scikit-learn, which is not installed",
            "pip install 'paceline[digits]'",
        )
    if "path" in source and not Path(source["path"]).exists():
        raise InputError(f"there is no '{source['path']}'", "name the files of the data set")
    shape, example = SHAPES.get(source["kind"], ((), ""))
    taken = [tuple(spec["shape"]) for spec in graph.to_json()["inputs"].values()]
    if shape and shape not in taken:
        sizes = "x".join(map(str, shape))
        raise InputError(
            f"{source['kind']} has samples of {sizes}, which {graph.name} does not take",
            f"{example} does: --model {example}",
        )


def scaled_rate(rate: float, rule: str, times: float) -> float:
    """A learning rate for a global batch that is ``times`` that of one process."""
    return rate * {"constant": 1.0, "linear": times, "root": math.sqrt(times)}[rule]
