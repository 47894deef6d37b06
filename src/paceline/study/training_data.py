"""Training data of a study: ``digits``, ``cifar10:PATH``, ``synthetic``, ..."""

import math
from pathlib import Path
from typing import Any

from paceline.errors import InputError
from paceline.frameworks.runtime import datasets
from paceline.naming import look_up
from paceline.user_files import check_file
from paceline.workload.graph import Graph

SYNTHETIC = "synthetic"
SHAPES = {
    "digits": ((1, 8, 8), "digits_cnn"),
    "cifar10": (datasets.CIFAR10_SHAPE, "resnet20"),
}
"""Sample shape of data sets, and a network that accepts it."""


def data_source(text: str) -> dict[str, Any]:
    """Data of a job: its kind, and the absolute path of its files."""
    kind, _, path = text.partition(":")
    known = dict.fromkeys((SYNTHETIC, *datasets.KINDS))
    look_up("kind of data", kind, known, f"one of {', '.join(known)}")
    if kind in (SYNTHETIC, "digits"):
        if path:
            raise InputError(f"data '{kind}' takes no path", f"write {kind}")
        own = datasets.digits_path() if kind == "digits" else None
        return {"kind": kind, **({"path": own} if own else {})}
    if not path:
        raise InputError(f"data '{kind}' needs a path", f"write {kind}:PATH")
    return {"kind": kind, "path": str(Path(path).expanduser().absolute())}


def check_data(text: str, graph: Graph) -> None:
    """Raise an error if files are missing on this machine or the network rejects the samples."""
    source = data_source(text)
    if source["kind"] == "digits" and "path" not in source:
        raise InputError(
            "data 'digits' needs scikit-learn, which is not installed",
            "pip install 'paceline[digits]'",
        )
    if "path" in source:
        check_file(Path(source["path"]), "give the path of the data set", directories=True)
    shape, example = SHAPES.get(source["kind"], ((), ""))
    taken = [tuple(spec["shape"]) for spec in graph.to_json()["inputs"].values()]
    if shape and shape not in taken:
        sizes = "x".join(map(str, shape))
        raise InputError(
            f"{graph.name} does not accept the samples of {source['kind']} ({sizes})",
            f"use a network that does: --model {example}",
        )


def scaled_rate(rate: float, rule: str, times: float) -> float:
    """Learning rate for a global batch of ``times`` the batch of one process."""
    return rate * {"constant": 1.0, "linear": times, "root": math.sqrt(times)}[rule]
